//! A request: its facts and its costs.

mod descriptor;
mod fact_value;
mod facts;
mod normalized_path;

pub use descriptor::MAX_DESCRIPTOR_LENGTH;
#[cfg(feature = "policy")]
pub(crate) use descriptor::{ENTRY_PREFIX, entry_fact, escape};
pub use fact_value::FactValue;
#[cfg(feature = "policy")]
pub(crate) use fact_value::SHORT;
pub use facts::{Facts, FactsError, FactsErrorKind, MAX_FACT_LENGTH, MAX_FACTS};
#[cfg(feature = "policy")]
pub(crate) use facts::{is_fact_name, lowercase_header};
pub use normalized_path::{PathError, normalize_path};

use crate::costs::Costs;
#[cfg(feature = "policy")]
use crate::costs::OtherCosts;
use crate::limit::Limit;
#[cfg(feature = "policy")]
use crate::time::MAX_EXACT;

/// A request to decide: its facts, its costs and optionally its own limit.
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
    costs: Costs,
    is_in_unit_of_rule: bool,
    uses_default: bool,
    /// Boxed, because most requests have none.
    limit: Option<Box<Limit>>,
}

impl<'a> Request<'a> {
    /// Creates a request that costs one request.
    #[must_use]
    pub fn new(facts: Facts<'a>) -> Self {
        Self {
            facts,
            costs: Costs::requests(1),
            is_in_unit_of_rule: false,
            uses_default: true,
            limit: None,
        }
    }

    /// Sets the cost in requests; other units cost 0. A cost of 0 is a peek. A cost above 2^53 becomes 2^53, which no
    /// limit can hold, so the verdict is the same.
    #[must_use]
    pub fn with_cost(self, cost: u64) -> Self {
        self.with_costs(Costs::requests(cost))
    }

    /// Sets the costs.
    ///
    /// ```
    /// use tollgate::{Costs, Facts, Request};
    ///
    /// let request = Request::new(Facts::of([("client", "c1")])?);
    /// let request = request.with_costs(Costs::requests(1).and("tokens", 1800)?);
    /// assert_eq!((request.cost(), request.costs().iter().count()), (1, 2));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn with_costs(self, costs: Costs) -> Self {
        Self { costs, ..self }
    }

    /// Counts the cost in the unit of each matching rule whose limits all count one unit, instead of in requests. The
    /// hits of Envoy's rate limit service work this way. Costs that name another unit do not change.
    ///
    /// ```
    /// use tollgate::{Facts, Policy, Request};
    ///
    /// let text = "
    /// version: 1
    /// rules: [{ name: chat, limits: [{ rate: 90000/min, unit: tokens }, { concurrency: 5 }] }]
    /// ";
    /// let policy = Policy::from_yaml("p.yaml", text, Policy::builtin_limit())?;
    /// let request = Request::new(Facts::of([("client", "c1")])?).with_cost(1800).in_unit_of_rule();
    /// let planned = policy.plan(&request);
    /// let plan = planned.plan()?;
    /// assert_eq!((plan.takes()[0].cost(), plan.takes()[1].cost()), (1800, 1));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn in_unit_of_rule(self) -> Self {
        Self { is_in_unit_of_rule: true, ..self }
    }

    /// Leaves the request without a limit if no rule of the policy matches it: the default limit does not apply.
    /// Envoy's rate limit service works this way.
    ///
    /// ```
    /// use tollgate::{Facts, Policy, Request};
    ///
    /// let facts = Facts::of_descriptor("messaging", [("to_number", "1234")], 0)?;
    /// let request = Request::new(facts).without_default_limit();
    /// assert!(Policy::builtin().plan(&request).matched().is_empty());
    /// # Ok::<(), tollgate::FactsError>(())
    /// ```
    #[must_use]
    pub fn without_default_limit(self) -> Self {
        Self { uses_default: false, ..self }
    }

    /// Sets a limit in place of the limits of the last matching rule, whose subject and settings it uses; other
    /// matching rules do not apply. Without a matching rule it is counted as an inline limit, by the facts `domain` and
    /// `descriptor`. Envoy's descriptors can bring such a limit.
    ///
    /// ```
    /// use tollgate::{Facts, Limit, Policy, Quota, Request};
    ///
    /// let facts = Facts::of_descriptor("edge", [("user", "u1")], 0)?;
    /// let request = Request::new(facts).with_limit(Limit::fixed_window(Quota::per_minute(5))?);
    /// let policy = Policy::builtin();
    /// let planned = policy.plan(&request.without_default_limit());
    /// let [matched] = planned.matched() else { return Err("not one rule".into()) };
    /// assert_eq!((matched.rule().name(), matched.limits()[0].count()), ("inline", 5));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn with_limit(self, limit: Limit) -> Self {
        Self { limit: Some(Box::new(limit)), ..self }
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
        let Self { facts, costs, is_in_unit_of_rule, uses_default, limit } = self;
        Request { facts: facts.into_owned(), costs, is_in_unit_of_rule, uses_default, limit }
    }

    /// Returns the facts.
    #[must_use]
    pub const fn facts(&self) -> &Facts<'a> {
        &self.facts
    }

    /// Returns the cost in requests.
    #[must_use]
    pub const fn cost(&self) -> u64 {
        self.costs.requests_amount()
    }

    /// Returns the costs.
    #[must_use]
    pub const fn costs(&self) -> &Costs {
        &self.costs
    }

    /// Returns whether the default limit applies if no rule matches; see
    /// [`without_default_limit`](Self::without_default_limit).
    #[must_use]
    pub const fn uses_default_limit(&self) -> bool {
        self.uses_default
    }

    /// Returns the request's own limit; see [`with_limit`](Self::with_limit).
    #[must_use]
    pub fn limit(&self) -> Option<&Limit> {
        self.limit.as_deref()
    }
}

/// A request to decide, borrowed: the parts of a [`Request`], or facts and a cost in requests.
#[cfg(feature = "policy")]
#[derive(Debug, Clone, Copy)]
pub(crate) struct RequestView<'v, 'r> {
    pub(crate) facts: &'v Facts<'r>,
    /// The cost in requests.
    pub(crate) cost: u64,
    pub(crate) other_costs: Option<&'v OtherCosts>,
    pub(crate) is_in_unit_of_rule: bool,
    pub(crate) uses_default: bool,
    pub(crate) limit: Option<&'v Limit>,
}

#[cfg(feature = "policy")]
impl<'v, 'r> RequestView<'v, 'r> {
    /// Creates the view of a request without its own limit. See [`Request::with_cost`] for the largest cost.
    pub(crate) fn new(facts: &'v Facts<'r>, cost: u64) -> Self {
        Self {
            facts,
            cost: cost.min(MAX_EXACT),
            other_costs: None,
            is_in_unit_of_rule: false,
            uses_default: true,
            limit: None,
        }
    }
}

#[cfg(feature = "policy")]
impl<'v, 'r> From<&'v Request<'r>> for RequestView<'v, 'r> {
    fn from(request: &'v Request<'r>) -> Self {
        let Request { facts, costs, is_in_unit_of_rule, uses_default, limit } = request;
        Self {
            facts,
            cost: costs.requests_amount(),
            other_costs: costs.others(),
            is_in_unit_of_rule: *is_in_unit_of_rule,
            uses_default: *uses_default,
            limit: limit.as_deref(),
        }
    }
}
