//! One shard's hash table: groups of seven slots, found by one-byte tags.
//!
//! A group's tags and its overflow count share one 64-bit word, so a lookup reads a word (from a small
//! array that stays in cache) and then the one slot that matches. A key whose group is full lives in a
//! later group, and every full group it passed counts it: a lookup stops at a group that nobody has
//! passed, and removing a key needs no tombstone. The table grows by a quarter, not by doubling: it is
//! never less than two thirds full for long.

use std::hash::BuildHasher;

use super::slot::{Name, Slot};
use crate::algorithm::State;
use crate::time::Timestamp;

/// Slots in a group: the eighth byte of its word counts the keys that overflowed it.
const GROUP: usize = 7;
const EMPTY: u8 = 0;
/// An overflow count that has lost count, and stays until the table is rebuilt.
const SATURATED: u8 = u8::MAX;
const FIRST_GROUPS: usize = 2;

#[derive(Debug, Default)]
pub(super) struct Table {
    words: Box<[Word]>,
    slots: Box<[Slot]>,
    len: usize,
    /// Where the next sweep begins.
    cursor: usize,
}

/// Seven tags and an overflow count.
#[derive(Debug, Clone, Copy, Default)]
struct Word(u64);

impl Word {
    const LOW: u64 = 0x0001_0101_0101_0101;
    const HIGH: u64 = 0x0080_8080_8080_8080;

    /// A bit in each of the seven bytes that equals `tag`. A byte above a match may be reported
    /// falsely; the key decides.
    #[inline]
    fn matches(self, tag: u8) -> Lanes {
        let differing = self.0 ^ (Self::LOW * u64::from(tag));
        Lanes(differing.wrapping_sub(Self::LOW) & !differing & Self::HIGH)
    }

    /// Tags have their high bit set, so an empty lane is one without.
    #[inline]
    fn empty_lane(self) -> Option<usize> {
        Lanes(!self.0 & Self::HIGH).next()
    }

    #[inline]
    fn overflow(self) -> u8 {
        self.byte(GROUP)
    }

    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "one byte is wanted")]
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

/// The lanes whose high bit is set, lowest first.
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

/// A hash's low half chooses the group by its high bits, and the tag by its low ones. The high half
/// chose the shard.
#[inline]
#[expect(
    clippy::cast_possible_truncation,
    reason = "bits of a hash; the product's high half is below `groups`"
)]
fn place(hash: u64, groups: usize) -> (usize, u8) {
    let low = hash as u32;
    let group = (u64::from(low) * groups as u64) >> 32;
    (group as usize, low as u8 | 0x80)
}

impl Table {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    #[inline(always)]
    pub(super) fn get_mut(&mut self, hash: u64, name: Name<'_>) -> Option<&mut State> {
        let index = self.find(hash, name)?;
        self.slots.get_mut(index).map(|slot| &mut slot.state)
    }

    #[inline(always)]
    fn find(&self, hash: u64, name: Name<'_>) -> Option<usize> {
        let (mut group, tag) = place(hash, self.words.len());
        for _ in 0..self.words.len() {
            let word = self.words.get(group)?;
            for lane in word.matches(tag) {
                let index = group * GROUP + lane;
                if self.slots.get(index).is_some_and(|slot| slot.is_named(name)) {
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

    /// Adds a key that is not there yet.
    pub(super) fn insert(&mut self, hash: u64, slot: Slot, hasher: &impl BuildHasher) {
        // Past 13/14 full, probes grow long.
        if (self.len + 1) * 14 > self.slots.len() * 13 {
            let groups = self.words.len();
            self.rebuild((groups + groups / 4 + 1).max(FIRST_GROUPS), hasher);
        }
        self.place_slot(hash, slot);
    }

    fn place_slot(&mut self, hash: u64, slot: Slot) {
        let (mut group, tag) = place(hash, self.words.len());
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

    /// Removes a key.
    pub(super) fn remove(&mut self, hash: u64, name: Name<'_>) -> bool {
        let index = self.find(hash, name);
        if let Some(index) = index {
            self.vacate(index, hash);
        }
        index.is_some()
    }

    fn vacate(&mut self, index: usize, hash: u64) {
        let home = index / GROUP;
        let (mut group, _) = place(hash, self.words.len());
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

    /// Looks at the next `count` slots and forgets those that equal "never seen". Returns how many.
    pub(super) fn sweep(
        &mut self,
        count: usize,
        now: Timestamp,
        hasher: &impl BuildHasher,
    ) -> usize {
        let before = self.len;
        for _ in 0..count.min(self.slots.len()) {
            if self.cursor >= self.slots.len() {
                self.cursor = 0;
            }
            self.sweep_slot(self.cursor, now, hasher);
            self.cursor += 1;
        }
        let dropped = before - self.len;
        if dropped > 0 {
            self.shrink(hasher);
        }
        dropped
    }

    fn is_occupied(&self, index: usize) -> bool {
        self.words.get(index / GROUP).is_some_and(|word| word.is_occupied(index % GROUP))
    }

    fn sweep_slot(&mut self, index: usize, now: Timestamp, hasher: &impl BuildHasher) {
        if !self.is_occupied(index) {
            return;
        }
        let stale = self.slots.get(index).filter(|slot| slot.state.is_fresh(now));
        if let Some(hash) = stale.map(|slot| slot.name().hash(hasher)) {
            self.vacate(index, hash);
        }
    }

    /// Gives memory back after a flood has passed.
    fn shrink(&mut self, hasher: &impl BuildHasher) {
        if self.words.len() > FIRST_GROUPS && self.len * 4 < self.slots.len() {
            self.rebuild((self.words.len() / 2).max(FIRST_GROUPS), hasher);
        }
    }

    fn rebuild(&mut self, groups: usize, hasher: &impl BuildHasher) {
        let words = vec![Word::default(); groups].into_boxed_slice();
        let slots = (0..groups * GROUP).map(|_| Slot::default()).collect();
        let old_words = std::mem::replace(&mut self.words, words);
        let old_slots = std::mem::replace(&mut self.slots, slots);
        (self.len, self.cursor) = (0, 0);
        for (index, slot) in old_slots.into_iter().enumerate() {
            if old_words.get(index / GROUP).is_some_and(|word| word.is_occupied(index % GROUP)) {
                let hash = slot.name().hash(hasher);
                self.place_slot(hash, slot);
            }
        }
    }

    /// Every key and its state.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Slot> {
        self.words.iter().zip(self.slots.chunks(GROUP)).flat_map(|(word, slots)| {
            let tags = word.0.to_le_bytes();
            slots.iter().zip(tags).filter(|(_, tag)| *tag != EMPTY).map(|(slot, _)| slot)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::hash::RandomState;

    use proptest::prelude::*;

    use super::*;

    fn name(subject: &[u8]) -> Name<'_> {
        Name { scope: 0, subject }
    }

    /// A state that is fresh from `end` on: a window of one microsecond, opened just before.
    fn expiring(end: u64) -> State {
        let limit =
            crate::Limit::fixed_window(crate::Quota::new(9, std::time::Duration::from_micros(1)));
        let mut state = State::Fresh;
        let opened = Timestamp::from_micros(end - 1);
        let _ = limit.unwrap().numbers().step(
            &mut state,
            opened,
            crate::algorithm::Op::Take { cost: 1 },
        );
        state
    }

    /// Always the same group: every key but seven overflows.
    #[derive(Default)]
    struct Colliding;

    impl BuildHasher for Colliding {
        type Hasher = Same;
        fn build_hasher(&self) -> Same {
            Same
        }
    }

    struct Same;

    impl std::hash::Hasher for Same {
        fn finish(&self) -> u64 {
            7
        }
        fn write(&mut self, _: &[u8]) {}
    }

    fn behaves_like_a_map(steps: &[(u8, u16)], hasher: &impl BuildHasher) {
        let (mut table, mut map) = (Table::default(), HashMap::new());
        for (step, key) in steps {
            let (now, text) = (u64::from(*key) % 97 + 1, key.to_be_bytes());
            let (name, hash) = (name(&text), name(&text).hash(hasher));
            match step {
                0 => assert_eq!(table.remove(hash, name), map.remove(key).is_some()),
                1 => {
                    let dropped = table.sweep(usize::MAX, Timestamp::from_micros(now), hasher);
                    let before = map.len();
                    map.retain(|_, end| *end > now);
                    assert_eq!(dropped, before - map.len());
                }
                _ => {
                    assert_eq!(table.get_mut(hash, name).is_some(), map.contains_key(key));
                    if map.insert(*key, now).is_none() {
                        table.insert(hash, Slot::new(name, expiring(now)), hasher);
                    } else {
                        *table.get_mut(hash, name).unwrap() = expiring(now);
                    }
                }
            }
            assert_eq!(table.len(), map.len());
            assert_eq!(table.iter().count(), map.len());
        }
        for key in map.keys() {
            let text = key.to_be_bytes();
            assert!(table.get_mut(name(&text).hash(hasher), name(&text)).is_some());
        }
    }

    proptest! {
        #[test]
        fn a_table_behaves_like_a_map(steps in prop::collection::vec((0u8..20, 0u16..400), 0..1500)) {
            behaves_like_a_map(&steps, &RandomState::new());
        }

        #[test]
        fn even_when_all_keys_collide(steps in prop::collection::vec((0u8..12, 0u16..400), 0..600)) {
            behaves_like_a_map(&steps, &Colliding);
        }
    }

    #[test]
    fn a_table_is_well_filled_and_gives_memory_back() {
        let (mut table, hasher) = (Table::default(), RandomState::new());
        for n in 0u32..100_000 {
            let text = n.to_be_bytes();
            table.insert(name(&text).hash(&hasher), Slot::new(name(&text), expiring(5)), &hasher);
            if n > 100 {
                assert!(
                    table.len() * 100 > table.slots.len() * 70,
                    "{n} keys in {}",
                    table.slots.len()
                );
            }
        }
        while table.len() > 0 {
            table.sweep(1000, Timestamp::from_micros(5), &hasher);
        }
        assert!(table.slots.len() < 1000, "{} slots for no keys", table.slots.len());
    }
}
