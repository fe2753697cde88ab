//! Calls of a limiter that return owned decisions.

use std::fmt;
use std::future::{Future, IntoFuture};
use std::pin::Pin;

use super::{Limiter, LimiterError, Observer, Outcome};
use crate::costs::Costs;
use crate::decision::OwnedDecision;
use crate::plan::Verb;
use crate::query::Query;
use crate::store::Store;

/// A call of a [`Limiter`]: set the cost, then `.await` it.
#[must_use = "a call does nothing until it is awaited"]
pub struct LimiterCall<'l, 'q, S, O: Observer = ()> {
    limiter: &'l Limiter<S, O>,
    verb: Verb,
    query: Query<'q>,
}

impl<'l, 'q, S: Store, O: Observer> LimiterCall<'l, 'q, S, O> {
    pub(super) const fn new(limiter: &'l Limiter<S, O>, verb: Verb, query: Query<'q>) -> Self {
        Self { limiter, verb, query }
    }

    /// Sets the cost in requests. The default is that of the query, 1 for facts; 0 only peeks.
    pub fn cost(self, cost: u64) -> Self {
        self.costs(Costs::requests(cost))
    }

    /// Sets the costs by unit.
    ///
    /// ```
    /// use tollgate::{Costs, Facts, Limiter, MemoryStore, Policy};
    ///
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// let text = "
    /// version: 1
    /// rules: [{ name: chat, per: [client], limits: [60/min, { rate: 90000/min, unit: tokens, name: tokens }] }]
    /// ";
    /// let policy = Policy::from_yaml("policy.yaml", text, Policy::builtin_limit())?;
    /// let limiter = Limiter::new(MemoryStore::new(), policy);
    /// let facts = Facts::of([("client", "c1")])?;
    /// let decision = limiter.check(&facts).costs(Costs::requests(1).and("tokens", 90_001)?).await?;
    /// assert_eq!((decision.is_allowed(), decision.limit_name()), (false, Some("tokens")));
    /// # Ok(())
    /// # }
    /// ```
    pub fn costs(self, costs: Costs) -> Self {
        Self { query: self.query.with_costs(costs), ..self }
    }
}

impl<S, O: Observer> fmt::Debug for LimiterCall<'_, '_, S, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LimiterCall")
            .field("verb", &self.verb)
            .field("query", &self.query)
            .finish_non_exhaustive()
    }
}

impl<'l, 'q: 'l, S: Store, O: Observer> IntoFuture for LimiterCall<'l, 'q, S, O> {
    type Output = Result<OwnedDecision, LimiterError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send + 'l>>;

    fn into_future(self) -> Self::IntoFuture {
        let Self { limiter, verb, query } = self;
        Box::pin(async move { limiter.decide(verb, &query, copy_decision).await })
    }
}

/// A function, because a path to the method is not general enough over the lifetimes of an outcome.
fn copy_decision(outcome: &Outcome<'_, '_>) -> OwnedDecision {
    outcome.to_owned_decision()
}
