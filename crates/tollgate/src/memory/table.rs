//! One shard's hash table: groups of seven slots, found by one-byte tags.
//!
//! A group's tags and its overflow count share one 64-bit word, so a lookup reads a word (from a small
//! array that stays in cache) and then the one slot that matches. A key whose group is full lives in a
//! later group, and every full group it passed counts it: a lookup stops at a group that nobody has
//! passed, and removing a key needs no tombstone. The table grows by a quarter, not by doubling: it is
//! never less than two thirds full for long.

use std::hash::BuildHasher;

use super::register::{Entries, Register};
use super::slot::{Name, Slot};
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
    pub(super) fn get_mut(
        &mut self,
        hash: u64,
        name: &Name<'_>,
        register: &Register,
    ) -> Option<&mut Slot> {
        let index = self.find(hash, name, register)?;
        self.slots.get_mut(index)
    }

    #[inline(always)]
    fn find(&self, hash: u64, name: &Name<'_>, register: &Register) -> Option<usize> {
        let (mut group, tag) = place(hash, self.words.len());
        for _ in 0..self.words.len() {
            let word = self.words.get(group)?;
            for lane in word.matches(tag) {
                let index = group * GROUP + lane;
                if self.slots.get(index).is_some_and(|slot| slot.is_named(name, register)) {
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
    pub(super) fn insert(
        &mut self,
        hash: u64,
        slot: Slot,
        entries: &Entries,
        hasher: &impl BuildHasher,
    ) {
        // Past 13/14 full, probes grow long.
        if (self.len + 1) * 14 > self.slots.len() * 13 {
            let groups = self.words.len();
            self.rebuild((groups + groups / 4 + 1).max(FIRST_GROUPS), entries, hasher);
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
    pub(super) fn remove(&mut self, hash: u64, name: &Name<'_>, register: &Register) -> bool {
        let index = self.find(hash, name, register);
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
        let stale = self.slots.get(index).filter(|slot| slot.is_fresh(now, entries));
        if let Some(hash) = stale.map(|slot| slot.hash(entries, hasher)) {
            self.vacate(index, hash);
        }
    }

    /// Gives memory back after a flood has passed.
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
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;
    use crate::algorithm::{Op, State};
    use crate::{Limit, Quota};

    /// A token bucket, whose states are kept short, that gives a token a microsecond.
    fn limit() -> Limit {
        Limit::token_bucket(Quota::new(1, Duration::from_micros(1)).burst(9)).unwrap()
    }

    /// A state that is fresh from `end` on.
    fn expiring(end: u64) -> State {
        let mut state = State::Fresh;
        let _ = limit().numbers().step(
            &mut state,
            Timestamp::from_micros(end - 1),
            Op::Take { cost: 1 },
        );
        state
    }

    struct World<H> {
        register: Register,
        limit: Limit,
        hasher: H,
        table: Table,
    }

    impl<H: BuildHasher> World<H> {
        fn new(hasher: H) -> Self {
            Self { register: Register::new(), limit: limit(), hasher, table: Table::default() }
        }

        /// Some subjects are short, some are not.
        fn with_name<T>(
            &mut self,
            key: u32,
            action: impl FnOnce(&mut Self, u64, &Name<'_>) -> T,
        ) -> T {
            let subject = if key.is_multiple_of(3) {
                format!("a-subject-too-long-to-be-short-{key}")
            } else {
                format!("{key}")
            };
            let name = Name::new(self.register.find(&self.limit), subject.as_bytes());
            let hash = name.hash(&self.hasher);
            action(self, hash, &name)
        }

        fn contains(&mut self, key: u32) -> bool {
            self.with_name(key, |world, hash, name| {
                world.table.get_mut(hash, name, &world.register).is_some()
            })
        }

        fn remove(&mut self, key: u32) -> bool {
            self.with_name(key, |world, hash, name| world.table.remove(hash, name, &world.register))
        }

        fn insert(&mut self, key: u32, state: State) {
            self.with_name(key, |world, hash, name| {
                let slot = Slot::new(name, state, &world.limit);
                world.table.insert(hash, slot, &world.register.read(), &world.hasher);
            });
        }

        fn sweep(&mut self, count: usize, now: u64) -> usize {
            self.table.sweep(
                count,
                Timestamp::from_micros(now),
                &self.register.read(),
                &self.hasher,
            )
        }
    }

    /// Always the same group: every key but seven overflows.
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

    fn behaves_like_a_map(steps: &[(u8, u32)], hasher: impl BuildHasher) {
        let (mut world, mut map) = (World::new(hasher), HashMap::new());
        for (step, key) in steps {
            let now = u64::from(*key) % 97 + 1;
            match step {
                0 => assert_eq!(world.remove(*key), map.remove(key).is_some()),
                1 => {
                    let before = map.len();
                    map.retain(|_, end| *end > now);
                    assert_eq!(world.sweep(usize::MAX, now), before - map.len());
                }
                _ => {
                    assert_eq!(world.contains(*key), map.contains_key(key));
                    if map.insert(*key, now).is_some() {
                        assert!(world.remove(*key));
                    }
                    world.insert(*key, expiring(now));
                }
            }
            assert_eq!(world.table.len(), map.len());
            assert_eq!(world.table.iter().count(), map.len());
        }
        assert!(map.keys().all(|key| world.contains(*key)));
    }

    proptest! {
        #[test]
        fn a_table_behaves_like_a_map(steps in prop::collection::vec((0u8..20, 0u32..400), 0..1500)) {
            behaves_like_a_map(&steps, RandomState::new());
        }

        #[test]
        fn even_when_all_keys_collide(steps in prop::collection::vec((0u8..12, 0u32..400), 0..600)) {
            behaves_like_a_map(&steps, Colliding);
        }
    }

    #[test]
    fn a_table_is_well_filled_and_gives_memory_back() {
        let mut world = World::new(RandomState::new());
        for n in 0..100_000 {
            world.insert(n, expiring(5));
            let (keys, slots) = (world.table.len(), world.table.slots.len());
            assert!(n < 100 || keys * 100 > slots * 70, "{keys} keys in {slots} slots");
        }
        while world.table.len() > 0 {
            world.sweep(1000, 5);
        }
        let slots = world.table.slots.len();
        assert!(slots < 1000, "{slots} slots for no keys");
    }
}
