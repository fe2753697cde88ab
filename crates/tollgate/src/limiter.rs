//! The limiter: a policy, a store and an observer. Every decision takes this one path.

mod active_policy;
mod call;
mod client;
mod client_id;
mod error;
mod immediate;
mod observer;
mod outcome;
mod override_proposal;
mod receipt;
mod reservation;
mod reserve;
mod resolved_query;
mod series;
mod single_take;

use std::mem;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;

pub use active_policy::ActivePolicy;
pub use call::LimiterCall;
pub use client::{ClientCounter, ClientUsage};
pub use client_id::ClientId;
pub use error::LimiterError;
pub use observer::{Observation, Observer};
pub use outcome::{Explanation, Outcome};
pub use override_proposal::{LimitChange, OverrideProposal, RuleSelection};
pub use receipt::Receipt;
pub use reservation::{Reservation, ReserveCall, SettleError};
pub use reserve::{ReservationTerms, ReserveError, ReserveOutcome};
pub use resolved_query::ResolvedQuery;
pub use series::Series;
pub use single_take::SingleRequest;

use crate::algorithm::PermitId;
use crate::decision::{Decision, Permit};
use crate::plan::{OnStoreLoss, Plan, Take, Verb};
use crate::policy::{ActiveOverrides, Overrides, Policy, Trace};
use crate::query::{Query, QueryView};
use crate::request::{Facts, RequestView};
use crate::store::{Store, StoreError};
use crate::time::Timestamp;

/// Decides requests by a policy that can be replaced at any time.
///
/// ```
/// use tollgate::{Facts, Limiter, MemoryStore, Policy};
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let limiter = Limiter::new(MemoryStore::new(), Policy::builtin());
/// let facts = Facts::of([("client", "user:1"), ("path", "/search")])?;
///
/// let decision = limiter.check(&facts).cost(3).await?;
/// assert!(decision.is_allowed());
/// assert_eq!(decision.remaining(), Some(97));
/// assert_eq!((decision.rule(), decision.limit_name()), ("default", Some("60s")));
/// # Ok(())
/// # }
/// ```
///
/// [`check`](Self::check), [`peek`](Self::peek) and [`refund`](Self::refund) return owned decisions. Hot paths use
/// [`decide`](Self::decide), which passes a borrowed decision to a closure and allocates nothing for it.
#[derive(Debug)]
pub struct Limiter<S, O: Observer = ()> {
    store: S,
    observer: O,
    current: ArcSwap<ActivePolicy<O::Handles>>,
    /// Replaces the behaviour set in the policy, if any.
    on_store_loss: Option<OnStoreLoss>,
}

impl<S: Store> Limiter<S> {
    /// Creates a limiter that decides by `policy` and counts in `store`.
    pub fn new(store: S, policy: Policy) -> Self {
        Self::with_observer(store, policy, ())
    }
}

impl<S: Store, O: Observer> Limiter<S, O> {
    /// Creates a limiter that reports its decisions to `observer`, for metrics and logs.
    pub fn with_observer(store: S, policy: Policy, observer: O) -> Self {
        let handles = observer.resolve(&policy);
        let (policy, handles) = (Arc::new(policy), Arc::new(handles));
        let overrides = ActiveOverrides::default();
        let current = ArcSwap::from_pointee(ActivePolicy { policy, handles, overrides });
        Self { store, observer, current, on_store_loss: None }
    }

    /// Sets what happens while a [`FallbackStore`](crate::FallbackStore) has lost its shared store, for every limit,
    /// inline limits included. Replaces `on_store_loss` of the policy. Other stores return an error instead.
    ///
    /// ```
    /// use tollgate::{FallbackStore, Limiter, MemoryStore, OnStoreLoss, Policy};
    ///
    /// # let redis = MemoryStore::new();
    /// let store = FallbackStore::builder(redis).build();
    /// let limiter = Limiter::new(store, Policy::builtin()).on_store_loss(OnStoreLoss::Deny);
    /// # drop(limiter);
    /// ```
    #[must_use]
    pub fn on_store_loss(mut self, on_store_loss: OnStoreLoss) -> Self {
        self.on_store_loss = Some(on_store_loss);
        self
    }

    /// The store.
    #[must_use]
    pub const fn store(&self) -> &S {
        &self.store
    }

    /// The observer.
    #[must_use]
    pub const fn observer(&self) -> &O {
        &self.observer
    }

    /// Returns the active policy and overrides. The returned value does not change when others are set.
    #[must_use]
    pub fn active_policy(&self) -> Arc<ActivePolicy<O::Handles>> {
        self.current.load_full()
    }

    /// Calls `read` with the active policy, without the cost of a shared reference to it. `read` should be short: it
    /// must not wait.
    #[inline]
    pub fn with_active_policy<T>(
        &self,
        read: impl FnOnce(&Arc<ActivePolicy<O::Handles>>) -> T,
    ) -> T {
        read(&self.current.load())
    }

    /// Replaces the policy. Counters are found by rule and limit name, so usage is kept; overrides stay active.
    pub fn set_policy(&self, policy: Policy) {
        let handles = Arc::new(self.observer.resolve(&policy));
        let policy = Arc::new(policy);
        self.current.rcu(|current| ActivePolicy {
            policy: Arc::clone(&policy),
            handles: Arc::clone(&handles),
            overrides: ActiveOverrides::of(current.overrides.all().clone()),
        });
    }

    /// Replaces all overrides. Usage is kept. An expired override stays active until overrides are set without it.
    pub fn set_overrides(&self, overrides: &Overrides) {
        self.current.rcu(|current| ActivePolicy {
            policy: Arc::clone(&current.policy),
            handles: Arc::clone(&current.handles),
            overrides: current.overrides.replaced_by(overrides.clone()),
        });
    }

    /// Decides a request and consumes its cost, or nothing if it is refused. Takes [`Facts`](crate::Facts) by
    /// reference, or any [`Query`]; add [`cost`](LimiterCall::cost), then `.await`.
    pub fn check<'q>(&self, query: impl Into<Query<'q>>) -> LimiterCall<'_, 'q, S, O> {
        LimiterCall::new(self, Verb::Take, query.into())
    }

    /// Returns what [`check`](Self::check) would return and consumes nothing.
    pub fn peek<'q>(&self, query: impl Into<Query<'q>>) -> LimiterCall<'_, 'q, S, O> {
        LimiterCall::new(self, Verb::Peek, query.into())
    }

    /// Returns the cost to every limit of the request, never above full.
    ///
    /// ```
    /// # use tollgate::{Facts, Limiter, MemoryStore, Policy};
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// let limiter = Limiter::new(MemoryStore::new(), Policy::builtin());
    /// let facts = Facts::of([("client", "c1")])?;
    /// let _ = limiter.check(&facts).cost(3).await?;
    /// assert_eq!(limiter.refund(&facts).cost(2).await?.remaining(), Some(99));
    /// limiter.reset(&facts).await?;
    /// assert_eq!(limiter.peek(&facts).await?.remaining(), Some(100));
    /// # Ok(())
    /// # }
    /// ```
    pub fn refund<'q>(&self, query: impl Into<Query<'q>>) -> LimiterCall<'_, 'q, S, O> {
        LimiterCall::new(self, Verb::Refund, query.into())
    }

    /// Decides a query and passes the outcome to `read`, which may borrow from it. Allocates nothing for the
    /// outcome; [`check`](Self::check) is the simpler form.
    ///
    /// ```
    /// use tollgate::{Facts, Limiter, MemoryStore, Policy, Query, Verb};
    ///
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// let limiter = Limiter::new(MemoryStore::new(), Policy::builtin());
    /// let facts = Facts::of([("client", "c1")])?;
    /// let remaining = limiter
    ///     .decide(Verb::Take, &Query::from(&facts), |outcome| outcome.decision.remaining())
    ///     .await?;
    /// assert_eq!(remaining, Some(99));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The matching rules add up to more than 16 limits, or the store failed.
    pub async fn decide<T>(
        &self,
        verb: Verb,
        query: &Query<'_>,
        read: impl FnOnce(&Outcome<'_, '_>) -> T,
    ) -> Result<T, LimiterError> {
        self.series().decide(verb, query, read).await
    }

    /// Decides by a policy that was active earlier, so that a refund or a later charge concerns the limits that the
    /// first decision used.
    ///
    /// ```
    /// use tollgate::{Facts, Limiter, MemoryStore, Outcome, Policy, Query, Verb};
    ///
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// let limiter = Limiter::new(MemoryStore::new(), Policy::builtin());
    /// let facts = Facts::of([("client", "c1")])?;
    /// let query = Query::from(&facts);
    /// let policy = limiter.active_policy();
    /// limiter.decide_with(&policy, Verb::Take, &query, |_| ()).await?;
    /// let remaining = |outcome: &Outcome<'_, '_>| outcome.decision.remaining();
    /// assert_eq!(limiter.decide_with(&policy, Verb::Refund, &query, remaining).await?, Some(100));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`decide`](Self::decide).
    pub async fn decide_with<T>(
        &self,
        policy: &ActivePolicy<O::Handles>,
        verb: Verb,
        query: &Query<'_>,
        read: impl FnOnce(&Outcome<'_, '_>) -> T,
    ) -> Result<T, LimiterError> {
        self.decide_since(&mut self.now(), policy, (verb, query.into()), read).await
    }

    /// Decides a request with these facts and this cost. Like [`decide_with`](Self::decide_with), without moving the
    /// facts into a [`Query`].
    ///
    /// # Errors
    /// As [`decide`](Self::decide).
    pub async fn decide_facts<T>(
        &self,
        policy: &ActivePolicy<O::Handles>,
        verb: Verb,
        (facts, cost): (&Facts<'_>, u64),
        read: impl FnOnce(&Outcome<'_, '_>) -> T,
    ) -> Result<T, LimiterError> {
        let query = QueryView::Request(RequestView::new(facts, cost));
        self.decide_since(&mut self.now(), policy, (verb, query), read).await
    }

    /// Decides a query. `since` is the time at which the decision began, and is set to the time at which it ended.
    async fn decide_since<T>(
        &self,
        since: &mut Option<Instant>,
        policy: &ActivePolicy<O::Handles>,
        (verb, query): (Verb, QueryView<'_, '_>),
        read: impl FnOnce(&Outcome<'_, '_>) -> T,
    ) -> Result<T, LimiterError> {
        let resolved = &resolve(policy, query);
        let mut plan = self.plan(resolved)?;
        let result = self.call_store(verb, &mut plan).await;
        self.observe(since, policy, (verb, resolved), &result);
        Ok(read(&Outcome::new(resolved, &plan, &result?)))
    }

    /// Sends a plan to the store, with a permit if it takes slots.
    #[inline(always)]
    async fn call_store<'p>(
        &self,
        verb: Verb,
        plan: &mut Plan<'p>,
    ) -> Result<Decision<'p>, StoreError> {
        if matches!(verb, Verb::Take | Verb::Admit) && plan.holds_slots() {
            *plan = plan.clone().with_permit(PermitId::random());
        }
        match verb {
            Verb::Take => self.store.take(plan).await,
            Verb::Peek => self.store.peek(plan).await,
            Verb::Refund => self.store.refund(plan).await,
            Verb::Admit => self.admit(plan).await,
            Verb::Debit => {
                *plan = plan.clone().only(|take| !take.holds_slots());
                self.store.debit(plan, Duration::ZERO).await
            }
        }
    }

    /// Returns the time, or `None` if the observer does not measure it.
    fn now(&self) -> Option<Instant> {
        O::IS_TIMED.then(Instant::now)
    }

    /// Plans a query, with the limiter's own behaviour on store loss if it has one.
    fn plan<'p>(&self, resolved: &'p ResolvedQuery<'p>) -> Result<Plan<'p>, LimiterError> {
        let plan = resolved.plan()?;
        Ok(match self.on_store_loss {
            Some(on_store_loss) => plan.with_on_store_loss(on_store_loss),
            None => plan,
        })
    }

    /// Reports a decision to the observer, and sets `since` to the time at which it ended. Every decision is observed here
    /// and only here.
    fn observe(
        &self,
        since: &mut Option<Instant>,
        policy: &ActivePolicy<O::Handles>,
        (verb, query): (Verb, &ResolvedQuery<'_>),
        result: &Result<Decision<'_>, StoreError>,
    ) {
        let begun = mem::replace(since, self.now());
        let took = since.zip(begun).map_or(Duration::ZERO, |(ended, begun)| ended - begun);
        let observation = Observation { verb, query, result: result.as_ref(), took };
        self.observer.decided(&policy.handles, &observation);
    }

    /// Peeks at all limits, then takes the slots. A request admitted in between takes no slot that does not exist,
    /// because the slots are taken atomically.
    async fn admit<'p>(&self, plan: &mut Plan<'p>) -> Result<Decision<'p>, StoreError> {
        let peeked = self.store.peek(plan).await?;
        if !peeked.is_allowed() || !plan.holds_slots() {
            return Ok(peeked);
        }
        *plan = plan.clone().only(Take::holds_slots);
        self.store.take(plan).await
    }

    /// Refunds what a request took `age` ago under an earlier policy. Only what still counts is refunded: an amount
    /// whose window has passed has already been returned.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::{Facts, Limiter, MemoryStore, Outcome, Policy, Query, Receipt, Verb};
    ///
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// let limiter = Limiter::new(MemoryStore::new(), Policy::builtin());
    /// let facts = Facts::of([("client", "c1")])?;
    /// let query = Query::from(&facts);
    /// let policy = limiter.active_policy();
    /// let receipt = limiter.decide_with(&policy, Verb::Take, &query, Receipt::of).await?;
    /// let age = Duration::from_secs(1);
    /// let remaining = |outcome: &Outcome<'_, '_>| outcome.decision.remaining();
    /// let refunded = limiter.refund_receipt(&policy, &query, (&receipt, age), remaining).await?;
    /// assert_eq!(refunded, Some(100));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`decide`](Self::decide).
    pub async fn refund_receipt<T>(
        &self,
        policy: &ActivePolicy<O::Handles>,
        query: &Query<'_>,
        (receipt, age): (&Receipt, Duration),
        read: impl FnOnce(&Outcome<'_, '_>) -> T,
    ) -> Result<T, LimiterError> {
        let (mut since, resolved) = (self.now(), &resolve(policy, query.into()));
        let plan = receipt.still_counted(self.plan(resolved)?, age);
        let result = self.store.refund(&plan).await;
        self.observe(&mut since, policy, (Verb::Refund, resolved), &result);
        Ok(read(&Outcome::new(resolved, &plan, &result?)))
    }

    /// Explains a query: the rules tried and why, the current state, and the decision that a check would return.
    /// Consumes nothing. Counts of the outcome are those after the take, times those before it.
    ///
    /// # Errors
    /// As [`decide`](Self::decide).
    pub async fn explain<T>(
        &self,
        query: &Query<'_>,
        read: impl FnOnce(&Explanation<'_, '_>) -> T,
    ) -> Result<T, LimiterError> {
        let policy = self.current.load_full();
        let trace = match query {
            Query::ByPolicy(request) => policy.policy.explain(request),
            Query::Inline(_) => Trace::default(),
        };
        let resolved = &resolve(&policy, query.into());
        let plan = &self.plan(resolved)?;
        let now = &self.store.peek(plan).await?;
        let after = now.if_taken(plan);
        let outcome = &Outcome::new(resolved, plan, &after);
        Ok(read(&Explanation { tried: trace.tried(), now, outcome }))
    }

    /// Returns whether a check of this query may take concurrency slots, which its caller must release.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::{Facts, Inline, Limit, Limiter, MemoryStore, Policy, Query};
    ///
    /// let limiter = Limiter::new(MemoryStore::new(), Policy::builtin());
    /// assert!(!limiter.may_hold_slots(&Query::from(Facts::of([("client", "c1")])?)));
    /// let slots = Limit::concurrency(5, Duration::from_secs(60))?;
    /// assert!(limiter.may_hold_slots(&Query::from(Inline::new("", "c1", vec![slots], 1)?)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn may_hold_slots(&self, query: &Query<'_>) -> bool {
        match query {
            Query::ByPolicy(_) => self.current.load().policy.holds_slots(),
            Query::Inline(inline) => inline.holds_slots(),
        }
    }

    /// Resets the usage of every counter that the query would take from.
    ///
    /// # Errors
    /// As [`decide`](Self::decide).
    pub async fn reset<'q>(&self, query: impl Into<Query<'q>>) -> Result<(), LimiterError> {
        let (policy, query) = (self.current.load_full(), query.into());
        let resolved = resolve(&policy, (&query).into());
        for take in resolved.plan()?.takes() {
            self.store.reset(&take.key()).await?;
        }
        Ok(())
    }

    /// Releases the slots of a permit before they expire. Returns whether any slot was still held.
    ///
    /// # Errors
    /// The store failed.
    pub async fn release(&self, permit: &Permit) -> Result<bool, LimiterError> {
        Ok(self.store.release(permit).await?)
    }

    /// Extends a permit by its time to live. Returns the new expiry, or `None` if a slot was already lost.
    ///
    /// # Errors
    /// The store failed.
    pub async fn renew(&self, permit: &Permit) -> Result<Option<Timestamp>, LimiterError> {
        Ok(self.store.renew(permit).await?)
    }
}

#[inline(always)]
fn resolve<'a, H>(policy: &'a ActivePolicy<H>, query: QueryView<'a, '_>) -> ResolvedQuery<'a> {
    match query {
        QueryView::Request(request) => {
            ResolvedQuery::Policy(policy.policy.plan_with(&request, Some(&policy.overrides)))
        }
        QueryView::Inline(inline) => ResolvedQuery::Inline(inline),
    }
}
