//! The limiter: a policy, a store, and one who watches. Every decision takes this one path.

mod active_policy;
mod error;
mod observer;
mod outcome;

use std::sync::Arc;
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;

pub use active_policy::ActivePolicy;
pub use error::LimiterError;
pub use observer::{Observation, Observer, Verb};
pub use outcome::{Explanation, Outcome};

use crate::decision::Decision;
use crate::permit::{Permit, PermitId};
use crate::plan::{Plan, Take};
use crate::policy::{ActiveOverrides, Overrides, Policy, Trace};
use crate::query::{Query, ResolvedQuery};
use crate::receipt::Receipt;
use crate::store::{Store, StoreError};
use crate::time::Timestamp;

/// Decides requests by a policy that may be replaced at any time.
///
/// ```
/// use tollgate::{Query, Facts, Limiter, MemoryStore, Policy, Request, Verb};
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let limiter = Limiter::new(MemoryStore::new(), Policy::builtin());
/// let mut facts = Facts::new();
/// facts.insert("client", "user:1".as_bytes())?;
/// let asked = Query::ByPolicy(Request::new(facts));
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
    current: ArcSwap<ActivePolicy<O::Handles>>,
}

/// A decision on its way.
#[derive(Debug, Clone, Copy)]
struct Begun {
    verb: Verb,
    /// None if nobody wants to know how long it took.
    at: Option<Instant>,
}

impl<S: Store> Limiter<S> {
    /// Creates a limiter that decides by `policy` and counts in `store`.
    pub fn new(store: S, policy: Policy) -> Self {
        Self::with_observer(store, policy, ())
    }
}

impl<S: Store, O: Observer> Limiter<S, O> {
    /// Creates a limiter whose decisions are reported to `observer`, for metrics and logs.
    pub fn with_observer(store: S, policy: Policy, observer: O) -> Self {
        let handles = observer.resolve(&policy);
        let (policy, handles) = (Arc::new(policy), Arc::new(handles));
        let overrides = ActiveOverrides::default();
        let current = ArcSwap::from_pointee(ActivePolicy { policy, handles, overrides });
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
    pub fn active_policy(&self) -> Arc<ActivePolicy<O::Handles>> {
        self.current.load_full()
    }

    /// Puts another policy in force. Counters are found by rule and name, so they are kept; overrides stay.
    pub fn set_policy(&self, policy: Policy) {
        let handles = Arc::new(self.observer.resolve(&policy));
        let policy = Arc::new(policy);
        self.current.rcu(|current| ActivePolicy {
            policy: Arc::clone(&policy),
            handles: Arc::clone(&handles),
            overrides: ActiveOverrides::of(current.overrides.all().clone()),
        });
    }

    /// Puts these exceptions in force, in place of those before. What was used stays used. One that has
    /// ended is in force until others are set without it.
    pub fn set_overrides(&self, overrides: &Overrides) {
        self.current.rcu(|current| ActivePolicy {
            policy: Arc::clone(&current.policy),
            handles: Arc::clone(&current.handles),
            overrides: ActiveOverrides::instead_of(&current.overrides, overrides.clone()),
        });
    }

    /// Decides, and hands the outcome to `tell` while the policy it refers to is held.
    ///
    /// # Errors
    /// The rules that match add up to too many limits, or the store could not be asked.
    pub async fn decide<T>(
        &self,
        verb: Verb,
        asked: &Query<'_>,
        tell: impl FnOnce(&Outcome<'_, '_>) -> T,
    ) -> Result<T, LimiterError> {
        self.decide_with(&self.current.load_full(), verb, asked, tell).await
    }

    /// Decides by a policy that was in force before, so that what is given back or paid later is that of the
    /// limits that were asked first.
    ///
    /// ```
    /// use tollgate::{Query, Facts, Limiter, MemoryStore, Policy, Request, Verb};
    ///
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// let limiter = Limiter::new(MemoryStore::new(), Policy::builtin());
    /// let asked = Query::ByPolicy(Request::new(Facts::of([("client", "c1")])?));
    /// let then = limiter.active_policy();
    /// limiter.decide_with(&then, Verb::Take, &asked, |_| ()).await?;
    /// let left = |outcome: &tollgate::Outcome<'_, '_>| outcome.decision.remaining();
    /// assert_eq!(limiter.decide_with(&then, Verb::Refund, &asked, left).await?, Some(100));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`decide`](Self::decide).
    pub async fn decide_with<T>(
        &self,
        current: &ActivePolicy<O::Handles>,
        verb: Verb,
        asked: &Query<'_>,
        tell: impl FnOnce(&Outcome<'_, '_>) -> T,
    ) -> Result<T, LimiterError> {
        let begun = self.begin(verb);
        let applied = &apply(current, asked);
        let mut plan = applied.plan()?;
        if matches!(verb, Verb::Take | Verb::Admit) && plan.holds_slots() {
            plan = plan.with_permit(PermitId::random());
        }
        let result = match verb {
            Verb::Take => self.store.take(&plan).await,
            Verb::Peek => self.store.peek(&plan).await,
            Verb::Refund => self.store.refund(&plan).await,
            Verb::Admit => self.enter(&mut plan).await,
            Verb::Debit => {
                plan = plan.only(|take| !take.holds_slots());
                self.store.debit(&plan, Duration::ZERO).await
            }
        };
        self.show(current, begun, applied, &result);
        Ok(tell(&Outcome::new(applied, &plan, &result?)))
    }

    fn begin(&self, verb: Verb) -> Begun {
        Begun { verb, at: O::IS_TIMED.then(Instant::now) }
    }

    /// Every decision is seen here, and here only.
    fn show(
        &self,
        current: &ActivePolicy<O::Handles>,
        begun: Begun,
        applied: &ResolvedQuery<'_>,
        result: &Result<Decision<'_>, StoreError>,
    ) {
        let took = begun.at.map_or(Duration::ZERO, |at| at.elapsed());
        let observed = Observation { verb: begun.verb, applied, result: result.as_ref(), took };
        self.observer.decided(&current.handles, &observed);
    }

    /// Looks at all, then takes the slots. Who is let in between the two takes no slot that there is not.
    async fn enter<'p>(&self, plan: &mut Plan<'p>) -> Result<Decision<'p>, StoreError> {
        let looked = self.store.peek(plan).await?;
        if !looked.is_allowed() || !plan.holds_slots() {
            return Ok(looked);
        }
        *plan = plan.clone().only(Take::holds_slots);
        self.store.take(plan).await
    }

    /// Gives back what was taken by a policy that was in force then, so long ago: of each limit what it took and
    /// still counts. What has left its window is not given back, for it would be another's.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::{Query, Facts, Limiter, MemoryStore, Outcome, Policy, Request, Receipt, Verb};
    ///
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// let limiter = Limiter::new(MemoryStore::new(), Policy::builtin());
    /// let asked = Query::ByPolicy(Request::new(Facts::of([("client", "c1")])?));
    /// let then = limiter.active_policy();
    /// let taken = limiter.decide_with(&then, Verb::Take, &asked, Receipt::of).await?;
    /// let age = Duration::from_secs(1);
    /// let left = |outcome: &Outcome<'_, '_>| outcome.decision.remaining();
    /// assert_eq!(limiter.refund_receipt(&then, &asked, (&taken, age), left).await?, Some(100));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`decide`](Self::decide).
    pub async fn refund_receipt<T>(
        &self,
        current: &ActivePolicy<O::Handles>,
        asked: &Query<'_>,
        (taken, age): (&Receipt, Duration),
        tell: impl FnOnce(&Outcome<'_, '_>) -> T,
    ) -> Result<T, LimiterError> {
        let begun = self.begin(Verb::Refund);
        let applied = &apply(current, asked);
        let plan = taken.still_counted(applied.plan()?, age);
        let result = self.store.refund(&plan).await;
        self.show(current, begun, applied, &result);
        Ok(tell(&Outcome::new(applied, &plan, &result?)))
    }

    /// Tells which rules were tried and why, what is counted now, and what a take would be told. Takes
    /// nothing. Of the outcome's figures the counts are those after the take, the times those before.
    ///
    /// # Errors
    /// As [`decide`](Self::decide).
    pub async fn explain<T>(
        &self,
        asked: &Query<'_>,
        tell: impl FnOnce(&Explanation<'_, '_>) -> T,
    ) -> Result<T, LimiterError> {
        let current = self.current.load_full();
        let trace = match asked {
            Query::ByPolicy(request) => current.policy.explain(request),
            Query::Inline(_) => Trace::default(),
        };
        let applied = &apply(&current, asked);
        let plan = &applied.plan()?;
        let now = &self.store.peek(plan).await?;
        let then = now.if_taken(plan);
        let outcome = &Outcome::new(applied, plan, &then);
        Ok(tell(&Explanation { tried: trace.tried(), now, outcome }))
    }

    /// Forgets everything recorded for the counters a request would take from.
    ///
    /// # Errors
    /// As [`decide`](Self::decide).
    pub async fn reset(&self, asked: &Query<'_>) -> Result<(), LimiterError> {
        let current = self.current.load_full();
        let applied = apply(&current, asked);
        for take in applied.plan()?.takes() {
            self.store.reset(&take.key()).await?;
        }
        Ok(())
    }

    /// Gives slots back before they expire. Tells whether any was still held.
    ///
    /// # Errors
    /// The store could not be asked.
    pub async fn release(&self, permit: &Permit) -> Result<bool, LimiterError> {
        Ok(self.store.release(permit).await?)
    }

    /// Holds slots for as long again. Tells until when; none if one was no longer held.
    ///
    /// # Errors
    /// The store could not be asked.
    pub async fn renew(&self, permit: &Permit) -> Result<Option<Timestamp>, LimiterError> {
        Ok(self.store.renew(permit).await?)
    }
}

fn apply<'a, H>(current: &'a ActivePolicy<H>, asked: &'a Query<'_>) -> ResolvedQuery<'a> {
    match asked {
        Query::ByPolicy(request) => {
            ResolvedQuery::Policy(current.policy.plan_with(request, Some(&current.overrides)))
        }
        Query::Inline(inline) => ResolvedQuery::Inline(inline),
    }
}
