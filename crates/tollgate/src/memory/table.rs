//! Hash table of one shard: groups of seven slots with one-byte tags.
//!
//! The tags and overflow count of a group share one 64-bit word, so a lookup reads one word (from a small
//! array that stays in cache) and then the matching slot. A key whose group is full is stored in a later
//! group, and every full group before it counts it as overflow: a lookup stops at a group without
//! overflow, and a removal needs no tombstone.

use std::hash::BuildHasher;

use super::builder::KEYS_PER_SHARD;
use super::packed::PackedBucketMut;
use super::registry::{Entries, LimitId, Registry};
use super::slot::{LookupKey, Slot};
use crate::time::Timestamp;

/// Number of slots in a group. The eighth byte of its word is the overflow count.
const GROUP: usize = 7;
const EMPTY: u8 = 0;
/// Overflow count at its maximum, which is no longer exact and stays until the table is rebuilt.
const SATURATED: u8 = u8::MAX;
const FIRST_GROUPS: usize = 2;
/// Number of groups for a shard of a full store, plus 10 % for uneven distribution.
const FULL_GROUPS: usize = KEYS_PER_SHARD * 14 / 13 / GROUP * 11 / 10;

#[derive(Debug, Default)]
pub(super) struct Table {
    words: Box<[Word]>,
    slots: Box<[Slot]>,
    len: usize,
    /// Slot at which the next sweep starts.
    cursor: usize,
    /// Time of the last operation.
    last: Timestamp,
}

/// Seven tags and an overflow count.
#[derive(Debug, Clone, Copy, Default)]
struct Word(u64);

impl Word {
    const LOW: u64 = 0x0001_0101_0101_0101;
    const HIGH: u64 = 0x0080_8080_8080_8080;

    /// Returns the lanes that equal `tag`. A lane above a match may be a false positive; callers compare keys.
    #[inline]
    fn matches(self, tag: u8) -> Lanes {
        let differing = self.0 ^ (Self::LOW * u64::from(tag));
        Lanes(differing.wrapping_sub(Self::LOW) & !differing & Self::HIGH)
    }

    /// Returns the first empty lane: tags have their high bit set, empty lanes do not.
    #[inline]
    fn empty_lane(self) -> Option<usize> {
        Lanes(!self.0 & Self::HIGH).next()
    }

    #[inline]
    fn overflow(self) -> u8 {
        self.byte(GROUP)
    }

    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "extracts one byte")]
    fn byte(self, lane: usize) -> u8 {
        (self.0 >> (8 * lane)) as u8
    }

    fn is_occupied(self, lane: usize) -> bool {
        self.byte(lane) != EMPTY
    }

    fn set_tag(&mut self, lane: usize, tag: u8) {
        self.0 = self.0 & !(0xFF << (8 * lane)) | u64::from(tag) << (8 * lane);
    }

    fn set_overflow(&mut self, count: u8) {
        self.set_tag(GROUP, count);
    }
}

/// Iterator over the lanes whose high bit is set, lowest first.
struct Lanes(u64);

impl Iterator for Lanes {
    type Item = usize;

    #[inline]
    fn next(&mut self) -> Option<usize> {
        if self.0 == 0 {
            return None;
        }
        let lane = self.0.trailing_zeros() / 8;
        self.0 &= self.0 - 1;
        usize::try_from(lane).ok()
    }
}

/// Returns the first group and the tag of a hash: the group from the high bits of its low half, the tag from
/// the lowest bits. The high half of the hash selects the shard.
#[inline]
#[expect(
    clippy::cast_possible_truncation,
    reason = "bits of a hash; the product's high half is below `groups`"
)]
fn group_and_tag(hash: u64, groups: usize) -> (usize, u8) {
    let low = hash as u32;
    // Less than 2^32 groups: the product fits.
    let group = u64::from(low).wrapping_mul(groups as u64) >> 32;
    (group as usize, low as u8 | 0x80)
}

/// Returns the next larger number of groups. It doubles while tables are small, then goes directly to the
/// size for a full store, then grows by a quarter: tables of a full store are well filled after few rebuilds.
fn next_size(groups: usize) -> usize {
    match groups {
        0 => FIRST_GROUPS,
        _ if groups * 2 <= FULL_GROUPS => groups * 2,
        _ if groups < FULL_GROUPS => FULL_GROUPS,
        _ => groups + groups / 4,
    }
}

impl Table {
    pub(super) fn len(&self) -> usize {
        self.len
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

    #[inline]
    pub(super) fn get_mut(
        &mut self,
        hash: u64,
        lookup: &LookupKey<'_>,
        registry: &Registry,
    ) -> Option<&mut Slot> {
        let index = self.find(hash, lookup, registry)?;
        self.slots.get_mut(index)
    }

    #[inline]
    fn find(&self, hash: u64, lookup: &LookupKey<'_>, registry: &Registry) -> Option<usize> {
        self.find_where(hash, |slot| slot.matches(lookup, registry))
    }

    /// Returns the bucket of a key; `None` if the key does not exist, or its state is not a packed bucket with the
    /// limit of the lookup.
    #[inline(always)]
    pub(super) fn bucket_mut(
        &mut self,
        hash: u64,
        lookup: &LookupKey<'_>,
    ) -> Option<PackedBucketMut<'_>> {
        let index = match lookup.short() {
            Some(short) => self.find_where(hash, |slot| slot.is_short(lookup.limit(), short)),
            None => self.find_long(hash, lookup.limit(), lookup.subject()),
        };
        self.slots.get_mut(index?)?.bucket_mut()
    }

    #[inline(never)]
    fn find_long(&self, hash: u64, limit: LimitId, subject: &[u8]) -> Option<usize> {
        self.find_where(hash, |slot| slot.is_long(limit, subject))
    }

    #[inline(always)]
    fn find_where(&self, hash: u64, is_found: impl Fn(&Slot) -> bool) -> Option<usize> {
        let (mut group, tag) = group_and_tag(hash, self.words.len());
        for _ in 0..self.words.len() {
            let word = self.words.get(group)?;
            for lane in word.matches(tag) {
                let index = group.wrapping_mul(GROUP).wrapping_add(lane);
                if self.slots.get(index).is_some_and(&is_found) {
                    return Some(index);
                }
            }
            if word.overflow() == 0 {
                return None;
            }
            group = self.after(group);
        }
        None
    }

    #[inline]
    fn after(&self, group: usize) -> usize {
        if group + 1 == self.words.len() { 0 } else { group + 1 }
    }

    /// Inserts a key that does not exist yet.
    pub(super) fn insert(
        &mut self,
        hash: u64,
        slot: Slot,
        entries: &Entries,
        hasher: &impl BuildHasher,
    ) {
        // Above a load of 13/14, probe sequences become long.
        if (self.len + 1) * 14 > self.slots.len() * 13 {
            self.rebuild(next_size(self.words.len()), entries, hasher);
        }
        self.fill_slot(hash, slot);
    }

    fn fill_slot(&mut self, hash: u64, slot: Slot) {
        let (mut group, tag) = group_and_tag(hash, self.words.len());
        while let Some(word) = self.words.get_mut(group) {
            if let Some(lane) = word.empty_lane() {
                word.set_tag(lane, tag);
                if let Some(vacant) = self.slots.get_mut(group * GROUP + lane) {
                    *vacant = slot;
                }
                self.len += 1;
                return;
            }
            word.set_overflow(word.overflow().saturating_add(1));
            group = self.after(group);
        }
    }

    /// Removes a key. Returns false if it does not exist.
    pub(super) fn remove(
        &mut self,
        hash: u64,
        lookup: &LookupKey<'_>,
        registry: &Registry,
    ) -> bool {
        let index = self.find(hash, lookup, registry);
        if let Some(index) = index {
            self.clear_slot(index, hash);
        }
        index.is_some()
    }

    fn clear_slot(&mut self, index: usize, hash: u64) {
        let home = index / GROUP;
        let (mut group, _) = group_and_tag(hash, self.words.len());
        while group != home {
            if let Some(word) = self.words.get_mut(group)
                && word.overflow() != SATURATED
            {
                word.set_overflow(word.overflow().saturating_sub(1));
            }
            group = self.after(group);
        }
        if let Some(word) = self.words.get_mut(home) {
            word.set_tag(index % GROUP, EMPTY);
        }
        if let Some(slot) = self.slots.get_mut(index) {
            *slot = Slot::default();
        }
        self.len -= 1;
    }

    /// Checks the next `count` slots and drops fresh keys. Returns the number of dropped keys.
    pub(super) fn sweep(
        &mut self,
        count: usize,
        now: Timestamp,
        entries: &Entries,
        hasher: &impl BuildHasher,
    ) -> usize {
        let before = self.len;
        for _ in 0..count.min(self.slots.len()) {
            if self.cursor >= self.slots.len() {
                self.cursor = 0;
            }
            self.sweep_slot(self.cursor, now, entries, hasher);
            self.cursor += 1;
        }
        let dropped = before - self.len;
        if dropped > 0 {
            self.shrink(entries, hasher);
        }
        dropped
    }

    fn is_occupied(&self, index: usize) -> bool {
        self.words.get(index / GROUP).is_some_and(|word| word.is_occupied(index % GROUP))
    }

    fn sweep_slot(
        &mut self,
        index: usize,
        now: Timestamp,
        entries: &Entries,
        hasher: &impl BuildHasher,
    ) {
        if !self.is_occupied(index) {
            return;
        }
        let fresh = self.slots.get(index).filter(|slot| slot.is_fresh(now, entries));
        if let Some(hash) = fresh.map(|slot| slot.hash(entries, hasher)) {
            self.clear_slot(index, hash);
        }
    }

    /// Frees memory when the table is less than a quarter full.
    fn shrink(&mut self, entries: &Entries, hasher: &impl BuildHasher) {
        if self.words.len() > FIRST_GROUPS && self.len * 4 < self.slots.len() {
            self.rebuild((self.words.len() / 2).max(FIRST_GROUPS), entries, hasher);
        }
    }

    fn rebuild(&mut self, groups: usize, entries: &Entries, hasher: &impl BuildHasher) {
        let words = vec![Word::default(); groups].into_boxed_slice();
        let slots = (0..groups * GROUP).map(|_| Slot::default()).collect();
        let old_words = std::mem::replace(&mut self.words, words);
        let old_slots = std::mem::replace(&mut self.slots, slots);
        (self.len, self.cursor) = (0, 0);
        for (index, slot) in old_slots.into_iter().enumerate() {
            if old_words.get(index / GROUP).is_some_and(|word| word.is_occupied(index % GROUP)) {
                let hash = slot.hash(entries, hasher);
                self.fill_slot(hash, slot);
            }
        }
    }

    /// Iterates over the occupied slots.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Slot> {
        self.words.iter().zip(self.slots.chunks(GROUP)).flat_map(|(word, slots)| {
            let tags = word.0.to_le_bytes();
            slots.iter().zip(tags).filter(|(_, tag)| *tag != EMPTY).map(|(slot, _)| slot)
        })
    }
}

#[cfg(test)]
mod tests;
