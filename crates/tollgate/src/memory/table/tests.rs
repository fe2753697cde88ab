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

    /// Runs `action` with the lookup of a key. Every third subject is in a long slot, every ninth is boxed.
    fn with_lookup<T>(
        &mut self,
        key: u32,
        action: impl FnOnce(&mut Self, u64, &LookupKey<'_>) -> T,
    ) -> T {
        let subject = match key {
            _ if key.is_multiple_of(9) => {
                format!("subject-for-which-no-slot-has-enough-space-inside-{key}")
            }
            _ if key.is_multiple_of(3) => format!("subject-of-a-long-slot-{key}"),
            _ => format!("{key}"),
        };
        let lookup = LookupKey::new(self.registry.find(&self.limit), subject.as_bytes());
        let hash = lookup.hash(&self.hasher);
        action(self, hash, &lookup)
    }

    fn contains(&mut self, key: u32) -> bool {
        self.with_lookup(key, |test, hash, lookup| {
            test.table.contains(hash, lookup, &test.registry)
        })
    }

    fn remove(&mut self, key: u32) -> bool {
        self.with_lookup(key, |test, hash, lookup| test.table.remove(hash, lookup, &test.registry))
    }

    fn insert(&mut self, key: u32, state: State) {
        self.with_lookup(key, |test, hash, lookup| {
            let entries = test.registry.read();
            test.table.insert((hash, lookup), state, Some(&test.limit), &entries, &test.hasher);
        });
    }

    fn sweep(&mut self, count: usize, now: u64) -> usize {
        self.table.sweep(count, Timestamp::from_micros(now), &self.registry.read(), &self.hasher)
    }
}

/// Hasher that maps all keys to the same bucket.
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

/// Number of buckets of both tables.
fn buckets(table: &Table) -> usize {
    table.short.num_buckets() + table.long.num_buckets()
}

#[test]
fn table_is_well_filled_and_frees_memory() {
    let mut test = TestTable::new(RandomState::new());
    for n in 0..100_000 {
        test.insert(n, expiring(5));
        let (keys, buckets) = (test.table.len(), buckets(&test.table));
        assert!(n < 100 || keys * 100 > buckets * 40, "{keys} keys in {buckets} buckets");
    }
    while test.table.len() > 0 {
        test.sweep(1000, 5);
    }
    let buckets = buckets(&test.table);
    assert!(buckets < 100, "{buckets} buckets for no keys");
}

#[test]
fn changing_keys_do_not_grow_the_table() {
    let mut test = TestTable::new(RandomState::new());
    // As many keys as a shard of a full store has.
    for n in 0..3200 {
        test.insert(n, expiring(5));
    }
    let before = buckets(&test.table);
    for n in 0..20_000 {
        assert!(test.remove(n));
        test.insert(n + 3200, expiring(5));
    }
    assert_eq!(buckets(&test.table), before);
}
