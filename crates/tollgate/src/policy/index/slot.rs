//! Where one value of a condition is filed.

use ipnet::IpNet;

use crate::policy::condition::{Alternative, Condition};
use crate::policy::path::Segment;
use crate::policy::wildcard::Literal;

use super::trie::TrieStep;

/// What a request must have for a value to be worth trying.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Slot {
    Exact(Literal),
    Net(IpNet),
    Path(Vec<TrieStep>),
    Prefix(Literal),
    Suffix(Literal),
}

impl Slot {
    /// The slots of a condition's values; none if one of them can only be found by trying.
    pub(super) fn of(condition: &Condition) -> Option<Vec<Self>> {
        condition.values().iter().map(Self::of_value).collect()
    }

    fn of_value(value: &Alternative) -> Option<Self> {
        match value {
            Alternative::Exact(text) => Some(Self::Exact(text.clone())),
            Alternative::Net(net) => Some(Self::Net(*net)),
            Alternative::Path(pattern) => Some(Self::Path(steps(pattern.segments()))),
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

    /// How much more than its value a slot tends to catch, to choose between equals.
    pub(super) const fn breadth(&self) -> u8 {
        match self {
            Self::Exact(_) => 0,
            Self::Net(_) => 1,
            Self::Path(_) => 2,
            Self::Prefix(_) | Self::Suffix(_) => 3,
        }
    }
}

/// A pattern as the trie knows it: wildcards within a segment are any segment, and what follows a
/// `**` is left to the rule itself.
fn steps(segments: &[Segment]) -> Vec<TrieStep> {
    let mut steps = Vec::new();
    for segment in segments {
        steps.push(match segment {
            Segment::Literal(literal) => TrieStep::Literal(literal.clone()),
            Segment::Wild(_) | Segment::Filled => TrieStep::Any,
            Segment::Rest => TrieStep::Rest,
        });
        if matches!(segment, Segment::Rest) {
            break;
        }
    }
    steps
}
