//! Decisions without a future, for stores that reply at once.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use super::{ActivePolicy, Limiter, LimiterError, Observer, Outcome, resolve};
use crate::decision::Decision;
use crate::plan::{Plan, Verb};
use crate::query::{Query, QueryView};
use crate::request::{Facts, RequestView};
use crate::store::{Store, StoreError, StoreErrorKind};

impl<S: Store, O: Observer> Limiter<S, O> {
    /// Decides a request with these facts and this cost, like [`decide_facts`](Self::decide_facts), for a store that
    /// [replies in one poll](Store::IS_IMMEDIATE).
    ///
    /// ```
    /// use tollgate::{Facts, Limiter, MemoryStore, Policy, Verb};
    ///
    /// let limiter = Limiter::new(MemoryStore::new(), Policy::builtin());
    /// let facts = Facts::of([("client", "c1")])?;
    /// let remaining = limiter.with_active_policy(|policy| {
    ///     limiter.decide_now(policy, Verb::Take, (&facts, 3), |outcome| outcome.decision.remaining())
    /// })?;
    /// assert_eq!(remaining, Some(97));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`decide`](Self::decide); a store that does not reply in one poll fails with
    /// [`StoreErrorKind::Timeout`].
    #[inline(always)]
    pub fn decide_now<T>(
        &self,
        policy: &ActivePolicy<O::Handles>,
        verb: Verb,
        (facts, cost): (&Facts<'_>, u64),
        read: impl FnOnce(&Outcome<'_, '_>) -> T,
    ) -> Result<T, LimiterError> {
        let query = QueryView::Request(RequestView::new(facts, cost));
        self.decide_view_now(policy, verb, query, read)
    }

    /// Decides a query like [`decide_now`](Self::decide_now).
    ///
    /// ```
    /// use tollgate::{Costs, Facts, Limiter, MemoryStore, Policy, Query, Verb};
    ///
    /// let limiter = Limiter::new(MemoryStore::new(), Policy::builtin());
    /// let query = Query::from(Facts::of([("client", "c1")])?);
    /// let query = query.with_costs(Costs::requests(3).and("tokens", 1800)?);
    /// let remaining = limiter.with_active_policy(|policy| {
    ///     limiter.decide_query_now(policy, Verb::Take, &query, |outcome| outcome.decision.remaining())
    /// })?;
    /// assert_eq!(remaining, Some(97));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`decide_now`](Self::decide_now).
    pub fn decide_query_now<T>(
        &self,
        policy: &ActivePolicy<O::Handles>,
        verb: Verb,
        query: &Query<'_>,
        read: impl FnOnce(&Outcome<'_, '_>) -> T,
    ) -> Result<T, LimiterError> {
        self.decide_view_now(policy, verb, query.into(), read)
    }

    #[inline(always)]
    fn decide_view_now<T>(
        &self,
        policy: &ActivePolicy<O::Handles>,
        verb: Verb,
        query: QueryView<'_, '_>,
        read: impl FnOnce(&Outcome<'_, '_>) -> T,
    ) -> Result<T, LimiterError> {
        let mut since = self.now();
        let resolved = &resolve(policy, query);
        let mut plan = self.plan(resolved)?;
        let result = self.call_store_now(verb, &mut plan);
        self.observe(&mut since, policy, (verb, resolved), &result);
        // By reference, because a decision is costly to move.
        match result {
            Ok(ref decision) => Ok(read(&Outcome::new(resolved, &plan, decision))),
            Err(error) => Err(error.into()),
        }
    }

    /// Sends a plan to a store that replies in one poll.
    #[inline(always)]
    pub(super) fn call_store_now<'p>(
        &self,
        verb: Verb,
        plan: &mut Plan<'p>,
    ) -> Result<Decision<'p>, StoreError> {
        poll_once(self.call_store(verb, plan)).unwrap_or_else(|| {
            let message = "the store declares IS_IMMEDIATE but did not complete in one poll";
            Err(StoreError::new(StoreErrorKind::Timeout, message))
        })
    }
}

/// Polls a future once; `None` if it is not complete then.
#[inline(always)]
fn poll_once<T>(future: impl Future<Output = T>) -> Option<T> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => Some(output),
        Poll::Pending => None,
    }
}
