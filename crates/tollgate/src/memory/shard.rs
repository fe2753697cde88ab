//! Shards: tables behind locks of their own, and the accounting of places in all of them.

use std::hash::BuildHasher;
use std::sync::atomic::Ordering;

use parking_lot::{Mutex, MutexGuard};
use smallvec::SmallVec;

use super::MemoryStore;
use super::register::{Registered, WRITTEN_OUT};
use super::slot::{Name, Slot};
use super::table::Table;
use crate::algorithm::{Op, Reply, State};
use crate::clock::Clock;
use crate::limit::Limit;
use crate::plan::Key;
use crate::time::Timestamp;

/// Slots looked at when a key is added: more than one, so that sweeping outruns a flood.
pub(super) const SWEPT_PER_INSERT: usize = 4;

/// Other shards looked into when there is no place left, and slots looked at in each.
const SHARDS_AT_CAP: usize = 2;
const SWEPT_AT_CAP: usize = 16;

/// A table and its lock, on a cache line of its own.
#[derive(Debug, Default)]
#[repr(align(64))]
pub(super) struct Shard(Mutex<Table>);

/// Where a key lives.
#[derive(Clone, Copy)]
pub(super) struct Spot<'n> {
    pub(super) shard: usize,
    pub(super) hash: u64,
    pub(super) name: Name<'n>,
}

/// Where a key lives, and under which limit it is asked for.
#[derive(Clone, Copy)]
pub(super) struct Located<'n> {
    pub(super) spot: Spot<'n>,
    pub(super) limit: &'n Limit,
}

/// The locked shards of one plan.
pub(super) struct Locked<'s>(SmallVec<[(usize, MutexGuard<'s, Table>); 2]>);

impl Locked<'_> {
    /// The table of a shard that was locked with the plan.
    pub(super) fn table(&mut self, shard: usize) -> Option<&mut Table> {
        let held = self.0.iter_mut().find(|(index, _)| *index == shard)?;
        Some(&mut held.1)
    }
}

impl<C: Clock, H: BuildHasher> MemoryStore<C, H> {
    /// Finds where a key lives. `text` holds its name where that must be written out.
    #[inline]
    pub(super) fn locate<'n>(&self, key: &Key<'n>, text: &'n mut Vec<u8>) -> Located<'n> {
        let registered = self.register.find(key.limit());
        let scope = match registered.scope {
            WRITTEN_OUT => key.limit().identity(),
            _ => String::new(),
        };
        let spot = self.spot_in(registered, &scope, key.subject(), text);
        Located { spot, limit: key.limit() }
    }

    /// Where the subject's key in a scope lives. `text` holds both where that has no number.
    pub(super) fn spot_in<'n>(
        &self,
        registered: Registered,
        scope: &str,
        subject: &'n str,
        text: &'n mut Vec<u8>,
    ) -> Spot<'n> {
        if registered.scope != WRITTEN_OUT {
            return self.spot(registered, subject.as_bytes());
        }
        write_out(scope, subject, text);
        self.spot(registered, text)
    }

    /// The same where nothing must be written out.
    #[inline(always)]
    pub(super) fn locate_numbered<'n>(&self, key: &Key<'n>) -> Option<Located<'n>> {
        let registered = self.register.find(key.limit());
        let is_numbered = registered.scope != WRITTEN_OUT;
        is_numbered.then(|| Located {
            spot: self.spot(registered, key.subject().as_bytes()),
            limit: key.limit(),
        })
    }

    #[inline(always)]
    pub(super) fn spot<'n>(&self, registered: Registered, subject: &'n [u8]) -> Spot<'n> {
        let name = Name::new(registered, subject);
        let hash = name.hash(&self.hasher);
        Spot { shard: self.shard_of(hash), hash, name }
    }

    /// Applies `op` to a key, if it is there.
    #[inline(always)]
    pub(super) fn step(
        &self,
        table: &mut Table,
        at: &Located<'_>,
        now: Timestamp,
        op: Op,
    ) -> Option<Reply> {
        let slot = table.get_mut(at.spot.hash, &at.spot.name, &self.register)?;
        Some(slot.step(&at.spot.name, at.limit, &self.register, now, op))
    }

    /// Runs `action` on the state of a key, if it is there.
    pub(super) fn with_state<T>(
        &self,
        table: &mut Table,
        at: &Located<'_>,
        action: impl FnOnce(&mut State) -> T,
    ) -> Option<T> {
        let slot = table.get_mut(at.spot.hash, &at.spot.name, &self.register)?;
        Some(slot.with_state(&at.spot.name, at.limit, &self.register, action))
    }

    /// The hash's high half chooses the shard, so that shards are in the order of hashes.
    #[inline]
    pub(super) fn shard_of(&self, hash: u64) -> usize {
        (((hash >> 32) * self.shards.len() as u64) >> 32) as usize
    }

    #[inline]
    pub(super) fn lock_one(&self, shard: usize) -> Option<MutexGuard<'_, Table>> {
        self.shards.get(shard).map(|shard| shard.0.lock())
    }

    /// Locks shards in ascending order, whatever order they are named in: no two plans can wait for
    /// each other.
    pub(super) fn lock_all(&self, shards: impl Iterator<Item = usize>) -> Locked<'_> {
        let mut order: SmallVec<[usize; 2]> = shards.collect();
        order.sort_unstable();
        order.dedup();
        let lock = |index| self.lock_one(index).map(|guard| (index, guard));
        Locked(order.into_iter().filter_map(lock).collect())
    }

    pub(super) fn contains(&self, table: &mut Table, at: &Located<'_>) -> bool {
        table.get_mut(at.spot.hash, &at.spot.name, &self.register).is_some()
    }

    /// Whether there is a place for one more key.
    pub(super) fn has_place(&self) -> bool {
        self.keys.load(Ordering::Relaxed) < self.max_keys
    }

    /// A place for one more key, if one is free or can be freed elsewhere. The caller has swept where
    /// the key is going to live.
    pub(super) fn reserve(&self) -> bool {
        let below_cap = |keys: usize| (keys < self.max_keys).then_some(keys + 1);
        let reserve =
            || self.keys.fetch_update(Ordering::Relaxed, Ordering::Relaxed, below_cap).is_ok();
        let reserved = reserve() || (self.sweep_elsewhere() > 0 && reserve());
        if !reserved {
            self.untracked.fetch_add(1, Ordering::Relaxed);
        }
        reserved
    }

    /// Looks for keys to drop in a few other shards, without waiting for any.
    #[cold]
    fn sweep_elsewhere(&self) -> usize {
        let mut dropped = 0;
        for _ in 0..SHARDS_AT_CAP {
            let index = self.next_swept.fetch_add(1, Ordering::Relaxed) % self.shards.len();
            if let Some(mut table) = self.shards.get(index).and_then(|shard| shard.0.try_lock()) {
                let now = self.clock.now();
                dropped += self.sweep_table(&mut table, SWEPT_AT_CAP, now);
            }
        }
        dropped
    }

    /// Gives back a place that was reserved and not used.
    pub(super) fn free_places(&self, places: usize) {
        self.keys.fetch_sub(places, Ordering::Relaxed);
    }

    /// Puts a new key into the place reserved for it.
    pub(super) fn insert(&self, table: &mut Table, at: &Located<'_>, state: State) {
        let slot = Slot::new(&at.spot.name, state, at.limit);
        table.insert(at.spot.hash, slot, &self.register.read(), &self.hasher);
    }

    pub(super) fn remove(&self, table: &mut Table, spot: &Spot<'_>) -> bool {
        let removed = table.remove(spot.hash, &spot.name, &self.register);
        if removed {
            self.free_places(1);
        }
        removed
    }

    pub(super) fn sweep_table(&self, table: &mut Table, slots: usize, now: Timestamp) -> usize {
        let dropped = table.sweep(slots, now, &self.register.read(), &self.hasher);
        if dropped > 0 {
            self.free_places(dropped);
            self.evicted.fetch_add(dropped as u64, Ordering::Relaxed);
        }
        dropped
    }

    /// Looks at about so many keys, in small bites, and drops those that equal "never seen". Returns
    /// how many were dropped.
    ///
    /// Nobody needs to call this: every new key sweeps a little. It gives memory back sooner where
    /// new keys have stopped coming.
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
        let (mut looked_at, mut dropped) = (0, 0);
        for _ in 0..self.shards.len() {
            if looked_at >= keys {
                break;
            }
            let index = self.next_swept.fetch_add(1, Ordering::Relaxed) % self.shards.len();
            let Some(mut table) = self.lock_one(index) else { break };
            let now = self.clock.now();
            looked_at += table.len();
            dropped += self.sweep_table(&mut table, usize::MAX, now);
        }
        dropped
    }
}

/// Where a limit has no number, its scope is part of the name. Scopes hold no NUL.
#[cold]
fn write_out(scope: &str, subject: &str, text: &mut Vec<u8>) {
    text.extend_from_slice(scope.as_bytes());
    text.push(0);
    text.extend_from_slice(subject.as_bytes());
}
