//! Builder of the memory store.

use super::registry::Registry;
use super::shard::Shard;
use super::{AtCap, DefaultHasher, MemoryStore};
use crate::sync::atomic::{AtomicU64, AtomicUsize};
use crate::time::CalibratedClock;

/// Default maximum number of keys of a [`MemoryStore`].
pub const DEFAULT_MAX_KEYS: usize = 1_000_000;

/// Approximate number of keys per shard when the store is full: small enough that growing a shard's table, which happens
/// under its lock, takes 0.1 ms or so, and so far below the 3584 keys of a table with 4096 buckets that few shards
/// need the next size. Smaller shards would be slower with few keys: each decision then reads the header and the table of
/// another shard, and they do not fit the CPU's first cache.
const KEYS_PER_SHARD: usize = 3280;
/// Minimum and maximum number of shards.
const SHARDS: std::ops::RangeInclusive<usize> = 16..=65_536;

/// Builds a [`MemoryStore`].
///
/// ```
/// use tollgate::{AtCap, ManualClock, MemoryStore};
///
/// let store = MemoryStore::builder()
///     .max_keys(50_000)
///     .at_cap(AtCap::Deny)
///     .clock(ManualClock::new())
///     .hasher(std::hash::RandomState::new())
///     .build();
/// assert_eq!(store.occupancy().max_keys, 50_000);
/// ```
#[derive(Debug, Clone)]
pub struct MemoryStoreBuilder<C = CalibratedClock, H = DefaultHasher> {
    clock: C,
    hasher: H,
    max_keys: usize,
    at_cap: AtCap,
}

impl Default for MemoryStoreBuilder {
    fn default() -> Self {
        Self {
            clock: CalibratedClock::new(),
            hasher: DefaultHasher::default(),
            max_keys: DEFAULT_MAX_KEYS,
            at_cap: AtCap::default(),
        }
    }
}

impl<C, H> MemoryStoreBuilder<C, H> {
    /// Sets the maximum number of keys.
    #[must_use]
    pub fn max_keys(self, max_keys: usize) -> Self {
        Self { max_keys, ..self }
    }

    /// Sets the behaviour for a new key when the store is full.
    #[must_use]
    pub fn at_cap(self, at_cap: AtCap) -> Self {
        Self { at_cap, ..self }
    }

    /// Sets the clock.
    #[must_use]
    pub fn clock<D>(self, clock: D) -> MemoryStoreBuilder<D, H> {
        let Self { hasher, max_keys, at_cap, .. } = self;
        MemoryStoreBuilder { clock, hasher, max_keys, at_cap }
    }

    /// Sets the hasher of keys.
    #[must_use]
    pub fn hasher<I>(self, hasher: I) -> MemoryStoreBuilder<C, I> {
        let Self { clock, max_keys, at_cap, .. } = self;
        MemoryStoreBuilder { clock, hasher, max_keys, at_cap }
    }

    /// Builds the store. Its shards allocate memory as keys are added.
    #[must_use]
    pub fn build(self) -> MemoryStore<C, H> {
        let shards = (self.max_keys / KEYS_PER_SHARD).clamp(*SHARDS.start(), *SHARDS.end());
        MemoryStore {
            shards: (0..shards).map(|_| Shard::default()).collect(),
            registry: Registry::new(),
            clock: self.clock,
            hasher: self.hasher,
            max_keys: self.max_keys,
            at_cap: self.at_cap,
            keys: AtomicUsize::new(0),
            untracked: AtomicU64::new(0),
            evicted: AtomicU64::new(0),
            next_swept: AtomicUsize::new(0),
            reservations: Default::default(),
        }
    }
}
