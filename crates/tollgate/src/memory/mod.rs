//! Memory store: sharded, bounded and self-cleaning.

mod builder;
mod decide;
mod hash;
mod inline_subject;
mod lease;
mod list;
#[cfg(not(tollgate_model))]
mod lock;
mod packed;
mod permits;
mod registry;
mod reservations;
mod shard;
mod slot;
mod snapshot;
mod stored_key;
mod table;
mod take_all;
mod take_bucket;
mod take_buckets;

use std::fmt;
use std::hash::BuildHasher;
use std::time::Duration;

pub use builder::{DEFAULT_MAX_KEYS, MemoryStoreBuilder};
pub use snapshot::{SnapshotError, SnapshotErrorKind};

use crate::decision::{Decision, Permit, Status};
use crate::lease::{LeaseReply, WantedLease};
use crate::plan::{Key, Mode, Plan};
use crate::reservation::{Draft, FinalCosts, Record, ReservationToken, Reserved, Settled};
use crate::store::{Listing, Page, Store, StoreError};
#[cfg(tollgate_model)]
use crate::sync as lock;
use crate::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use crate::time::{CalibratedClock, Clock, Timestamp};
use registry::Registry;
use reservations::Reservations;
use shard::Shard;

/// Default hasher of a [`MemoryStore`]: fast, with a random seed.
pub type DefaultHasher = foldhash::fast::RandomState;

/// Behaviour for a new key when the store is full and a short sweep finds no key to drop.
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
    /// The take passes and is not stored, nor are debits, pauses and slots of the key;
    /// [`Occupancy::untracked`] counts it.
    #[default]
    Allow,
    /// The take is refused with a `retry_after` of one second. This is a guess: the time at which space becomes
    /// free is unknown.
    Deny,
}

/// Number of keys in a [`MemoryStore`], its capacity, and the effects of reaching it.
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
    /// Stored keys.
    pub keys: usize,
    /// Maximum number of stored keys.
    pub max_keys: usize,
    /// Total number of times that a new key was not stored because the store was full.
    pub untracked: u64,
    /// Total number of fresh keys that were dropped.
    pub evicted: u64,
}

/// Store in the memory of this process.
///
/// Decisions are exact under any concurrency and cannot fail. For existing keys and one or two limits they
/// do not allocate, except when a sliding window's log or the list of held slots grows.
///
/// The store holds at most `max_keys` keys. It drops only fresh keys, which equal keys that were never used,
/// so dropping never resets a client's limit. Each new key checks a few others; no request pays for a scan.
///
/// The hasher has a random seed but is not cryptographic. Use `std::hash::RandomState` if attackers can
/// choose keys and measure latency to the nanosecond.
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
pub struct MemoryStore<C = CalibratedClock, H = DefaultHasher> {
    shards: Box<[Shard]>,
    registry: Registry,
    clock: C,
    hasher: H,
    max_keys: usize,
    at_cap: AtCap,
    keys: AtomicUsize,
    untracked: AtomicU64,
    evicted: AtomicU64,
    /// Shard at which the next sweep starts.
    next_swept: AtomicUsize,
    reservations: Reservations,
}

/// Omits the keys, which may be secret and numerous.
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
    /// Creates a store for at most 1 000 000 keys with a [`CalibratedClock`].
    #[must_use]
    pub fn new() -> Self {
        Self::builder().build()
    }

    /// Returns a builder, to set the capacity, the clock or the hasher.
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
    /// Returns the number of keys and the capacity.
    pub fn occupancy(&self) -> Occupancy {
        Occupancy {
            keys: self.keys.load(Ordering::Relaxed),
            max_keys: self.max_keys,
            untracked: self.untracked.load(Ordering::Relaxed),
            evicted: self.evicted.load(Ordering::Relaxed),
        }
    }
}

/// Forwards to the inherent methods. None of them waits, and only `list` can fail, on an invalid cursor.
impl<C: Clock, H: BuildHasher + Send + Sync> Store for MemoryStore<C, H> {
    const IS_IMMEDIATE: bool = true;

    async fn take<'a>(&self, plan: &Plan<'a>) -> Result<Decision<'a>, StoreError> {
        Ok(self.take(plan))
    }

    #[inline(always)]
    fn take_one_now<'k>(&self, key: &Key<'k>, cost: u64) -> Option<(Status<'k>, Timestamp)> {
        let (outcome, now) = self.take_one(key, cost);
        Some((Status::with_outcome(key.limit(), Mode::Enforce, outcome), now))
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

    async fn lease(
        &self,
        plan: &Plan<'_>,
        wanted: &WantedLease,
    ) -> Result<Option<LeaseReply>, StoreError> {
        Ok(self.lease(plan, wanted))
    }

    async fn reserve<'a>(
        &self,
        plan: &Plan<'a>,
        draft: &Draft,
    ) -> Result<Reserved<'a>, StoreError> {
        self.reserve(plan, draft)
    }

    async fn settle(
        &self,
        token: &ReservationToken,
        tenant: Option<&[u8]>,
        finals: &FinalCosts,
    ) -> Result<Option<Settled>, StoreError> {
        Ok(self.settle(token, tenant, finals))
    }

    async fn adopt_reservation(&self, record: &Record, age: Duration) -> Result<(), StoreError> {
        self.adopt_reservation(record, age);
        Ok(())
    }

    async fn renew_reservation(
        &self,
        token: &ReservationToken,
        tenant: Option<&[u8]>,
    ) -> Result<Option<Timestamp>, StoreError> {
        Ok(self.renew_reservation(token, tenant))
    }
}
