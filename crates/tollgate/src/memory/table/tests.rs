//! A table is a map, whatever happens to it.

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
    let _ = limit().parameters().step(
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
    fn with_name<T>(&mut self, key: u32, action: impl FnOnce(&mut Self, u64, &Name<'_>) -> T) -> T {
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
        self.table.sweep(count, Timestamp::from_micros(now), &self.register.read(), &self.hasher)
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
fn an_emptied_table_remembers_nobody() {
    let mut world = World::new(RandomState::new());
    for n in 0..2000 {
        world.insert(n, expiring(5));
    }
    assert!(world.table.words.iter().any(|word| word.overflow() > 0));
    for n in 0..2000 {
        assert!(world.remove(n));
    }
    assert!(world.table.words.iter().all(|word| word.0 == 0));
}

#[test]
fn a_table_is_well_filled_and_gives_memory_back() {
    let mut world = World::new(RandomState::new());
    for n in 0..100_000 {
        world.insert(n, expiring(5));
        let (keys, slots) = (world.table.len(), world.table.slots.len());
        assert!(n < 100 || keys * 100 > slots * 45, "{keys} keys in {slots} slots");
    }
    while world.table.len() > 0 {
        world.sweep(1000, 5);
    }
    let slots = world.table.slots.len();
    assert!(slots < 1000, "{slots} slots for no keys");
}
