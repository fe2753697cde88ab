//! A request: what is known of it, and what it costs.

use crate::facts::Facts;
use crate::time::MAX_EXACT;

/// What asks to pass: its facts and its cost.
///
/// ```
/// use tollgate::{Facts, Request};
///
/// let request = Request::new(Facts::of([("client", "c1")])?);
/// assert_eq!(request.cost(), 1);
/// assert_eq!(request.with_cost(0).cost(), 0);
/// # Ok::<(), tollgate::FactsError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request<'a> {
    facts: Facts<'a>,
    cost: u64,
}

impl<'a> Request<'a> {
    /// A request of cost 1.
    #[must_use]
    pub fn new(facts: Facts<'a>) -> Self {
        Self { facts, cost: 1 }
    }

    /// The same request at another cost; 0 only peeks. No limit holds 2^53, so that is what
    /// larger costs become: they never pass either.
    #[must_use]
    pub fn with_cost(self, cost: u64) -> Self {
        Self { cost: cost.min(MAX_EXACT), ..self }
    }

    /// What is known of it.
    #[must_use]
    pub const fn facts(&self) -> &Facts<'a> {
        &self.facts
    }

    /// What it costs.
    #[must_use]
    pub const fn cost(&self) -> u64 {
        self.cost
    }
}
