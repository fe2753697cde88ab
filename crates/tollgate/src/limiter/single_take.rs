//! Takes by policies in which one limit decides every request.

use super::{ActivePolicy, Limiter, LimiterError, Observer, Outcome, resolve};
use crate::decision::{Decision, Status};
use crate::plan::Verb;
use crate::policy::SingleLimit;
use crate::query::QueryView;
use crate::request::{FactValue, Facts, RequestView};
use crate::store::Store;
use crate::time::Timestamp;

/// A request for [`Limiter::take_single`]: the fact of the [`SingleLimit`] and the fact `tenant`, if the request has
/// them, and the cost.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::exhaustive_structs, reason = "callers construct it, and it has no further parts")]
pub struct SingleRequest<'v> {
    /// The value of [`SingleLimit::fact`].
    pub value: Option<&'v FactValue<'v>>,
    /// The fact `tenant`.
    pub tenant: Option<&'v FactValue<'v>>,
    /// The cost in requests. A request with costs in other units is decided by `Limiter::decide`.
    pub cost: u64,
}

impl<S: Store, O: Observer> Limiter<S, O> {
    /// Returns the limit that decides every request by `policy`, if [`take_single`](Self::take_single) can be used: the
    /// policy has only one, there are no overrides, the store [replies in one poll](Store::IS_IMMEDIATE) and the
    /// observer [observes nothing](Observer::IS_ENABLED).
    #[must_use]
    #[inline]
    pub fn single_limit<'p>(
        &self,
        policy: &'p ActivePolicy<O::Handles>,
    ) -> Option<SingleLimit<'p>> {
        if !S::IS_IMMEDIATE || O::IS_ENABLED || !policy.overrides.is_empty() {
            return None;
        }
        policy.policy.single_limit()
    }

    /// Decides a request like [`decide_now`](Self::decide_now) with [`Verb::Take`], in a fraction of the time if it is
    /// allowed: it builds no plan and no decision then. `allowed` is called for an allowed request, with the status of
    /// the limit and the time of the decision, and `read` for any other, with the error if there is one. With a store
    /// without [`take_one_now`](Store::take_one_now), `read` is called for every request. Errors are those of
    /// `decide_now`.
    ///
    /// ```
    /// use tollgate::{FactValue, Limiter, MemoryStore, Policy, SingleRequest};
    ///
    /// let limiter = Limiter::new(MemoryStore::new(), Policy::builtin());
    /// let remaining = limiter.with_active_policy(|policy| {
    ///     let single = limiter.single_limit(policy).ok_or("more than one limit")?;
    ///     let client = FactValue::from("c1");
    ///     let request = SingleRequest { value: Some(&client), tenant: None, cost: 3 };
    ///     let allowed = |status: tollgate::Status<'_>, _| Ok(status.remaining());
    ///     limiter.take_single(policy, single, request, allowed, |_| Err("refused"))
    /// })?;
    /// assert_eq!(remaining, 97);
    /// # Ok::<(), &str>(())
    /// ```
    #[inline(always)]
    pub fn take_single<T>(
        &self,
        policy: &ActivePolicy<O::Handles>,
        single: SingleLimit<'_>,
        request: SingleRequest<'_>,
        allowed: impl FnOnce(Status<'_>, Timestamp) -> T,
        read: impl FnOnce(Result<&Outcome<'_, '_>, LimiterError>) -> T,
    ) -> T {
        let SingleRequest { value, tenant, cost } = request;
        let cost = single.cost(cost);
        let taken = single.with_key(tenant, value, |key| {
            let (status, now) = self.store.take_one_now(key, cost)?;
            Some((status.of_limit(single.limit()), now))
        });
        if let Some((status, now)) = taken
            && status.verdict().is_allowed()
        {
            return allowed(status, now);
        }
        self.read_single(policy, single, request, taken, read)
    }

    /// Passes the outcome of a take to `read`. Decides now if nothing was taken.
    #[cold]
    #[inline(never)]
    fn read_single<T>(
        &self,
        policy: &ActivePolicy<O::Handles>,
        single: SingleLimit<'_>,
        request: SingleRequest<'_>,
        taken: Option<(Status<'_>, Timestamp)>,
        read: impl FnOnce(Result<&Outcome<'_, '_>, LimiterError>) -> T,
    ) -> T {
        let SingleRequest { value, tenant, cost } = request;
        let mut facts = Facts::new();
        // The rule is certain, so other facts of the request do not matter.
        for (name, value) in [(single.fact().as_str(), value), ("tenant", tenant)] {
            if let Some(value) = value {
                facts.push(name, value.clone());
            }
        }
        let resolved = &resolve(policy, QueryView::Request(RequestView::new(&facts, cost)));
        let mut plan = match self.plan(resolved) {
            Ok(plan) => plan,
            Err(error) => return read(Err(error)),
        };
        let decided = match taken {
            Some((status, now)) => {
                let limits = plan.takes().iter().map(|take| take.key().limit());
                Ok(Decision::new(now, limits.map(|limit| status.of_limit(limit))))
            }
            None => self.call_store_now(Verb::Take, &mut plan),
        };
        match decided {
            Ok(decision) => read(Ok(&Outcome::new(resolved, &plan, &decision))),
            Err(error) => read(Err(error.into())),
        }
    }
}
