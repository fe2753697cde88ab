//! The memory store and the Redis store return the same results in every field, for single plans and for plans that
//! share a call.
//!
//! `TOLLGATE_STEPS=1000000 cargo test --release -p tollgate-redis --all-features --test redis_store memory_equivalence::`
//! compares a million plans per algorithm. A difference shows its seed; `TOLLGATE_SEED` replays that history alone.

use std::env;
use std::time::Duration;

use tollgate::algorithm::CalendarUnit;
use tollgate::{
    Key, Limit, ManualClock, MemoryStore, Plan, Quota, Store, StoreError, Subject, Take, Timestamp,
};
use tollgate_redis::{RedisStore, Scripting};
use tollgate_testkit::random::Random;
use tollgate_testkit::server::{Flavor, Server};
use tollgate_testkit::spec::Kind;

use crate::fixture::{block_on, builder, in_order};
use crate::random_events::Events;
use crate::random_world::{Outcome, Step, World};

/// Number of compared plans per test. `TOLLGATE_STEPS` sets another number.
const STEPS: u64 = 60_000;
/// Number of times in one history, each with one plan or a batch.
const MOMENTS: u64 = 40;
const LARGEST_BATCH: u64 = 16;
/// Number of histories between two `FLUSHALL`s.
const FLUSH: u64 = 500;

/// A memory store and a Redis store on the same clock.
struct StorePair {
    clock: ManualClock,
    memory: MemoryStore<ManualClock>,
    redis: RedisStore,
}

type Results<'w> = Vec<Result<Outcome<'w>, StoreError>>;

impl StorePair {
    fn new(server: &Server, prefix: &str, scripting: Scripting) -> Self {
        let clock = ManualClock::new();
        let builder = builder(server).prefix(prefix).unwrap().scripting(scripting);
        let redis = builder.clock(clock.clone()).build();
        Self { memory: MemoryStore::builder().clock(clock.clone()).build(), redis, clock }
    }

    fn evicted(&self) -> u64 {
        self.memory.occupancy().evicted
    }

    /// Runs the steps in order in memory, and concurrently in Redis, where plans that arrive during a call share
    /// the next one.
    async fn request<'w>(&self, world: &'w World, steps: &[Step]) -> (Results<'w>, Results<'w>) {
        let mut expected = Vec::new();
        for step in steps {
            expected.push(world.request(&self.memory, step).await);
        }
        let requests = steps.iter().map(|step| world.request(&self.redis, step));
        (expected, in_order(requests).await)
    }
}

/// Compares one history. Returns its number of plans.
async fn compare(stores: &StorePair, kinds: &[Kind], seed: u64) -> u64 {
    let mut random = Random::new(seed);
    let world = World::draw(&mut random, &seed.to_string(), kinds);
    let mut events = Events::new(random);
    let (mut min_time, mut compared, mut steps_so_far) = (0, 0, Vec::new());
    for _ in 0..MOMENTS {
        let now = events.next_time(&world, min_time);
        stores.clock.set(Timestamp::from_micros(now));
        let is_batch = events.random.one_in(3);
        let size = if is_batch { events.random.within(2, LARGEST_BATCH) } else { 1 };
        let steps: Vec<Step> = (0..size).map(|_| events.next_step(&world)).collect();
        let evicted = stores.evicted();
        let (expected, seen) = stores.request(&world, &steps).await;
        for ((step, expected), seen) in steps.into_iter().zip(&expected).zip(&seen) {
            steps_so_far.push(format!("{now:>20} {step:?}"));
            let (expected, seen) = (expected.as_ref().unwrap(), seen.as_ref());
            assert!(
                seen.is_ok_and(|seen| seen == expected),
                "TOLLGATE_SEED={seed} differs for {kinds:?}\nmemory {expected:?}\nredis {seen:?}\n\
                 {world}\nall steps:\n{}",
                steps_so_far.join("\n")
            );
            events.observe(expected);
        }
        compared += size;
        // A state that memory has evicted must not come back after a step into the past.
        if stores.evicted() > evicted {
            min_time = now;
        }
    }
    compared
}

/// Loads every script first: a call of an unknown script is repeated, after other calls.
async fn load_scripts(stores: &StorePair) {
    for kind in Kind::ALL {
        let world = World::draw(&mut Random::new(0), "first", &[kind]);
        let limit = &world.limits[0][0];
        let key = Key::new(&world.subjects[0], limit);
        let plan = Plan::new([Take::new(key, 0)]).unwrap();
        let _ = stores.redis.peek(&plan).await.unwrap();
        stores.redis.reset(&key).await.unwrap();
    }
}

fn compare_all(flavor: Flavor, kinds: &[Kind]) {
    let variable = |name: &str| env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let steps = variable("TOLLGATE_STEPS").unwrap_or(STEPS);
    let server = Server::start(flavor);
    // One algorithm has its own script; functions are one program for all.
    let scripting = if kinds.len() == 1 { Scripting::Script } else { Scripting::Auto };
    let stores = StorePair::new(&server, "equal:", scripting);
    block_on(async {
        load_scripts(&stores).await;
        if let Some(seed) = variable("TOLLGATE_SEED") {
            compare(&stores, kinds, seed).await;
            return;
        }
        let (mut compared, mut seed) = (0, 0);
        while compared < steps {
            compared += compare(&stores, kinds, seed).await;
            seed += 1;
            if seed.is_multiple_of(FLUSH) {
                server.raw().call(&["FLUSHALL"]);
            }
        }
        println!("{flavor}: {compared} plans in {seed} histories of {kinds:?} are equal");
    });
}

#[test]
fn token_bucket_matches_memory() {
    compare_all(Flavor::Redis, &[Kind::TokenBucket]);
}

#[test]
fn sliding_window_matches_memory() {
    compare_all(Flavor::Redis, &[Kind::SlidingWindow]);
}

#[test]
fn sliding_counter_matches_memory() {
    compare_all(Flavor::Redis, &[Kind::SlidingCounter]);
}

#[test]
fn fixed_window_matches_memory() {
    compare_all(Flavor::Redis, &[Kind::FixedWindow]);
}

#[test]
fn calendar_window_matches_memory() {
    compare_all(Flavor::Redis, &[Kind::CalendarWindow]);
}

#[test]
fn concurrency_matches_memory() {
    compare_all(Flavor::Redis, &[Kind::Concurrency]);
}

#[test]
fn mixed_plans_match_memory() {
    compare_all(Flavor::Redis, &Kind::ALL);
}

#[test]
fn mixed_plans_match_memory_on_valkey() {
    compare_all(Flavor::Valkey, &Kind::ALL);
}

/// Numbers up to the maximum.
#[test]
fn extreme_numbers_match_memory() {
    let server = Server::start(Flavor::Redis);
    let stores = StorePair::new(&server, "extreme:", Scripting::Auto);
    let century = Duration::from_secs(36_525 * 86_400);
    let most = (1 << 53) - 1;
    let limits = [
        Limit::token_bucket(Quota::new(1, century)),
        Limit::token_bucket(Quota::new(most, Duration::from_micros(1))),
        Limit::sliding_window(Quota::new(100_000, century)),
        Limit::sliding_counter(Quota::new(2, century)),
        Limit::fixed_window(Quota::new(most, century)),
        Limit::calendar_window(most, CalendarUnit::Year, "UTC"),
        Limit::concurrency(100_000, century),
        Ok(Limit::block()),
    ];
    for (nth, limit) in limits.into_iter().enumerate() {
        let limit = limit.unwrap();
        let subject = Subject::of([nth.to_string()]);
        for now in [0, 1, 1_794_765_516_667_233, 1 << 52] {
            stores.clock.set(Timestamp::from_micros(now));
            block_on(compare_extremes(&stores, &Key::new(&subject, &limit)));
        }
    }
}

async fn compare_extremes(stores: &StorePair, key: &Key<'_>) {
    let (memory, redis) = (&stores.memory, &stores.redis);
    for cost in [0, 1, key.limit().capacity(), 1 << 53, (1 << 53) + 1, u64::MAX] {
        let plan = Plan::new([Take::new(*key, cost)]).unwrap();
        assert_eq!(redis.take(&plan).await.unwrap(), memory.take(&plan), "take of {plan:?}");
        for age in [Duration::ZERO, Duration::from_micros(1 << 53), Duration::MAX] {
            let debited = redis.debit(&plan, age).await.unwrap();
            assert_eq!(debited, memory.debit(&plan, age), "debit of {plan:?} {age:?} ago");
        }
        assert_eq!(redis.refund(&plan).await.unwrap(), memory.refund(&plan), "refund of {plan:?}");
    }
    let plan = Plan::new([Take::new(*key, 1)]).unwrap();
    for length in [Duration::ZERO, Duration::from_micros(1), Duration::MAX] {
        redis.pause(key, length).await.unwrap();
        memory.pause(key, length);
        assert_eq!(redis.peek(&plan).await.unwrap(), memory.peek(&plan), "paused for {length:?}");
    }
    redis.reset(key).await.unwrap();
    memory.reset(key);
}
