//! Degraded mode: a store whose loss is hardly noticed.

mod breaker;
mod builder;
mod event;
mod local_decisions;
mod node_share;
mod outage_ledger;
mod parts;
mod recovery;
mod share_cache;
mod spending;
mod together;

use std::num::NonZeroU32;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use parking_lot::Mutex;

pub use breaker::BreakerState;
pub use builder::FallbackStoreBuilder;
pub use event::{Outage, StoreEvent};
pub use local_decisions::LocalDecisions;

use crate::clock::{Clock, SystemClock};
use crate::decision::{Decision, Source};
use crate::distribution::Distributed;
use crate::listing::{Listing, Page};
use crate::memory::MemoryStore;
use crate::permit::Permit;
use crate::plan::{Key, Plan};
use crate::status::Status;
use crate::store::{Store, StoreError, StoreErrorKind};
use crate::time::Timestamp;
use breaker::{Breaker, CallPermission};
use event::Listener;
use local_decisions::{Act, Tally};
use outage_ledger::Ledger;
use recovery::Probe;
use share_cache::Shares;

/// A store that nodes share, with this node's memory to fall back on.
///
/// While the store answers, it decides. When it does not, this node decides alone, each limit as its take
/// says ([`Distribution`](crate::Distribution)): by this node's share of it, by letting everything pass, or by refusing.
/// After some failures in a row the store is not asked at all, so that a hung one costs nobody a time-out.
/// When it answers again it is told, once for each key, what was spent without it, and decides again.
///
/// Takes, peeks, refunds and debits never fail. What cannot be done without the store (listing, statistics,
/// resets) fails at once with [`StoreErrorKind::Unavailable`].
///
/// It has no thread and no timer of its own: call [`maintain`](Self::maintain) about once a second. Without that a
/// request tries the store when it has not been asked for a while.
///
/// ```
/// use std::num::NonZeroU32;
/// use tollgate::{FallbackStore, Key, Limit, MemoryStore, Plan, Quota, Store, Subject, Take};
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// # let shared = MemoryStore::new();
/// let three = NonZeroU32::new(3).ok_or("there is one at least")?;
/// let store = FallbackStore::builder(shared).nodes(three).build();
///
/// let limit = Limit::sliding_window(Quota::per_minute(90))?;
/// let subject = Subject::of(["c1"]);
/// let plan = Plan::new([Take::new(Key::new(&subject, &limit), 1)])?;
/// let decision = store.take(&plan).await?;
/// assert!(decision.is_allowed() && !decision.is_degraded());
/// store.maintain().await;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct FallbackStore<S, C = SystemClock> {
    store: S,
    /// What this node counts itself.
    local: MemoryStore<C>,
    clock: C,
    breaker: Breaker,
    shares: Shares,
    /// Whoever decides alone holds it, and who closes the breaker.
    ledger: Mutex<Ledger>,
    tally: Tally,
    is_attended: AtomicBool,
    probe: Probe,
    at_most: Distributed,
    listener: Listener,
}

impl<S> FallbackStore<S> {
    /// This store, with memory to fall back on.
    #[must_use]
    pub fn builder(store: S) -> FallbackStoreBuilder<S> {
        FallbackStoreBuilder::new(store)
    }
}

impl<S, C> FallbackStore<S, C> {
    /// The store itself.
    #[must_use]
    pub const fn store(&self) -> &S {
        &self.store
    }

    /// What this node counts itself: limits of which the store has no say, and its share of the others while the
    /// store is lost.
    #[must_use]
    pub const fn local(&self) -> &MemoryStore<C> {
        &self.local
    }

    /// Whether it is asked.
    #[must_use]
    pub fn breaker(&self) -> BreakerState {
        self.breaker.state()
    }

    /// How much it has to say at most, whatever the takes of a plan say.
    #[must_use]
    pub const fn max_distribution(&self) -> Distributed {
        self.at_most
    }

    /// Among how many nodes limits are divided while the store cannot be asked.
    #[must_use]
    pub fn nodes(&self) -> NonZeroU32 {
        self.shares.nodes()
    }

    /// Says how many nodes there are.
    pub fn set_nodes(&self, nodes: NonZeroU32) {
        self.shares.set_nodes(nodes);
    }

    /// How many requests have been decided without the store since it was lost.
    #[must_use]
    pub fn local_decisions(&self) -> LocalDecisions {
        self.tally.get()
    }

    /// Whether what only the store can answer may be asked now.
    ///
    /// # Errors
    /// It is lost.
    pub fn ensure_available(&self) -> Result<(), StoreError> {
        if self.breaker.is_closed() {
            return Ok(());
        }
        let why = "the store is lost, and not asked until it is back";
        Err(StoreError::new(StoreErrorKind::Unavailable, why))
    }
}

impl<S: Store, C: Clock> FallbackStore<S, C> {
    async fn decide<'a>(&self, act: Act, plan: &Plan<'a>) -> Decision<'a> {
        if plan.takes().iter().all(|take| self.reach(take) == Distributed::On) {
            self.ask(act, plan).await
        } else {
            self.in_parts(act, plan).await
        }
    }

    /// Asks the store, and decides alone where it does not answer.
    async fn ask<'a>(&self, act: Act, plan: &Plan<'a>) -> Decision<'a> {
        if plan.takes().is_empty() {
            return Decision::new(self.clock.now(), []);
        }
        if !self.breaker.is_closed() {
            if self.breaker.is_due(self.clock.now()) {
                self.maintain_briefly().await;
            }
            let mut ledger = self.ledger.lock();
            // It may have been closed while the ledger was held.
            if !self.breaker.is_closed() {
                return self.decide_locally(act, plan, &mut ledger);
            }
        }
        let asked = self.breaker.asked();
        let answer = self.act(act, plan).await;
        match self.heard(asked, answer) {
            Ok(decision) => decision,
            Err(_) => self.decide_locally(act, plan, &mut self.ledger.lock()),
        }
    }

    async fn act<'a>(&self, act: Act, plan: &Plan<'a>) -> Result<Decision<'a>, StoreError> {
        match act {
            Act::Take => self.store.take(plan).await,
            Act::Peek => self.store.peek(plan).await,
            Act::Refund => self.store.refund(plan).await,
            Act::Debit(age) => self.store.debit(plan, age).await,
        }
    }

    /// Notes how the store answered a question about a plan. What it remembers itself is no sign of it.
    fn heard<'a>(
        &self,
        asked: CallPermission,
        answer: Result<Decision<'a>, StoreError>,
    ) -> Result<Decision<'a>, StoreError> {
        match answer {
            Ok(decision) => {
                if decision.source() == Source::Store {
                    self.breaker.answered();
                }
                Ok(decision)
            }
            Err(error) => Err(self.failed(asked, error)),
        }
    }

    fn failed(&self, asked: CallPermission, error: StoreError) -> StoreError {
        // Whoever sent a cursor that nobody gave has made the mistake.
        if error.kind() != StoreErrorKind::Cursor {
            self.listener.tell(StoreEvent::Failed(&error));
        }
        // A key that cannot be read says nothing about others.
        if error.is_transient()
            && let Some(failures) = self.breaker.failed(asked, self.clock.now())
        {
            let nodes = self.nodes();
            let _ = self.tally.take();
            self.listener.tell(StoreEvent::Lost { failures, reason: &error, nodes });
        }
        error
    }

    /// Asks what only the store can answer.
    async fn only<T>(
        &self,
        question: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        self.ensure_available()?;
        let asked = self.breaker.asked();
        let answer = question.await;
        answer.inspect(|_| self.breaker.answered()).map_err(|error| self.failed(asked, error))
    }
}

/// Of a permit that this node holds alone the store may know nothing, and the other way round.
impl<S: Store, C: Clock> Store for FallbackStore<S, C> {
    async fn take<'a>(&self, plan: &Plan<'a>) -> Result<Decision<'a>, StoreError> {
        Ok(self.decide(Act::Take, plan).await)
    }

    async fn peek<'a>(&self, plan: &Plan<'a>) -> Result<Decision<'a>, StoreError> {
        Ok(self.decide(Act::Peek, plan).await)
    }

    async fn refund<'a>(&self, plan: &Plan<'a>) -> Result<Decision<'a>, StoreError> {
        Ok(self.decide(Act::Refund, plan).await)
    }

    async fn debit<'a>(&self, plan: &Plan<'a>, age: Duration) -> Result<Decision<'a>, StoreError> {
        Ok(self.decide(Act::Debit(age), plan).await)
    }

    /// Without the store, this node alone refuses, and the store is told when it is back.
    async fn pause(&self, key: &Key<'_>, length: Duration) -> Result<(), StoreError> {
        self.local.pause(key, length);
        if self.only(self.store.pause(key, length)).await.is_err() {
            let whole = self.shares.of(key.limit()).whole;
            self.ledger.lock().pause(key.subject(), &whole, self.clock.now(), length);
        }
        Ok(())
    }

    async fn reset(&self, key: &Key<'_>) -> Result<(), StoreError> {
        self.only(self.store.reset(key)).await?;
        self.local.reset(key);
        self.ledger.lock().forget(key);
        Ok(())
    }

    async fn release(&self, permit: &Permit) -> Result<bool, StoreError> {
        let (counted, now) = (self.local.release(permit), self.clock.now());
        // What nobody counted may be owed all the same.
        let here = self.ledger.lock().release(permit, now) || counted;
        match self.only(self.store.release(permit)).await {
            Ok(there) => Ok(here || there),
            Err(_) if here => Ok(true),
            Err(error) => Err(error),
        }
    }

    async fn renew(&self, permit: &Permit) -> Result<Option<Timestamp>, StoreError> {
        let (counted, now) = (self.local.renew(permit), self.clock.now());
        let owed = self.ledger.lock().renew(permit, now);
        let here = counted.or(owed);
        match self.only(self.store.renew(permit)).await {
            Ok(there) => Ok(there.or(here)),
            Err(_) if here.is_some() => Ok(here),
            Err(error) => Err(error),
        }
    }

    async fn stats<'a>(&self, key: &Key<'a>) -> Result<Status<'a>, StoreError> {
        self.only(self.store.stats(key)).await
    }

    async fn list(&self, listing: &Listing) -> Result<Page, StoreError> {
        self.only(self.store.list(listing)).await
    }

    async fn maintain(&self) {
        Self::maintain(self).await;
    }
}
