//! Shards: hash tables with one lock each, and the count of keys in all of them.

use std::hash::BuildHasher;

use smallvec::SmallVec;

use super::lock::{Mutex, MutexGuard};
use super::registry::{Registered, UNREGISTERED};
use super::slot::LookupKey;
use super::table::Table;
use super::{MemoryStore, hash};
use crate::algorithm::{Op, Reply, State};
use crate::limit::Limit;
use crate::plan::Key;
use crate::sync::atomic::Ordering;
use crate::time::{Clock, Timestamp};

/// Number of slots checked for fresh keys per insertion: above 1, so that sweeping outpaces a flood of keys.
pub(super) const SWEPT_PER_INSERT: usize = 4;

// Number of other shards swept when the store is full, and number of slots checked in each.
const SHARDS_AT_CAP: usize = 2;
const SWEPT_AT_CAP: usize = 16;

/// The keys of a shard and its lock, in separate cache lines.
#[derive(Debug, Default)]
#[repr(align(64))]
pub(super) struct Shard(Mutex<Table>);

/// Location of a key.
#[derive(Clone, Copy)]
pub(super) struct Location<'n> {
    pub(super) shard: usize,
    pub(super) hash: u64,
    pub(super) lookup: LookupKey<'n>,
}

/// Location of a key and the limit of the operation.
#[derive(Clone, Copy)]
pub(super) struct LocatedKey<'n> {
    pub(super) location: Location<'n>,
    pub(super) limit: &'n Limit,
}

/// Locked shards of one plan.
pub(super) struct Locked<'s>(SmallVec<[(usize, MutexGuard<'s, Table>); 2]>);

impl Locked<'_> {
    /// Returns the table of a locked shard.
    pub(super) fn table(&mut self, shard: usize) -> Option<&mut Table> {
        let held = self.0.iter_mut().find(|(index, _)| *index == shard)?;
        Some(&mut held.1)
    }

    /// Reads the clock. The time is at least that of the last operation on each of the tables.
    pub(super) fn now(&mut self, clock: &impl Clock) -> Timestamp {
        let last = self.0.iter().map(|(_, table)| table.last()).max();
        let now = in_order(clock.monotonic_now(), clock, last.unwrap_or_default());
        self.0.iter_mut().for_each(|(_, table)| table.set_last(now));
        now
    }
}

impl<C: Clock, H: BuildHasher> MemoryStore<C, H> {
    /// Returns the location of a key. `text` is a buffer for its full name, if its limit is not registered.
    #[inline]
    pub(super) fn locate<'n>(&self, key: &Key<'n>, text: &'n mut Vec<u8>) -> LocatedKey<'n> {
        let registered = self.registry.find(key.limit());
        let identity = match registered.identity {
            UNREGISTERED => key.limit().identity(),
            _ => String::new(),
        };
        let location = self.location_in(registered, &identity, key.subject(), text);
        LocatedKey { location, limit: key.limit() }
    }

    /// Returns the location of a subject's key. `text` is a buffer for its full name, if the limit is not
    /// registered.
    pub(super) fn location_in<'n>(
        &self,
        registered: Registered,
        identity: &str,
        subject: &'n str,
        text: &'n mut Vec<u8>,
    ) -> Location<'n> {
        if registered.identity != UNREGISTERED {
            return self.location(registered, subject.as_bytes());
        }
        write_full_name(identity, subject, text);
        self.location(registered, text)
    }

    /// Like `locate`, without a buffer; `None` if the limit is not registered.
    #[inline(always)]
    pub(super) fn locate_registered<'n>(&self, key: &Key<'n>) -> Option<LocatedKey<'n>> {
        let registered = self.registry.find(key.limit());
        let is_registered = registered.identity != UNREGISTERED;
        is_registered.then(|| LocatedKey {
            location: self.location(registered, key.subject().as_bytes()),
            limit: key.limit(),
        })
    }

    #[inline(always)]
    pub(super) fn location<'n>(&self, registered: Registered, subject: &'n [u8]) -> Location<'n> {
        let lookup = LookupKey::new(registered, subject);
        let hash = lookup.hash(&self.hasher);
        Location { shard: self.shard_of(hash), hash, lookup }
    }

    /// Applies `op` to a key. Returns `None` if the key does not exist.
    #[inline(always)]
    pub(super) fn step(
        &self,
        table: &mut Table,
        at: &LocatedKey<'_>,
        now: Timestamp,
        op: Op,
    ) -> Option<Reply> {
        let Location { hash, lookup, .. } = &at.location;
        table.step((*hash, lookup), at.limit, &self.registry, now, op)
    }

    /// Runs `action` on the state of a key. Returns `None` if the key does not exist.
    pub(super) fn with_state<T>(
        &self,
        table: &mut Table,
        at: &LocatedKey<'_>,
        action: impl FnOnce(&mut State) -> T,
    ) -> Option<T> {
        let Location { hash, lookup, .. } = &at.location;
        table.with_state((*hash, lookup), at.limit, &self.registry, action)
    }

    /// Selects the shard of a hash. Shards are in the order of hashes.
    #[inline]
    pub(super) fn shard_of(&self, hash: u64) -> usize {
        hash::shard(hash, self.shards.len())
    }

    #[inline]
    pub(super) fn lock_one(&self, shard: usize) -> Option<MutexGuard<'_, Table>> {
        self.shards.get(shard).map(|shard| shard.0.lock())
    }

    /// Reads the clock. The time is at least that of the last operation on the locked table.
    #[inline]
    pub(super) fn now(&self, table: &mut Table) -> Timestamp {
        self.now_by(self.clock.monotonic_now(), table)
    }

    /// Like `now`, by a reading of `monotonic_now` from before the lock. The CPU waits for a locking instruction before it
    /// executes later ones, so a reading after it adds its whole time to a decision, and one before it almost none.
    #[inline]
    pub(super) fn now_by(&self, reading: Option<Timestamp>, table: &mut Table) -> Timestamp {
        let now = in_order(reading, &self.clock, table.last());
        table.set_last(now);
        now
    }

    /// Locks shards in ascending order, which prevents deadlocks between plans.
    pub(super) fn lock_all(&self, shards: impl Iterator<Item = usize>) -> Locked<'_> {
        let mut order: SmallVec<[usize; 2]> = shards.collect();
        order.sort_unstable();
        order.dedup();
        let lock = |index| self.lock_one(index).map(|guard| (index, guard));
        Locked(order.into_iter().filter_map(lock).collect())
    }

    pub(super) fn contains(&self, table: &mut Table, at: &LocatedKey<'_>) -> bool {
        table.contains(at.location.hash, &at.location.lookup, &self.registry)
    }

    /// Returns true if the store has space for another key.
    pub(super) fn is_below_cap(&self) -> bool {
        self.keys.load(Ordering::Relaxed) < self.max_keys
    }

    /// Counts a new key in advance. Returns false if the store is full and sweeping other shards frees
    /// nothing. The caller has already swept the key's own shard.
    pub(super) fn reserve_space(&self) -> bool {
        let below_cap = |keys: usize| (keys < self.max_keys).then_some(keys + 1);
        let reserve =
            || self.keys.fetch_update(Ordering::Relaxed, Ordering::Relaxed, below_cap).is_ok();
        let reserved = reserve() || (self.sweep_elsewhere() > 0 && reserve());
        if !reserved {
            self.untracked.fetch_add(1, Ordering::Relaxed);
        }
        reserved
    }

    /// Sweeps a few other shards, without waiting for their locks.
    #[cold]
    fn sweep_elsewhere(&self) -> usize {
        let mut dropped = 0;
        for _ in 0..SHARDS_AT_CAP {
            let index = self.next_swept.fetch_add(1, Ordering::Relaxed) % self.shards.len();
            if let Some(mut table) = self.shards.get(index).and_then(|shard| shard.0.try_lock()) {
                let now = self.now(&mut table);
                dropped += self.sweep_table(&mut table, SWEPT_AT_CAP, now);
            }
        }
        dropped
    }

    /// Reduces the count of keys, after a removal or an unused reservation.
    pub(super) fn unreserve(&self, keys: usize) {
        self.keys.fetch_sub(keys, Ordering::Relaxed);
    }

    /// Inserts a new key that `reserve` has counted.
    pub(super) fn insert(&self, table: &mut Table, at: &LocatedKey<'_>, state: State) {
        let Location { hash, lookup, .. } = &at.location;
        let entries = self.registry.read();
        table.insert((*hash, lookup), state, Some(at.limit), &entries, &self.hasher);
    }

    pub(super) fn remove(&self, table: &mut Table, location: &Location<'_>) -> bool {
        let removed = table.remove(location.hash, &location.lookup, &self.registry);
        if removed {
            self.unreserve(1);
        }
        removed
    }

    pub(super) fn sweep_table(&self, table: &mut Table, slots: usize, now: Timestamp) -> usize {
        let dropped = table.sweep(slots, now, &self.registry.read(), &self.hasher);
        if dropped > 0 {
            self.unreserve(dropped);
            self.evicted.fetch_add(dropped as u64, Ordering::Relaxed);
        }
        dropped
    }

    /// Checks about `keys` keys, one shard at a time, and drops the fresh ones, which equal keys that were
    /// never used. Returns the number of dropped keys.
    ///
    /// Calling this is optional, because every new key sweeps a few others. It frees memory earlier when no
    /// new keys arrive.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::{Key, Limit, ManualClock, MemoryStore, Plan, Quota, Subject, Take};
    ///
    /// let clock = ManualClock::new();
    /// let store = MemoryStore::builder().clock(clock.clone()).build();
    /// let limit = Limit::fixed_window(Quota::per_minute(10))?;
    /// let subject = Subject::of(["once"]);
    /// let _ = store.take(&Plan::new([Take::new(Key::new(&subject, &limit), 1)])?);
    ///
    /// clock.advance(Duration::from_secs(60));
    /// assert_eq!(store.sweep(usize::MAX), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn sweep(&self, keys: usize) -> usize {
        let (mut checked, mut dropped) = (0, 0);
        for _ in 0..self.shards.len() {
            if checked >= keys {
                break;
            }
            let index = self.next_swept.fetch_add(1, Ordering::Relaxed) % self.shards.len();
            let Some(mut table) = self.lock_one(index) else { break };
            let now = self.now(&mut table);
            checked += table.len();
            dropped += self.sweep_table(&mut table, usize::MAX, now);
        }
        dropped
    }
}

/// Returns the time of an operation after one at `last`. Readings of different threads can be out of order; the times of
/// operations on a key are not, unless the clock steps back.
#[inline]
fn in_order(reading: Option<Timestamp>, clock: &impl Clock, last: Timestamp) -> Timestamp {
    reading.map_or_else(|| clock.now(), |reading| reading.max(last))
}

/// Writes the name of a key whose limit is not registered: identity, NUL, subject. Identities contain no NUL.
#[cold]
fn write_full_name(identity: &str, subject: &str, text: &mut Vec<u8>) {
    text.extend_from_slice(identity.as_bytes());
    text.push(0);
    text.extend_from_slice(subject.as_bytes());
}
