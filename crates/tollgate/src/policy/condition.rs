//! One condition of a rule: a fact and its accepted values.

use std::collections::HashSet;

use foldhash::fast::RandomState;
use ipnet::IpNet;

use super::fact_name::FactName;
use super::normalized_facts::NormalizedFacts;
use super::path::PathPattern;
use super::wildcard::{Literal, Wildcard};
use crate::net::Networks;

/// One entry of a rule's `match`: a fact and its accepted values. It holds if the fact has any of them.
///
/// ```
/// use tollgate::policy::Policy;
/// use tollgate::{Limit, Quota};
///
/// let text = "
/// version: 1
/// rules:
///   - { name: search, match: { method: [GET, HEAD], path: /search/** }, limits: [10/min] }
/// ";
/// let policy = Policy::from_yaml("p.yaml", text, Limit::block())?;
/// let method = &policy.rules()[0].conditions()[0];
/// assert_eq!(method.name(), "method");
/// assert_eq!(method.alternatives(), ["GET".into(), "HEAD".into()]);
/// # Ok::<(), tollgate::policy::PolicyError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Condition {
    name: Box<str>,
    fact: FactName,
    written: Vec<Box<str>>,
    values: Vec<Alternative>,
    /// The exact values if there are more than [`MAX_LINEAR`], so that a long list costs no more than a short one.
    exact: HashSet<Literal, RandomState>,
    networks: Networks,
}

/// Up to this number of values, comparing one by one is faster than hashing.
const MAX_LINEAR: usize = 8;

/// One accepted value of a fact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Alternative {
    Exact(Literal),
    Text(Wildcard),
    Path(PathPattern),
    Net(IpNet),
}

impl Condition {
    pub(super) fn new(
        name: &str,
        fact: FactName,
        written: Vec<Box<str>>,
        values: Vec<Alternative>,
    ) -> Self {
        let networks = Networks::of(values.iter().filter_map(|value| match value {
            Alternative::Net(net) => Some(net),
            _ => None,
        }));
        let is_long = values.len() > MAX_LINEAR;
        let exact = values.iter().filter(|_| is_long).filter_map(|value| match value {
            Alternative::Exact(text) => Some(text.clone()),
            _ => None,
        });
        let exact = exact.collect();
        Self { name: name.into(), fact, written, values, exact, networks }
    }

    /// Returns the name in the policy, such as `path` or `headers.x-plan`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the fact that the condition tests.
    #[must_use]
    pub const fn fact(&self) -> &FactName {
        &self.fact
    }

    /// Returns the accepted values as written in the policy.
    #[must_use]
    pub fn alternatives(&self) -> &[Box<str>] {
        &self.written
    }

    pub(super) fn values(&self) -> &[Alternative] {
        &self.values
    }

    pub(super) fn holds(&self, facts: &NormalizedFacts<'_, '_>) -> bool {
        if self.fact.is_address() {
            return facts.address().is_some_and(|address| self.networks.contains(address));
        }
        facts.get(&self.fact).is_some_and(|value| self.accepts(value))
    }

    /// Returns whether the condition holds for this value. Always false for conditions on `ip`.
    ///
    /// ```
    /// use tollgate::Limit;
    /// use tollgate::policy::Policy;
    ///
    /// let text = "
    /// version: 1
    /// rules: [{ name: guests, match: { client: guest-* }, limits: [10/min] }]
    /// ";
    /// let policy = Policy::from_yaml("p.yaml", text, Limit::block())?;
    /// let client = &policy.rules()[0].conditions()[0];
    /// assert!(client.accepts(b"guest-1") && !client.accepts(b"acme"));
    /// # Ok::<(), tollgate::policy::PolicyError>(())
    /// ```
    #[must_use]
    pub fn accepts(&self, value: &[u8]) -> bool {
        let is_long = self.values.len() > MAX_LINEAR;
        self.exact.contains(value)
            || self.values.iter().any(|alternative| match alternative {
                Alternative::Exact(text) => !is_long && **text == *value,
                Alternative::Text(wildcard) => wildcard.matches(value),
                Alternative::Path(pattern) => pattern.matches(value),
                Alternative::Net(_) => false,
            })
    }
}
