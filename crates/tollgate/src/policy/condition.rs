//! One condition of a rule: a fact, and the values it may have.

use std::collections::HashSet;

use foldhash::fast::RandomState;
use ipnet::IpNet;

use super::fact_name::FactName;
use super::path::PathPattern;
use super::view::View;
use super::wildcard::{Literal, Wildcard};
use crate::net::Networks;

/// What a rule's `match` says of one fact. It holds if the fact has any of the values.
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
    /// The exact ones of many values, so that a long list costs no more than a short one.
    exact: HashSet<Literal, RandomState>,
    nets: Networks,
}

/// Up to so many values are compared one by one, which is faster than hashing.
const FEW: usize = 8;

/// One value that a fact may have.
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
        let nets = Networks::of(values.iter().filter_map(|value| match value {
            Alternative::Net(net) => Some(net),
            _ => None,
        }));
        let is_long = values.len() > FEW;
        let exact = values.iter().filter(|_| is_long).filter_map(|value| match value {
            Alternative::Exact(text) => Some(text.clone()),
            _ => None,
        });
        let exact = exact.collect();
        Self { name: name.into(), fact, written, values, exact, nets }
    }

    /// Its name in the policy: `path`, `headers.x-plan`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The fact it looks at.
    #[must_use]
    pub const fn fact(&self) -> &FactName {
        &self.fact
    }

    /// The values it may have, as they were written.
    #[must_use]
    pub fn alternatives(&self) -> &[Box<str>] {
        &self.written
    }

    pub(super) fn values(&self) -> &[Alternative] {
        &self.values
    }

    pub(super) fn holds(&self, view: &View<'_, '_>) -> bool {
        if self.fact.is_address() {
            return view.address().is_some_and(|address| self.nets.contains(address));
        }
        view.get(&self.fact).is_some_and(|value| self.accepts(value))
    }

    /// Whether it holds where the fact has this value, which is for an address never so.
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
        let is_long = self.values.len() > FEW;
        self.exact.contains(value)
            || self.values.iter().any(|alternative| match alternative {
                Alternative::Exact(text) => !is_long && **text == *value,
                Alternative::Text(wildcard) => wildcard.matches(value),
                Alternative::Path(pattern) => pattern.matches(value),
                Alternative::Net(_) => false,
            })
    }
}
