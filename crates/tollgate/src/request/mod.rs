//! A request: its facts and its cost.

mod facts;

#[cfg(feature = "policy")]
pub(crate) use facts::is_fact_name;
pub use facts::{FactValue, Facts, FactsError, FactsErrorKind, MAX_FACT_LENGTH, MAX_FACTS};

use crate::time::MAX_EXACT;

/// A request to decide: its facts and its cost.
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
    /// Creates a request with cost 1.
    #[must_use]
    pub fn new(facts: Facts<'a>) -> Self {
        Self { facts, cost: 1 }
    }

    /// Sets the cost; 0 is a peek. A cost above 2^53 becomes 2^53, which no limit can hold, so the verdict is
    /// the same.
    #[must_use]
    pub fn with_cost(self, cost: u64) -> Self {
        Self { cost: cost.min(MAX_EXACT), ..self }
    }

    /// Copies the facts, so that the request borrows nothing.
    ///
    /// ```
    /// use tollgate::{Facts, Request};
    ///
    /// let kept: Request<'static> = {
    ///     let header = String::from("c1");
    ///     Request::new(Facts::of([("client", &header)])?).into_owned()
    /// };
    /// assert_eq!(kept.cost(), 1);
    /// # Ok::<(), tollgate::FactsError>(())
    /// ```
    #[must_use]
    pub fn into_owned(self) -> Request<'static> {
        Request { facts: self.facts.into_owned(), cost: self.cost }
    }

    /// Returns the facts.
    #[must_use]
    pub const fn facts(&self) -> &Facts<'a> {
        &self.facts
    }

    /// Returns the cost.
    #[must_use]
    pub const fn cost(&self) -> u64 {
        self.cost
    }
}
