//! The memory store: sharded, bounded, self-cleaning.

mod builder;
mod decide;
mod list;
mod packed;
mod permits;
mod register;
mod shard;
mod slot;
mod snapshot;
mod table;

use std::fmt;
use std::hash::BuildHasher;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

pub use builder::{DEFAULT_MAX_KEYS, MemoryStoreBuilder};
pub(crate) use register::RegisterCell;
pub use snapshot::{SnapshotError, SnapshotErrorKind};

use crate::clock::{Clock, SystemClock};
use crate::decision::Decision;
use crate::listing::{Listing, Page};
use crate::permit::Permit;
use crate::plan::{Key, Plan};
use crate::status::Status;
use crate::store::{Store, StoreError};
use crate::time::Timestamp;
use register::Register;
use shard::Shard;

/// The hasher of a [`MemoryStore`] unless another is chosen: fast, and seeded at random.
pub type DefaultHasher = foldhash::fast::RandomState;

/// What happens to a new key when the store is full and a short look around finds no key to drop.
///
/// ```
/// use tollgate::{AtCap, Limit, LocalLimiter, Quota};
///
/// let builder = LocalLimiter::builder().limit(Limit::fixed_window(Quota::per_day(5))?);
/// let logins = builder.max_keys(1).at_cap(AtCap::Deny).build()?;
/// assert!(logins.take("alice").is_allowed());
/// assert!(!logins.take("bob").is_allowed());
/// # Ok::<(), tollgate::QuotaError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum AtCap {
    /// It passes and is not remembered, nor are its debits, pauses and slots;
    /// [`Occupancy::untracked`] counts it.
    #[default]
    Allow,
    /// It is refused and told to come back in a second. That is a guess: nobody knows when a place will be free.
    Deny,
}

/// How full a [`MemoryStore`] is, and what that has led to.
///
/// ```
/// use tollgate::{Limit, LocalLimiter, Quota};
///
/// let limiter = LocalLimiter::new(Limit::fixed_window(Quota::per_day(5))?);
/// let _ = limiter.take("alice");
/// let occupancy = limiter.occupancy();
/// assert_eq!((occupancy.keys, occupancy.untracked), (1, 0));
/// # Ok::<(), tollgate::QuotaError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Occupancy {
    /// Keys held now.
    pub keys: usize,
    /// The most that will be held.
    pub max_keys: usize,
    /// How often a new key found no place, since the beginning.
    pub untracked: u64,
    /// How many keys were dropped because they equalled "never seen", since the beginning.
    pub evicted: u64,
}

/// Counters in this process's memory.
///
/// Decisions are exact under any concurrency and cannot fail. On a known key, under one or two limits,
/// they allocate nothing; only a sliding window allocates, as its log grows, and slots as they are taken.
///
/// At most `max_keys` are held. Only a key that equals "never seen" is ever dropped, a few looked at
/// with every new one, so dropping can never reset someone's limit and no request pays for a scan.
///
/// The hasher is keyed at random but not cryptographic. If strangers choose keys and can measure
/// your latency to the nanosecond, use `std::hash::RandomState`.
///
/// ```
/// use tollgate::{Key, Limit, MemoryStore, Plan, Quota, Subject, Take};
///
/// let store = MemoryStore::builder().max_keys(10_000).build();
/// let limit = Limit::sliding_window(Quota::per_minute(2))?;
/// let subject = Subject::of(["user:1"]);
/// let plan = Plan::new([Take::new(Key::new(&subject, &limit), 1)])?;
///
/// assert!(store.take(&plan).is_allowed());
/// assert!(store.take(&plan).is_allowed());
/// assert!(!store.take(&plan).is_allowed());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct MemoryStore<C = SystemClock, H = DefaultHasher> {
    shards: Box<[Shard]>,
    register: Register,
    clock: C,
    hasher: H,
    max_keys: usize,
    at_cap: AtCap,
    keys: AtomicUsize,
    untracked: AtomicU64,
    evicted: AtomicU64,
    /// The shard that the next explicit sweep begins with.
    next_swept: AtomicUsize,
}

/// Without the keys, which may be secrets and many.
impl<C: fmt::Debug, H> fmt::Debug for MemoryStore<C, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryStore")
            .field("clock", &self.clock)
            .field("at_cap", &self.at_cap)
            .field("occupancy", &self.occupancy())
            .finish_non_exhaustive()
    }
}

impl MemoryStore {
    /// A store for a million keys on the system clock.
    #[must_use]
    pub fn new() -> Self {
        Self::builder().build()
    }

    /// A store of other dimensions.
    #[must_use]
    pub fn builder() -> MemoryStoreBuilder {
        MemoryStoreBuilder::default()
    }
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new()
    }
}

impl<C, H> MemoryStore<C, H> {
    /// How full it is.
    pub fn occupancy(&self) -> Occupancy {
        Occupancy {
            keys: self.keys.load(Ordering::Relaxed),
            max_keys: self.max_keys,
            untracked: self.untracked.load(Ordering::Relaxed),
            evicted: self.evicted.load(Ordering::Relaxed),
        }
    }
}

/// The same methods as the inherent ones; none of them waits or fails, but for a foreign cursor.
impl<C: Clock, H: BuildHasher + Send + Sync> Store for MemoryStore<C, H> {
    const IS_IMMEDIATE: bool = true;

    async fn take<'a>(&self, plan: &Plan<'a>) -> Result<Decision<'a>, StoreError> {
        Ok(self.take(plan))
    }

    async fn peek<'a>(&self, plan: &Plan<'a>) -> Result<Decision<'a>, StoreError> {
        Ok(self.peek(plan))
    }

    async fn refund<'a>(&self, plan: &Plan<'a>) -> Result<Decision<'a>, StoreError> {
        Ok(self.refund(plan))
    }

    async fn debit<'a>(&self, plan: &Plan<'a>, age: Duration) -> Result<Decision<'a>, StoreError> {
        Ok(self.debit(plan, age))
    }

    async fn pause(&self, key: &Key<'_>, length: Duration) -> Result<(), StoreError> {
        self.pause(key, length);
        Ok(())
    }

    async fn reset(&self, key: &Key<'_>) -> Result<(), StoreError> {
        self.reset(key);
        Ok(())
    }

    async fn release(&self, permit: &Permit) -> Result<bool, StoreError> {
        Ok(self.release(permit))
    }

    async fn renew(&self, permit: &Permit) -> Result<Option<Timestamp>, StoreError> {
        Ok(self.renew(permit))
    }

    async fn stats<'a>(&self, key: &Key<'a>) -> Result<Status<'a>, StoreError> {
        Ok(self.stats(key))
    }

    async fn list(&self, listing: &Listing) -> Result<Page, StoreError> {
        self.list(listing)
    }
}
