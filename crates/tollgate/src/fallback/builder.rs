//! How a fallback store is made.

use std::num::NonZeroU32;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use parking_lot::Mutex;

use super::FallbackStore;
use super::breaker::Breaker;
use super::event::{Listener, StoreEvent};
use super::local_decisions::Tally;
use super::outage_ledger::Ledger;
use super::recovery::Probe;
use super::share_cache::Shares;
use crate::clock::{Clock, SystemClock};
use crate::distribution::Distributed;
use crate::memory::{AtCap, DEFAULT_MAX_KEYS, MemoryStore};

/// After how many failures in a row a store is no longer asked.
const FAILURES: u32 = 5;
/// For how long it is then not asked, unless somebody looks after it sooner.
const OPEN_FOR: Duration = Duration::from_secs(30);

/// A [`FallbackStore`] in the making.
#[derive(Debug)]
pub struct FallbackStoreBuilder<S, C = SystemClock> {
    store: S,
    clock: C,
    nodes: NonZeroU32,
    failures: u32,
    open_for: Duration,
    max_keys: usize,
    at_cap: AtCap,
    at_most: Distributed,
    listener: Listener,
}

impl<S> FallbackStoreBuilder<S> {
    pub(super) fn new(store: S) -> Self {
        Self {
            store,
            clock: SystemClock::new(),
            nodes: NonZeroU32::MIN,
            failures: FAILURES,
            open_for: OPEN_FOR,
            max_keys: DEFAULT_MAX_KEYS,
            at_cap: AtCap::default(),
            at_most: Distributed::On,
            listener: Listener::default(),
        }
    }
}

impl<S, C> FallbackStoreBuilder<S, C> {
    /// Among how many nodes limits are divided while the store cannot be asked; one if nobody says.
    #[must_use]
    pub fn nodes(self, nodes: NonZeroU32) -> Self {
        Self { nodes, ..self }
    }

    /// After how many failures in a row the store is no longer asked; 5 if nobody says, and at least 1.
    #[must_use]
    pub fn open_after(self, failures: u32) -> Self {
        Self { failures, ..self }
    }

    /// After how long without being asked a request tries whether the store answers again; 30 seconds if
    /// nobody says. [`FallbackStore::maintain`] tries sooner.
    #[must_use]
    pub fn open_for(self, length: Duration) -> Self {
        Self { open_for: length, ..self }
    }

    /// How many keys are remembered at most while the store cannot be asked; a million if nobody says.
    #[must_use]
    pub fn max_keys(self, max_keys: usize) -> Self {
        Self { max_keys, ..self }
    }

    /// What happens to a new key when so many are remembered.
    #[must_use]
    pub fn at_cap(self, at_cap: AtCap) -> Self {
        Self { at_cap, ..self }
    }

    /// How much the store has to say at most, whatever the takes of a plan say: the one switch for all.
    #[must_use]
    pub fn max_distribution(self, at_most: Distributed) -> Self {
        Self { at_most, ..self }
    }

    /// Who hears when the store fails, is lost and is back. It must not block.
    #[must_use]
    pub fn on_event(self, hear: impl Fn(StoreEvent<'_>) + Send + Sync + 'static) -> Self {
        Self { listener: Listener::new(hear), ..self }
    }

    /// Where the time comes from, for tests.
    #[must_use]
    pub fn clock<D>(self, clock: D) -> FallbackStoreBuilder<S, D> {
        let Self { store, nodes, failures, open_for, max_keys, at_cap, at_most, listener, .. } =
            self;
        FallbackStoreBuilder {
            store,
            clock,
            nodes,
            failures,
            open_for,
            max_keys,
            at_cap,
            at_most,
            listener,
        }
    }

    /// The store with its fallback.
    pub fn build(self) -> FallbackStore<S, C>
    where
        C: Clock + Clone,
    {
        let local = MemoryStore::builder().max_keys(self.max_keys).at_cap(self.at_cap);
        let local = local.clock(self.clock.clone());
        FallbackStore {
            store: self.store,
            local: local.build(),
            clock: self.clock,
            breaker: Breaker::new(self.failures, self.open_for),
            shares: Shares::new(self.nodes),
            ledger: Mutex::new(Ledger::new(self.max_keys)),
            tally: Tally::default(),
            is_attended: AtomicBool::new(false),
            probe: Probe::new(),
            at_most: self.at_most,
            listener: self.listener,
        }
    }
}
