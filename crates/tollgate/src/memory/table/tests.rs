//! Model-based tests: a table behaves like a `HashMap`.

use std::collections::HashMap;
use std::hash::RandomState;
use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::algorithm::{Op, State};
use crate::{Limit, Quota};

/// A token bucket, whose states are packed, with a rate of one token per microsecond.
fn limit() -> Limit {
    Limit::token_bucket(Quota::new(1, Duration::from_micros(1)).burst(9)).unwrap()
}

/// Returns a state that is fresh from `end` on.
fn expiring(end: u64) -> State {
    let mut state = State::Fresh;
    let _ = limit().parameters().step(
        &mut state,
        Timestamp::from_micros(end - 1),
        Op::Take { cost: 1 },
    );
    state
}

struct TestTable<H> {
    registry: Registry,
    limit: Limit,
    hasher: H,
    table: Table,
}

impl<H: BuildHasher> TestTable<H> {
    fn new(hasher: H) -> Self {
        Self { registry: Registry::new(), limit: limit(), hasher, table: Table::default() }
    }

    /// Runs `action` with the lookup of a key. Every third subject is too long to be packed.
    fn with_lookup<T>(
        &mut self,
        key: u32,
        action: impl FnOnce(&mut Self, u64, &LookupKey<'_>) -> T,
    ) -> T {
        let subject = if key.is_multiple_of(3) {
            format!("a-subject-too-long-to-be-short-{key}")
        } else {
            format!("{key}")
        };
        let lookup = LookupKey::new(self.registry.find(&self.limit), subject.as_bytes());
        let hash = lookup.hash(&self.hasher);
        action(self, hash, &lookup)
    }

    fn contains(&mut self, key: u32) -> bool {
        self.with_lookup(key, |test, hash, lookup| {
            test.table.get_mut(hash, lookup, &test.registry).is_some()
        })
    }

    fn remove(&mut self, key: u32) -> bool {
        self.with_lookup(key, |test, hash, lookup| test.table.remove(hash, lookup, &test.registry))
    }

    fn insert(&mut self, key: u32, state: State) {
        self.with_lookup(key, |test, hash, lookup| {
            let slot = Slot::new(lookup, state, &test.limit);
            test.table.insert(hash, slot, &test.registry.read(), &test.hasher);
        });
    }

    fn sweep(&mut self, count: usize, now: u64) -> usize {
        self.table.sweep(count, Timestamp::from_micros(now), &self.registry.read(), &self.hasher)
    }
}

/// Hasher that maps all keys to the same group, so that all but seven overflow.
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
    let (mut test, mut map) = (TestTable::new(hasher), HashMap::new());
    for (step, key) in steps {
        let now = u64::from(*key) % 97 + 1;
        match step {
            0 => assert_eq!(test.remove(*key), map.remove(key).is_some()),
            1 => {
                let before = map.len();
                map.retain(|_, end| *end > now);
                assert_eq!(test.sweep(usize::MAX, now), before - map.len());
            }
            _ => {
                assert_eq!(test.contains(*key), map.contains_key(key));
                if map.insert(*key, now).is_some() {
                    assert!(test.remove(*key));
                }
                test.insert(*key, expiring(now));
            }
        }
        assert_eq!(test.table.len(), map.len());
        assert_eq!(test.table.iter().count(), map.len());
    }
    assert!(map.keys().all(|key| test.contains(*key)));
}

proptest! {
    #[test]
    fn table_behaves_like_a_map(steps in prop::collection::vec((0u8..20, 0u32..400), 0..1500)) {
        behaves_like_a_map(&steps, RandomState::new());
    }

    #[test]
    fn table_behaves_like_a_map_when_all_keys_collide(steps in prop::collection::vec((0u8..12, 0u32..400), 0..600)) {
        behaves_like_a_map(&steps, Colliding);
    }
}

#[test]
fn emptied_table_has_no_tags_or_overflow() {
    let mut test = TestTable::new(RandomState::new());
    for n in 0..2000 {
        test.insert(n, expiring(5));
    }
    assert!(test.table.words.iter().any(|word| word.overflow() > 0));
    for n in 0..2000 {
        assert!(test.remove(n));
    }
    assert!(test.table.words.iter().all(|word| word.0 == 0));
}

#[test]
fn table_is_well_filled_and_frees_memory() {
    let mut test = TestTable::new(RandomState::new());
    for n in 0..100_000 {
        test.insert(n, expiring(5));
        let (keys, slots) = (test.table.len(), test.table.slots.len());
        assert!(n < 100 || keys * 100 > slots * 45, "{keys} keys in {slots} slots");
    }
    while test.table.len() > 0 {
        test.sweep(1000, 5);
    }
    let slots = test.table.slots.len();
    assert!(slots < 1000, "{slots} slots for no keys");
}
