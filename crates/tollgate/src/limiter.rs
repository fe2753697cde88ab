//! The limiter: a policy, a store, and one who watches. Every decision takes this one path.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use thiserror::Error;

use crate::asked::{Applied, Asked};
use crate::decision::Decision;
use crate::lease::{Lease, LeaseId};
use crate::plan::{Plan, PlanError};
use crate::policy::{Policy, Trace, Tried};
use crate::store::{Store, StoreError};
use crate::time::Timestamp;

/// What is to be done with what a request costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Verb {
    /// Take it, all or nothing.
    Take,
    /// Tell what a take would be told, and take nothing.
    Peek,
    /// Give it back, never above full.
    Refund,
    /// Take it without asking, down to empty at most: what has been used already is paid.
    Debit,
}

/// Sees every decision, once.
///
/// What it needs per rule is resolved when a policy is set, not searched for at every decision.
///
/// ```
/// use std::sync::atomic::{AtomicU64, Ordering};
/// use tollgate::{Observed, Observer, Policy};
///
/// #[derive(Debug, Default)]
/// struct Refusals(AtomicU64);
///
/// impl Observer for Refusals {
///     type Handles = ();
///
///     fn resolve(&self, _policy: &Policy) {}
///
///     fn decided(&self, _handles: &(), observed: &Observed<'_, '_>) {
///         if observed.result.is_ok_and(|decision| !decision.is_allowed()) {
///             self.0.fetch_add(1, Ordering::Relaxed);
///         }
///     }
/// }
/// ```
pub trait Observer: Send + Sync {
    /// What is resolved for a policy.
    type Handles: Send + Sync + 'static;

    /// Whether it looks at how long decisions took; without, no clock is read for it.
    const IS_TIMED: bool = true;

    /// Prepares for a policy that is about to be set.
    fn resolve(&self, policy: &Policy) -> Self::Handles;

    /// Sees a decision, or that there is none.
    fn decided(&self, handles: &Self::Handles, observed: &Observed<'_, '_>);
}

/// Nobody watches.
impl Observer for () {
    type Handles = ();

    const IS_TIMED: bool = false;

    fn resolve(&self, _policy: &Policy) {}

    fn decided(&self, _handles: &(), _observed: &Observed<'_, '_>) {}
}

/// One decision, as an [`Observer`] sees it.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Observed<'o, 'p> {
    /// What was asked.
    pub verb: Verb,
    /// What applied.
    pub applied: &'o Applied<'o>,
    /// What the store said.
    pub result: Result<&'o Decision<'p>, &'o StoreError>,
    /// How long it took, planning included; nothing if the observer [is not timed](Observer::IS_TIMED).
    pub took: Duration,
}

/// A decision with what led to it.
#[derive(Debug)]
#[non_exhaustive]
pub struct Outcome<'o, 'p> {
    /// What applied, and to whom.
    pub applied: &'o Applied<'o>,
    /// The takes.
    pub plan: &'o Plan<'p>,
    /// What the store said.
    pub decision: &'o Decision<'p>,
    /// What gives slots of concurrency limits back, if any were taken.
    pub lease: Option<Lease>,
    /// When the first of those slots returns by itself.
    pub expires_at: Option<Timestamp>,
}

fn apply<'a>(policy: &'a Policy, asked: &'a Asked<'_>) -> Applied<'a> {
    match asked {
        Asked::ByPolicy(request) => Applied::Policy(policy.plan(request)),
        Asked::Inline(inline) => Applied::Inline(inline),
    }
}

impl<'o, 'p> Outcome<'o, 'p> {
    fn new(applied: &'o Applied<'o>, plan: &'o Plan<'p>, decision: &'o Decision<'p>) -> Self {
        let lease = Lease::of(plan, decision);
        let expires_at = lease.as_ref().and_then(|_| Lease::expires_at(plan, decision));
        Self { applied, plan, decision, lease, expires_at }
    }

    /// The rule of the limit that decided; where none did, the last that applied.
    #[must_use]
    pub fn rule(&self) -> &str {
        let deciding = self.decision.deciding();
        deciding.map_or_else(|| self.applied.last_rule(), |status| status.limit().rule())
    }

    /// Whom that rule counts, as people call it.
    #[must_use]
    pub fn key(&self) -> Cow<'_, str> {
        self.applied.key_of(self.rule())
    }
}

/// Why a request would be decided as it would be.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Explained<'o, 'p> {
    /// Every rule that was tried, in order; none for limits that came with the request.
    pub tried: &'o [Tried],
    /// What is counted now.
    pub now: &'o Decision<'p>,
    /// What a take would be told.
    pub outcome: &'o Outcome<'o, 'p>,
}

/// Decides requests by a policy that may be replaced at any time.
///
/// ```
/// use tollgate::{Asked, Facts, Limiter, MemoryStore, Policy, Request, Verb};
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let limiter = Limiter::new(MemoryStore::new(), Policy::builtin(), ());
/// let mut facts = Facts::new();
/// facts.insert("client", "user:1".as_bytes())?;
/// let asked = Asked::ByPolicy(Request::new(facts));
/// let left = limiter
///     .decide(Verb::Take, &asked, |outcome| outcome.decision.remaining())
///     .await?;
/// assert_eq!(left, Some(99));
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Limiter<S, O: Observer = ()> {
    store: S,
    observer: O,
    current: ArcSwap<Current<O::Handles>>,
}

/// A policy in force, and what its observer resolved for it.
#[derive(Debug)]
pub struct Current<H> {
    policy: Policy,
    handles: H,
}

impl<H> Current<H> {
    /// The policy.
    #[must_use]
    pub const fn policy(&self) -> &Policy {
        &self.policy
    }
}

impl<S: Store, O: Observer> Limiter<S, O> {
    /// A limiter of this policy over this store.
    pub fn new(store: S, policy: Policy, observer: O) -> Self {
        let handles = observer.resolve(&policy);
        let current = ArcSwap::from_pointee(Current { policy, handles });
        Self { store, observer, current }
    }

    /// The store.
    #[must_use]
    pub const fn store(&self) -> &S {
        &self.store
    }

    /// Who watches.
    #[must_use]
    pub const fn observer(&self) -> &O {
        &self.observer
    }

    /// The policy in force. It stays what it is while it is held, whatever is set meanwhile.
    #[must_use]
    pub fn current(&self) -> Arc<Current<O::Handles>> {
        self.current.load_full()
    }

    /// Puts another policy in force. Counters are found by rule and name, so they are kept.
    pub fn set_policy(&self, policy: Policy) {
        let handles = self.observer.resolve(&policy);
        self.current.store(Arc::new(Current { policy, handles }));
    }

    /// Decides, and hands the outcome to `tell` while the policy it refers to is held.
    ///
    /// # Errors
    /// The rules that match add up to too many limits, or the store could not be asked.
    pub async fn decide<T>(
        &self,
        verb: Verb,
        asked: &Asked<'_>,
        tell: impl FnOnce(&Outcome<'_, '_>) -> T,
    ) -> Result<T, LimiterError> {
        self.decide_by(&self.current.load_full(), verb, asked, tell).await
    }

    /// Decides by a policy that was in force before, so that what is given back or paid later is that of the
    /// limits that were asked first.
    ///
    /// ```
    /// use tollgate::{Asked, Facts, Limiter, MemoryStore, Policy, Request, Verb};
    ///
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// let limiter = Limiter::new(MemoryStore::new(), Policy::builtin(), ());
    /// let asked = Asked::ByPolicy(Request::new(Facts::of([("client", "c1")])?));
    /// let then = limiter.current();
    /// limiter.decide_by(&then, Verb::Take, &asked, |_| ()).await?;
    /// let left = |outcome: &tollgate::Outcome<'_, '_>| outcome.decision.remaining();
    /// assert_eq!(limiter.decide_by(&then, Verb::Refund, &asked, left).await?, Some(100));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`decide`](Self::decide).
    pub async fn decide_by<T>(
        &self,
        current: &Current<O::Handles>,
        verb: Verb,
        asked: &Asked<'_>,
        tell: impl FnOnce(&Outcome<'_, '_>) -> T,
    ) -> Result<T, LimiterError> {
        let began = O::IS_TIMED.then(Instant::now);
        let applied = &apply(&current.policy, asked);
        let mut plan = applied.plan()?;
        if verb == Verb::Take && plan.holds_slots() {
            plan = plan.with_lease(LeaseId::random());
        }
        let result = match verb {
            Verb::Take => self.store.take(&plan).await,
            Verb::Peek => self.store.peek(&plan).await,
            Verb::Refund => self.store.refund(&plan).await,
            Verb::Debit => self.store.debit(&plan, Duration::ZERO).await,
        };
        let took = began.map_or(Duration::ZERO, |began| began.elapsed());
        let observed = Observed { verb, applied, result: result.as_ref(), took };
        self.observer.decided(&current.handles, &observed);
        Ok(tell(&Outcome::new(applied, &plan, &result?)))
    }

    /// Tells which rules were tried and why, what is counted now, and what a take would be told. Takes
    /// nothing. Of the outcome's figures the counts are those after the take, the times those before.
    ///
    /// # Errors
    /// As [`decide`](Self::decide).
    pub async fn explain<T>(
        &self,
        asked: &Asked<'_>,
        tell: impl FnOnce(&Explained<'_, '_>) -> T,
    ) -> Result<T, LimiterError> {
        let current = self.current.load_full();
        let trace = match asked {
            Asked::ByPolicy(request) => current.policy.explain(request),
            Asked::Inline(_) => Trace::default(),
        };
        let applied = &apply(&current.policy, asked);
        let plan = &applied.plan()?;
        let now = &self.store.peek(plan).await?;
        let then = now.if_taken(plan);
        let outcome = &Outcome::new(applied, plan, &then);
        Ok(tell(&Explained { tried: trace.tried(), now, outcome }))
    }

    /// Forgets everything recorded for the counters a request would take from.
    ///
    /// # Errors
    /// As [`decide`](Self::decide).
    pub async fn reset(&self, asked: &Asked<'_>) -> Result<(), LimiterError> {
        let current = self.current.load_full();
        let applied = apply(&current.policy, asked);
        for take in applied.plan()?.takes() {
            self.store.reset(&take.key()).await?;
        }
        Ok(())
    }

    /// Gives slots back before they expire. Tells whether any was still held.
    ///
    /// # Errors
    /// The store could not be asked.
    pub async fn release(&self, lease: &Lease) -> Result<bool, LimiterError> {
        Ok(self.store.release(lease).await?)
    }

    /// Holds slots for as long again. Tells until when; none if one was no longer held.
    ///
    /// # Errors
    /// The store could not be asked.
    pub async fn renew(&self, lease: &Lease) -> Result<Option<Timestamp>, LimiterError> {
        Ok(self.store.renew(lease).await?)
    }
}

/// Why a limiter could not decide.
#[derive(Debug, Error)]
#[error(transparent)]
#[non_exhaustive]
pub enum LimiterError {
    /// The rules that match do not make a plan.
    Plan(#[from] PlanError),
    /// The store could not be asked.
    Store(#[from] StoreError),
}

impl LimiterError {
    /// Whether asking again later may succeed.
    #[must_use]
    pub const fn is_transient(&self) -> bool {
        match self {
            Self::Plan(error) => error.is_transient(),
            Self::Store(error) => error.is_transient(),
        }
    }
}
