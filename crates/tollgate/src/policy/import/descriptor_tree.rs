//! The descriptors of an `envoyproxy/ratelimit` configuration: which values each matches, and which are tried first.

use crate::algorithm::CalendarUnit;
use crate::policy::node_ref::NodeRef;
use crate::policy::wildcard::Text;
use crate::request::escape;

/// A descriptor of the configuration, with the descriptors below it.
pub(super) struct Descriptor<'t> {
    pub(super) node: NodeRef<'t>,
    pub(super) key: &'t str,
    pub(super) value: Value<'t>,
    pub(super) limit: Option<RateLimit<'t>>,
    pub(super) is_shadow: bool,
    /// All values that the wildcard matches share one counter.
    pub(super) is_shared: bool,
    pub(super) descriptors: Vec<Self>,
}

/// The values of an entry that a descriptor matches.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Value<'t> {
    Exact(&'t str),
    /// Text in which `*` matches any characters.
    Wildcard(&'t str),
    /// Every value, for which the configuration has the key alone.
    Any,
}

/// The `rate_limit` of a descriptor.
#[derive(Clone, Copy)]
pub(super) enum RateLimit<'t> {
    Unlimited,
    PerUnit { requests: u64, unit: CalendarUnit, name: Option<&'t str> },
}

impl<'t> Value<'t> {
    pub(super) fn parse(text: &'t str) -> Self {
        match text {
            "" => Self::Any,
            text if text.contains('*') => Self::Wildcard(text),
            text => Self::Exact(text),
        }
    }

    /// Returns the position of the kind in the order in which descriptors are tried.
    const fn tier(self) -> u8 {
        match self {
            Self::Exact(_) => 0,
            Self::Wildcard(_) => 1,
            Self::Any => 2,
        }
    }

    /// Returns whether some value can match both.
    fn overlaps(self, other: Self) -> bool {
        match (self, other) {
            (Self::Exact(one), Self::Exact(other)) => one == other,
            (Self::Exact(text), Self::Wildcard(pattern))
            | (Self::Wildcard(pattern), Self::Exact(text)) => wildcard_matches(pattern, text),
            _ => true,
        }
    }

    /// Returns whether this certainly matches every value that `other` matches.
    fn includes(self, other: Self) -> bool {
        match (self, other) {
            (Self::Any, _) => true,
            (Self::Wildcard(pattern), _) if pattern.bytes().all(|byte| byte == b'*') => true,
            (Self::Wildcard(pattern), Self::Exact(text)) => wildcard_matches(pattern, text),
            _ => self == other,
        }
    }
}

/// Matches a value of the configuration: `*` is the only special character in a wildcard.
fn wildcard_matches(pattern: &str, text: &str) -> bool {
    match Text::parse(&pattern.replace('\\', "\\\\")) {
        Text::Exact(exact) => *exact == *text.as_bytes(),
        Text::Wild(wildcard) => wildcard.matches(text.as_bytes()),
    }
}

impl Descriptor<'_> {
    /// Returns the descriptors of one level in the order in which they are tried: exact values, wildcards in file
    /// order, keys alone.
    pub(super) fn in_order<'d, 't>(level: &'d [Descriptor<'t>]) -> Vec<&'d Descriptor<'t>> {
        let mut ordered: Vec<_> = level.iter().collect();
        ordered.sort_by_key(|descriptor| descriptor.value.tier());
        ordered
    }

    /// Returns the pattern that matches this entry in the fact `descriptor`.
    pub(super) fn pattern(&self) -> String {
        let value = match self.value {
            Value::Exact(text) => escape(text),
            Value::Wildcard(pattern) => {
                let mut pieces = pattern.split('*').map(escape);
                let first = pieces.next().unwrap_or_default();
                let mut pattern = first;
                for piece in pieces {
                    if !pattern.ends_with('*') {
                        pattern.push('*');
                    }
                    pattern.push_str(&piece);
                }
                pattern
            }
            Value::Any => "*".to_owned(),
        };
        format!("{}={value}", escape(self.key))
    }

    /// Returns whether some entry can match both.
    pub(super) fn overlaps(&self, other: &Descriptor<'_>) -> bool {
        self.key == other.key && self.value.overlaps(other.value)
    }

    fn includes(&self, other: &Descriptor<'_>) -> bool {
        self.key == other.key && self.value.includes(other.value)
    }

    /// Returns whether every request that reaches this descriptor with entries that `rest` matches after it has a
    /// limit, here or below.
    pub(super) fn covers(&self, rest: &[&Descriptor<'_>]) -> bool {
        let Some((next, rest)) = rest.split_first() else { return self.limit.is_some() };
        self.descriptors.iter().any(|child| child.includes(next))
            && self
                .descriptors
                .iter()
                .filter(|child| child.overlaps(next))
                .all(|child| child.covers(rest))
    }
}
