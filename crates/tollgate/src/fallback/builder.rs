//! Builder of the fallback store.

use std::num::NonZeroU32;
use std::time::Duration;

use parking_lot::Mutex;

use super::FallbackStore;
use super::breaker::Breaker;
use super::event::{Listener, StoreEvent};
use super::granted::NodeReservations;
use super::local_decisions::Counters;
use super::outage_ledger::Ledger;
use super::recovery::{Probe, Recovery};
use super::share_cache::ShareCache;
use crate::memory::{AtCap, DEFAULT_MAX_KEYS, MemoryStore};
use crate::plan::Distributed;
use crate::store::Store;
use crate::time::{Clock, SystemClock};

/// Default number of consecutive failures that opens the breaker.
const DEFAULT_OPEN_AFTER: u32 = 5;
/// Default time without a probe after which a request probes.
const DEFAULT_OPEN_FOR: Duration = Duration::from_secs(30);

/// Builder of a [`FallbackStore`]. `L` is the local store; `()` if none is set, for a new [`MemoryStore`].
#[derive(Debug)]
pub struct FallbackStoreBuilder<S, C = SystemClock, L = ()> {
    store: S,
    local: L,
    clock: C,
    nodes: NonZeroU32,
    open_after: u32,
    open_for: Duration,
    max_keys: usize,
    at_cap: AtCap,
    max_distribution: Distributed,
    listener: Listener,
}

impl<S> FallbackStoreBuilder<S> {
    pub(super) fn new(store: S) -> Self {
        Self {
            store,
            local: (),
            clock: SystemClock::new(),
            nodes: NonZeroU32::MIN,
            open_after: DEFAULT_OPEN_AFTER,
            open_for: DEFAULT_OPEN_FOR,
            max_keys: DEFAULT_MAX_KEYS,
            at_cap: AtCap::default(),
            max_distribution: Distributed::On,
            listener: Listener::default(),
        }
    }
}

impl<S, C, L> FallbackStoreBuilder<S, C, L> {
    /// Sets the number of nodes that limits are divided by during an outage; 1 by default.
    #[must_use]
    pub fn nodes(self, nodes: NonZeroU32) -> Self {
        Self { nodes, ..self }
    }

    /// Sets the number of consecutive failures that opens the breaker; 5 by default, at least 1.
    #[must_use]
    pub fn open_after(self, failures: u32) -> Self {
        Self { open_after: failures, ..self }
    }

    /// Sets the time after which a request probes the lost store; 30 seconds by default.
    /// [`FallbackStore::maintain`] probes sooner.
    #[must_use]
    pub fn open_for(self, open_for: Duration) -> Self {
        Self { open_for, ..self }
    }

    /// Sets the maximum number of keys in the outage ledger, and in the default local store; one million by default.
    #[must_use]
    pub fn max_keys(self, max_keys: usize) -> Self {
        Self { max_keys, ..self }
    }

    /// Sets an upper bound on the role of the shared store, for every take; [`Distributed::On`] by default.
    #[must_use]
    pub fn max_distribution(self, max_distribution: Distributed) -> Self {
        Self { max_distribution, ..self }
    }

    /// Sets the callback for failures, losses and returns of the shared store. It must not block.
    #[must_use]
    pub fn on_event(self, callback: impl Fn(StoreEvent<'_>) + Send + Sync + 'static) -> Self {
        Self { listener: Listener::new(callback), ..self }
    }

    /// Sets the store that decides while the shared store is lost; a new [`MemoryStore`] by default. Only this
    /// node may use it. It should reply quickly: there is no time-out for it.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use tollgate::{FallbackStore, MemoryStore};
    ///
    /// # let shared = MemoryStore::new();
    /// let local = Arc::new(MemoryStore::new());
    /// let store = FallbackStore::builder(shared).local(Arc::clone(&local)).build();
    /// assert!(Arc::ptr_eq(store.local(), &local));
    /// ```
    #[must_use]
    pub fn local<N: Store>(self, local: N) -> FallbackStoreBuilder<S, C, N> {
        self.replace_local(local)
    }

    /// Sets the clock, for tests. A local store that is set has its own.
    #[must_use]
    pub fn clock<D>(self, clock: D) -> FallbackStoreBuilder<S, D, L> {
        FallbackStoreBuilder {
            store: self.store,
            local: self.local,
            clock,
            nodes: self.nodes,
            open_after: self.open_after,
            open_for: self.open_for,
            max_keys: self.max_keys,
            at_cap: self.at_cap,
            max_distribution: self.max_distribution,
            listener: self.listener,
        }
    }

    fn replace_local<N>(self, local: N) -> FallbackStoreBuilder<S, C, N> {
        FallbackStoreBuilder {
            store: self.store,
            local,
            clock: self.clock,
            nodes: self.nodes,
            open_after: self.open_after,
            open_for: self.open_for,
            max_keys: self.max_keys,
            at_cap: self.at_cap,
            max_distribution: self.max_distribution,
            listener: self.listener,
        }
    }
}

impl<S, C> FallbackStoreBuilder<S, C> {
    /// Sets what happens to a new key when the default local store holds [`max_keys`](Self::max_keys) keys.
    #[must_use]
    pub fn at_cap(self, at_cap: AtCap) -> Self {
        Self { at_cap, ..self }
    }

    /// Builds the store, with a new [`MemoryStore`] as its local store.
    pub fn build(self) -> FallbackStore<S, C>
    where
        C: Clock + Clone,
    {
        let local = MemoryStore::builder().max_keys(self.max_keys).at_cap(self.at_cap);
        let local = local.clock(self.clock.clone()).build();
        self.replace_local(local).build()
    }
}

impl<S, C, L: Store> FallbackStoreBuilder<S, C, L> {
    /// Builds the store.
    pub fn build(self) -> FallbackStore<S, C, L> {
        FallbackStore {
            store: self.store,
            local: self.local,
            clock: self.clock,
            breaker: Breaker::new(self.open_after, self.open_for),
            shares: ShareCache::new(self.nodes),
            ledger: Mutex::new(Ledger::new(self.max_keys)),
            counters: Counters::default(),
            reservations: NodeReservations::default(),
            recovery: Recovery::default(),
            probe: Probe::new(),
            max_distribution: self.max_distribution,
            listener: self.listener,
        }
    }
}
