//! The index key of one value of a condition.

use ipnet::IpNet;

use crate::policy::condition::{Alternative, Condition};
use crate::policy::path::{PathPattern, Segment, Syntax};
use crate::policy::wildcard::{Literal, Wildcard};

use super::trie::{TrieStep, key_of};

/// A property that a request must have to match a value. A necessary condition, not always a sufficient one.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum LookupKey {
    Exact(Literal),
    Net(IpNet),
    Path(Vec<TrieStep>),
    Prefix(Literal),
    Suffix(Literal),
}

impl LookupKey {
    /// Returns the keys of a condition's values, or `None` if one of them cannot be indexed (such as `*a*`).
    pub(super) fn of(condition: &Condition) -> Option<Vec<Self>> {
        condition.values().iter().map(Self::of_value).collect()
    }

    fn of_value(value: &Alternative) -> Option<Self> {
        match value {
            Alternative::Exact(text) => Some(Self::Exact(text.clone())),
            Alternative::Net(net) => Some(Self::Net(*net)),
            Alternative::Path(pattern) => Some(Self::Path(steps(pattern))),
            Alternative::Text(wildcard) => {
                let (prefix, suffix) = (wildcard.prefix(), wildcard.suffix());
                if prefix.is_empty() && suffix.is_empty() {
                    None
                } else if prefix.len() >= suffix.len() {
                    Some(Self::Prefix(prefix.into()))
                } else {
                    Some(Self::Suffix(suffix.into()))
                }
            }
        }
    }

    /// Returns how many other values a key tends to match as well (0 = none), to break ties.
    pub(super) const fn breadth(&self) -> u8 {
        match self {
            Self::Exact(_) => 0,
            Self::Net(_) => 1,
            Self::Path(_) => 2,
            Self::Prefix(_) | Self::Suffix(_) => 3,
        }
    }
}

/// Converts a pattern for the trie: a segment with wildcards becomes `Any`, or `Key` in a descriptor, and the part after
/// `**` is dropped, because the rule itself checks it.
fn steps(pattern: &PathPattern) -> Vec<TrieStep> {
    let mut steps = Vec::new();
    let key = |wildcard: &Wildcard| match pattern.syntax() {
        Syntax::Descriptor => key_of(wildcard.prefix()).map(|key| TrieStep::Key(key.into())),
        Syntax::Path => None,
    };
    for segment in pattern.segments() {
        steps.push(match segment {
            Segment::Literal(literal) => TrieStep::Literal(literal.clone()),
            Segment::Wild(wildcard) => key(wildcard).unwrap_or(TrieStep::Any),
            Segment::NonEmpty => TrieStep::Any,
            Segment::Rest => TrieStep::Rest,
        });
        if matches!(segment, Segment::Rest) {
            break;
        }
    }
    steps
}
