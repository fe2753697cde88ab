//! Degraded mode: decisions while the shared store is lost.

mod admissions;
mod breaker;
mod builder;
mod event;
mod granted;
mod join_all;
mod local_decisions;
mod mixed_plan;
mod node_share;
mod outage_ledger;
mod recovery;
mod replay;
mod reservations;
mod share_cache;
mod shared_calls;
mod store_impl;

use std::num::NonZeroU32;

use parking_lot::Mutex;

pub use breaker::BreakerState;
pub use builder::FallbackStoreBuilder;
pub use event::{Outage, StoreEvent};
pub use local_decisions::LocalDecisions;

use crate::decision::{Decision, Source};
use crate::memory::MemoryStore;
use crate::plan::{Distributed, Key, Plan};
use crate::store::{Store, StoreError, StoreErrorKind};
use crate::time::{Clock, SystemClock};
use breaker::Breaker;
use event::Listener;
use granted::NodeReservations;
use local_decisions::{Counters, LocalReason, Operation};
use outage_ledger::Ledger;
use recovery::{Probe, Recovery};
use share_cache::ShareCache;
use shared_calls::is_overloaded;

/// A store that decides in a shared store, or in a local store while the shared store is lost.
///
/// While the shared store replies, it decides. When a call fails, this node decides each limit as its take requires
/// ([`Distribution`](crate::Distribution)): by this node's share of it, by admitting, or by refusing. After some
/// consecutive failures a circuit breaker opens: requests no longer call the shared store and do not wait for its
/// time-out. When the shared store replies again, this node debits the admissions of the outage there, once for each
/// key, and closes the breaker.
///
/// Takes, peeks, refunds and debits fail only with [`StoreErrorKind::Overloaded`]: too many calls of this process wait
/// for a shared store that replies. Such a call was not sent. The breaker does not count it, and this node does not
/// decide it, because the shared store still counts: shed the request. Listing, statistics and resets need the shared
/// store: while the breaker is open they fail immediately with [`StoreErrorKind::Unavailable`].
///
/// It has no thread and no timer: call [`maintain`](Self::maintain) about once a second. Otherwise a request probes
/// the lost store every [`open_for`](FallbackStoreBuilder::open_for).
///
/// # Local store
///
/// The local store is a [`MemoryStore`], unless [`local`](FallbackStoreBuilder::local) sets another one. It counts this
/// node's shares, and limits that are not in the shared store. With any local store:
///
/// - A degraded decision is recorded in the outage ledger in the same poll in which the local store returns it, so no
///   admission that a caller receives is lost. A request that is dropped before that admits nothing, but may have
///   used quota in the local store. A [`MemoryStore`] replies in the first poll, so it cannot be dropped in between.
/// - If the breaker closes while the local store decides, the admission is still recorded, and the next
///   [`maintain`](Self::maintain) debits it. With a store that is [immediate](Store::IS_IMMEDIATE), like a
///   [`MemoryStore`], the breaker cannot close in between.
/// - If the local store fails, limits with [`Allow`](crate::OnStoreLoss::Allow) admit and all others refuse, as
///   [`Deny`](crate::OnStoreLoss::Deny) does, and the decision is marked so. [`StoreEvent::LocalFailed`] reports the
///   error. There is no time-out and no breaker for the local store.
///
/// ```
/// use std::num::NonZeroU32;
/// use tollgate::{FallbackStore, Key, Limit, MemoryStore, Plan, Quota, Store, Subject, Take};
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// # let shared = MemoryStore::new();
/// let three = NonZeroU32::new(3).ok_or("zero nodes")?;
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
pub struct FallbackStore<S, C = SystemClock, L = MemoryStore<C>> {
    store: S,
    /// Counts this node's shares during an outage, and limits that are not in the shared store.
    local: L,
    clock: C,
    breaker: Breaker,
    shares: ShareCache,
    /// Locked while admissions are recorded, and while the breaker closes. See `decide_locally`.
    ledger: Mutex<Ledger>,
    counters: Counters,
    reservations: NodeReservations,
    recovery: Recovery,
    probe: Probe,
    max_distribution: Distributed,
    listener: Listener,
}

impl<S> FallbackStore<S> {
    /// Returns a builder around this shared store.
    #[must_use]
    pub fn builder(store: S) -> FallbackStoreBuilder<S> {
        FallbackStoreBuilder::new(store)
    }
}

impl<S, C, L> FallbackStore<S, C, L> {
    /// Returns the shared store.
    #[must_use]
    pub const fn store(&self) -> &S {
        &self.store
    }

    /// Returns the local store. It counts limits that are not in the shared store, and this node's shares of the
    /// others during an outage.
    #[must_use]
    pub const fn local(&self) -> &L {
        &self.local
    }

    /// Returns the state of the breaker.
    #[must_use]
    pub fn breaker(&self) -> BreakerState {
        self.breaker.state()
    }

    /// Returns the upper bound on the role of the shared store.
    #[must_use]
    pub const fn max_distribution(&self) -> Distributed {
        self.max_distribution
    }

    /// Returns the number of nodes that limits are divided by during an outage.
    #[must_use]
    pub fn nodes(&self) -> NonZeroU32 {
        self.shares.nodes()
    }

    /// Sets the number of nodes that limits are divided by during an outage.
    pub fn set_nodes(&self, nodes: NonZeroU32) {
        self.shares.set_nodes(nodes);
    }

    /// Returns the numbers of requests decided without the shared store in this outage.
    #[must_use]
    pub fn local_decisions(&self) -> LocalDecisions {
        self.counters.get()
    }

    /// Returns an error if the breaker is not closed.
    ///
    /// # Errors
    /// [`StoreErrorKind::Unavailable`] if the shared store is lost.
    pub fn ensure_available(&self) -> Result<(), StoreError> {
        if self.breaker.is_closed() {
            return Ok(());
        }
        let message = "the store is lost; not called until a probe succeeds";
        Err(StoreError::new(StoreErrorKind::Unavailable, message))
    }
}

impl<S, C: Clock, L> FallbackStore<S, C, L> {
    /// Opens the breaker now, if it is closed. For a program that starts while the shared store is unavailable: its
    /// first requests are decided locally and do not wait for a time-out. A probe closes the breaker as usual. Sends no
    /// [`StoreEvent::Lost`], because the caller already knows of the loss.
    ///
    /// ```
    /// use tollgate::{BreakerState, FallbackStore, MemoryStore};
    ///
    /// # async fn example() {
    /// # let shared = MemoryStore::new();
    /// let store = FallbackStore::builder(shared).build();
    /// store.open_breaker();
    /// assert_eq!(store.breaker(), BreakerState::Open);
    /// store.maintain().await;
    /// assert_eq!(store.breaker(), BreakerState::Closed);
    /// # }
    /// ```
    pub fn open_breaker(&self) {
        if self.breaker.open(self.clock.now()) {
            let _ = self.counters.take();
        }
    }
}

impl<S: Store, C: Clock, L: Store> FallbackStore<S, C, L> {
    /// Resets what this node counts of a key by itself: limits that are not in the shared store, and admissions of an
    /// outage. For a node that learns that another one has [reset](Store::reset) the key in the shared store.
    ///
    /// # Errors
    /// The local store failed.
    pub async fn reset_on_node(&self, key: &Key<'_>) -> Result<(), StoreError> {
        self.ledger.lock().forget(key);
        self.report_local(self.local.reset(key).await)
    }

    async fn decide<'a>(
        &self,
        operation: Operation,
        plan: &Plan<'a>,
    ) -> Result<Decision<'a>, StoreError> {
        let are_all = |wanted| plan.takes().iter().all(|take| self.distributed(take) == wanted);
        if are_all(Distributed::On) {
            self.decide_shared(operation, plan).await
        } else if are_all(Distributed::Off) {
            let reply = operation.apply(&self.local, plan).await;
            Ok(self.local_decision(plan, reply).from_source(Source::Local))
        } else {
            // Boxed, so that it does not enlarge the future of every request.
            Box::pin(self.decide_mixed(operation, plan)).await
        }
    }

    /// Decides in the shared store, or locally if it is lost or the call fails. Fails only if the call is overloaded.
    async fn decide_shared<'a>(
        &self,
        operation: Operation,
        plan: &Plan<'a>,
    ) -> Result<Decision<'a>, StoreError> {
        if plan.takes().is_empty() {
            return Ok(Decision::new(self.clock.now(), []));
        }
        let mut reason = LocalReason::BreakerOpen;
        if self.breaker.is_closed() {
            let permission = self.breaker.permission();
            match operation.apply(&self.store, plan).await {
                Ok(decision) => {
                    self.record_success(&decision);
                    return Ok(decision);
                }
                Err(error) if is_overloaded(&error) => return Err(self.report_overload(error)),
                Err(error) => {
                    self.record_failure(permission, &error);
                    reason = LocalReason::after(&error);
                }
            }
        }
        // Boxed for the same reason as a mixed plan.
        Box::pin(self.decide_in_outage(operation, plan, reason)).await
    }

    async fn decide_in_outage<'a>(
        &self,
        operation: Operation,
        plan: &Plan<'a>,
        mut reason: LocalReason,
    ) -> Result<Decision<'a>, StoreError> {
        loop {
            if reason == LocalReason::BreakerOpen && self.breaker.is_probe_due(self.clock.now()) {
                self.maintain_briefly().await;
            }
            if let Some(decision) = self.decide_locally(operation, plan, reason).await {
                return Ok(decision);
            }
            // The breaker has closed: the shared store decides.
            match self.call_shared(operation, plan).await {
                Ok(decision) => return Ok(decision),
                Err(error) if is_overloaded(&error) => return Err(self.report_overload(error)),
                Err(error) => reason = LocalReason::after(&error),
            }
        }
    }
}
