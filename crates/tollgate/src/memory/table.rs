//! Keys of one shard: a hash table of short slots and one of long slots.

mod buckets;

use std::hash::BuildHasher;

use hashbrown::HashTable;

use super::hash::in_table;
use super::inline_subject::InlineSubject;
use super::registry::{Entries, Registry};
use super::slot::{LongSlot, LookupKey, ShortSlot, Slot};
use super::stored_key::StoredKey;
use crate::algorithm::{Op, Reply, State};
use crate::limit::Limit;
use crate::time::Timestamp;

/// Tables with fewer buckets are not shrunk.
const MIN_BUCKETS: usize = 32;

/// The keys of one shard. The order of the fields matters: with the lock before it, a lookup in either table reads one
/// cache line.
#[derive(Debug, Default)]
#[repr(C)]
pub(super) struct Table {
    /// Time of the last operation.
    last: Timestamp,
    short: HashTable<ShortSlot>,
    long: HashTable<LongSlot>,
    /// Bucket at which the next sweep starts. The buckets of the long slots follow those of the short ones.
    cursor: usize,
}

impl Table {
    pub(super) fn len(&self) -> usize {
        self.short.len() + self.long.len()
    }

    /// Time of the last operation on this table.
    #[inline]
    pub(super) fn last(&self) -> Timestamp {
        self.last
    }

    #[inline]
    pub(super) fn set_last(&mut self, now: Timestamp) {
        self.last = now;
    }

    /// Applies `op` to the state of a key, whose limit is `limit`. Returns `None` if the key does not exist.
    #[inline]
    pub(super) fn step(
        &mut self,
        (hash, lookup): (u64, &LookupKey<'_>),
        limit: &Limit,
        registry: &Registry,
        now: Timestamp,
        op: Op,
    ) -> Option<Reply> {
        if lookup.is_short() {
            let slot = find(&mut self.short, hash, lookup, registry)?;
            Some(slot.step(lookup, limit, registry, now, op))
        } else {
            let slot = find(&mut self.long, hash, lookup, registry)?;
            Some(slot.step(lookup, limit, registry, now, op))
        }
    }

    /// Runs `action` on the state of a key, whose limit is `limit`. Returns `None` if the key does not exist.
    pub(super) fn with_state<T>(
        &mut self,
        (hash, lookup): (u64, &LookupKey<'_>),
        limit: &Limit,
        registry: &Registry,
        action: impl FnOnce(&mut State) -> T,
    ) -> Option<T> {
        if lookup.is_short() {
            let slot = find(&mut self.short, hash, lookup, registry)?;
            Some(slot.with_state(lookup, limit, registry, action))
        } else {
            let slot = find(&mut self.long, hash, lookup, registry)?;
            Some(slot.with_state(lookup, limit, registry, action))
        }
    }

    /// Returns the state of a key; `None` if the key does not exist or its state is a packed token bucket.
    pub(super) fn state_mut(
        &mut self,
        hash: u64,
        lookup: &LookupKey<'_>,
        registry: &Registry,
    ) -> Option<&mut State> {
        if lookup.is_short() {
            find(&mut self.short, hash, lookup, registry)?.state_mut()
        } else {
            find(&mut self.long, hash, lookup, registry)?.state_mut()
        }
    }

    pub(super) fn contains(
        &mut self,
        hash: u64,
        lookup: &LookupKey<'_>,
        registry: &Registry,
    ) -> bool {
        if lookup.is_short() {
            find(&mut self.short, hash, lookup, registry).is_some()
        } else {
            find(&mut self.long, hash, lookup, registry).is_some()
        }
    }

    /// Inserts a key that does not exist yet. `limit` is that of the last operation, if it is known.
    pub(super) fn insert(
        &mut self,
        (hash, lookup): (u64, &LookupKey<'_>),
        state: State,
        limit: Option<&Limit>,
        entries: &Entries,
        hasher: &impl BuildHasher,
    ) {
        if lookup.is_short() {
            insert(&mut self.short, hash, Slot::new(lookup, state, limit), entries, hasher);
        } else {
            insert(&mut self.long, hash, Slot::new(lookup, state, limit), entries, hasher);
        }
    }

    /// Removes a key. Returns false if it does not exist.
    pub(super) fn remove(
        &mut self,
        hash: u64,
        lookup: &LookupKey<'_>,
        registry: &Registry,
    ) -> bool {
        if lookup.is_short() {
            remove(&mut self.short, hash, lookup, registry)
        } else {
            remove(&mut self.long, hash, lookup, registry)
        }
    }

    /// Checks the next `count` buckets and drops fresh keys. Returns the number of dropped keys.
    pub(super) fn sweep(
        &mut self,
        count: usize,
        now: Timestamp,
        entries: &Entries,
        hasher: &impl BuildHasher,
    ) -> usize {
        let before = self.len();
        let short = self.short.num_buckets();
        let buckets = short + self.long.num_buckets();
        for _ in 0..count.min(buckets) {
            if self.cursor >= buckets {
                self.cursor = 0;
            }
            match self.cursor.checked_sub(short) {
                None => drop_if_fresh(&mut self.short, self.cursor, now, entries),
                Some(bucket) => drop_if_fresh(&mut self.long, bucket, now, entries),
            }
            self.cursor += 1;
        }
        let dropped = before - self.len();
        if dropped > 0 {
            shrink(&mut self.short, entries, hasher);
            shrink(&mut self.long, entries, hasher);
        }
        dropped
    }

    /// Iterates over all keys.
    pub(super) fn iter(&self) -> impl Iterator<Item = StoredKey<'_>> {
        self.short.iter().map(Slot::key).chain(self.long.iter().map(Slot::key))
    }
}

#[inline]
fn find<'t, S: InlineSubject>(
    slots: &'t mut HashTable<Slot<S>>,
    hash: u64,
    lookup: &LookupKey<'_>,
    registry: &Registry,
) -> Option<&'t mut Slot<S>> {
    slots.find_mut(in_table(hash), |slot| slot.matches(lookup, registry))
}

fn insert<S: InlineSubject>(
    slots: &mut HashTable<Slot<S>>,
    hash: u64,
    slot: Slot<S>,
    entries: &Entries,
    hasher: &impl BuildHasher,
) {
    let hash_of = |slot: &Slot<S>| in_table(slot.key().hash(entries, hasher));
    if slots.len() == slots.capacity() && has_many_removed(slots) {
        // `hashbrown` would double the table: the buckets of removed keys are not empty for it.
        let capacity = full_capacity(slots.num_buckets());
        let old = std::mem::replace(slots, HashTable::with_capacity(capacity));
        for slot in old {
            slots.insert_unique(hash_of(&slot), slot, hash_of);
        }
    }
    slots.insert_unique(in_table(hash), slot, hash_of);
}

/// Returns true if at least an eighth of a table without space was used by keys that were removed.
fn has_many_removed<S: InlineSubject>(slots: &HashTable<Slot<S>>) -> bool {
    let buckets = slots.num_buckets();
    (full_capacity(buckets) - slots.len()) * 8 >= buckets
}

/// Number of keys for which a table with this number of buckets has space.
const fn full_capacity(buckets: usize) -> usize {
    if buckets < 8 { buckets.saturating_sub(1) } else { buckets / 8 * 7 }
}

fn remove<S: InlineSubject>(
    slots: &mut HashTable<Slot<S>>,
    hash: u64,
    lookup: &LookupKey<'_>,
    registry: &Registry,
) -> bool {
    let found = slots.find_entry(in_table(hash), |slot| slot.matches(lookup, registry));
    found.map(|entry| drop(entry.remove())).is_ok()
}

fn drop_if_fresh<S: InlineSubject>(
    slots: &mut HashTable<Slot<S>>,
    bucket: usize,
    now: Timestamp,
    entries: &Entries,
) {
    if slots.get_bucket(bucket).is_some_and(|slot| slot.key().is_fresh(now, entries))
        && let Ok(entry) = slots.get_bucket_entry(bucket)
    {
        drop(entry.remove());
    }
}

/// Frees memory when the table is less than a quarter full.
fn shrink<S: InlineSubject>(
    slots: &mut HashTable<Slot<S>>,
    entries: &Entries,
    hasher: &impl BuildHasher,
) {
    if slots.num_buckets() >= MIN_BUCKETS && slots.len() * 4 < slots.num_buckets() {
        let capacity = slots.len() * 2;
        slots.shrink_to(capacity, |slot| in_table(slot.key().hash(entries, hasher)));
    }
}

#[cfg(test)]
mod tests;
