//! Memory and Redis are one algorithm: every answer of the one is the answer of the other, in every
//! field, for single plans and for plans that share a call.
//!
//! `TOLLGATE_STEPS=1000000 cargo test --release -p tollgate-redis --all-features --test it equal::` compares
//! a million plans of each algorithm. A difference names its seed; `TOLLGATE_SEED` replays it alone.

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

use crate::drawn::{Events, Outcome, Step, World};
use crate::fixture::{block_on, in_order, patient};

/// Plans compared of each kind, unless `TOLLGATE_STEPS` asks for more.
const STEPS: u64 = 100_000;
/// Moments of one history, each with one plan or a batch.
const MOMENTS: u64 = 40;
const LARGEST_BATCH: u64 = 16;
/// Histories after which the server forgets the old ones.
const FLUSH: u64 = 500;

/// A memory store and a Redis store at the same time.
struct Twins {
    clock: ManualClock,
    memory: MemoryStore<ManualClock>,
    redis: RedisStore,
}

type Answers<'w> = Vec<Result<Outcome<'w>, StoreError>>;

impl Twins {
    fn new(server: &Server, prefix: &str, scripting: Scripting) -> Self {
        let clock = ManualClock::new();
        let builder = patient(server).prefix(prefix).unwrap().scripting(scripting);
        let redis = builder.clock(clock.clone()).build();
        Self { memory: MemoryStore::builder().clock(clock.clone()).build(), redis, clock }
    }

    fn forgotten(&self) -> u64 {
        self.memory.occupancy().evicted
    }

    /// One after the other in memory, all at once in Redis, where those that are asked while a call is under
    /// way share the next.
    async fn ask<'w>(&self, world: &'w World, steps: &[Step]) -> (Answers<'w>, Answers<'w>) {
        let mut expected = Vec::new();
        for step in steps {
            expected.push(world.ask(&self.memory, step).await);
        }
        let asked = steps.iter().map(|step| world.ask(&self.redis, step));
        (expected, in_order(asked).await)
    }
}

/// Compares one history; how many plans it had.
async fn compare(twins: &Twins, kinds: &[Kind], seed: u64) -> u64 {
    let mut random = Random::new(seed);
    let world = World::draw(&mut random, &seed.to_string(), kinds);
    let mut events = Events::new(random);
    let (mut floor, mut compared, mut told) = (0, 0, Vec::new());
    for _ in 0..MOMENTS {
        let now = events.next_moment(&world, floor);
        twins.clock.set(Timestamp::from_micros(now));
        let is_batch = events.random.one_in(3);
        let size = if is_batch { events.random.within(2, LARGEST_BATCH) } else { 1 };
        let steps: Vec<Step> = (0..size).map(|_| events.next_step(&world)).collect();
        let forgotten = twins.forgotten();
        let (expected, seen) = twins.ask(&world, &steps).await;
        for ((step, expected), seen) in steps.into_iter().zip(&expected).zip(&seen) {
            told.push(format!("{now:>20} {step:?}"));
            let (expected, seen) = (expected.as_ref().unwrap(), seen.as_ref());
            assert!(
                seen.is_ok_and(|seen| seen == expected),
                "TOLLGATE_SEED={seed} differs for {kinds:?}\nmemory {expected:?}\nredis {seen:?}\n\
                 {world}\nall that was asked:\n{}",
                told.join("\n")
            );
            events.learn(expected);
        }
        compared += size;
        // What memory has forgotten as never seen must not come back by a step into the past.
        if twins.forgotten() > forgotten {
            floor = now;
        }
    }
    compared
}

/// A script that the server does not know yet is sent again, after others: so every script is known first.
async fn let_scripts_be_known(twins: &Twins) {
    for kind in Kind::ALL {
        let world = World::draw(&mut Random::new(0), "first", &[kind]);
        let limit = &world.limits[0][0];
        let key = Key::new(&world.subjects[0], limit);
        let plan = Plan::new([Take::new(key, 0)]).unwrap();
        let _ = twins.redis.peek(&plan).await.unwrap();
        twins.redis.reset(&key).await.unwrap();
    }
}

fn compare_all(flavor: Flavor, kinds: &[Kind]) {
    let asked = |name: &str| env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let steps = asked("TOLLGATE_STEPS").unwrap_or(STEPS);
    let server = Server::start(flavor);
    // One algorithm has a script of its own; functions are one program for all.
    let scripting = if kinds.len() == 1 { Scripting::Script } else { Scripting::Auto };
    let twins = Twins::new(&server, "equal:", scripting);
    block_on(async {
        let_scripts_be_known(&twins).await;
        if let Some(seed) = asked("TOLLGATE_SEED") {
            compare(&twins, kinds, seed).await;
            return;
        }
        let (mut compared, mut seed) = (0, 0);
        while compared < steps {
            compared += compare(&twins, kinds, seed).await;
            seed += 1;
            if seed.is_multiple_of(FLUSH) {
                server.raw().call(&["FLUSHALL"]);
            }
        }
        println!("{flavor}: {compared} plans in {seed} histories of {kinds:?} are equal");
    });
}

#[test]
fn token_buckets_are_equal() {
    compare_all(Flavor::Redis, &[Kind::TokenBucket]);
}

#[test]
fn sliding_windows_are_equal() {
    compare_all(Flavor::Redis, &[Kind::SlidingWindow]);
}

#[test]
fn sliding_counters_are_equal() {
    compare_all(Flavor::Redis, &[Kind::SlidingCounter]);
}

#[test]
fn fixed_windows_are_equal() {
    compare_all(Flavor::Redis, &[Kind::FixedWindow]);
}

#[test]
fn calendar_windows_are_equal() {
    compare_all(Flavor::Redis, &[Kind::CalendarWindow]);
}

#[test]
fn concurrency_limits_are_equal() {
    compare_all(Flavor::Redis, &[Kind::Concurrency]);
}

#[test]
fn mixed_plans_are_equal() {
    compare_all(Flavor::Redis, &Kind::ALL);
}

#[test]
fn mixed_plans_are_equal_on_valkey() {
    compare_all(Flavor::Valkey, &Kind::ALL);
}

/// Whatever numbers a caller has, up to the largest there are.
#[test]
fn extreme_numbers_are_equal() {
    let server = Server::start(Flavor::Redis);
    let twins = Twins::new(&server, "extreme:", Scripting::Auto);
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
            twins.clock.set(Timestamp::from_micros(now));
            block_on(compare_extremes(&twins, &Key::new(&subject, &limit)));
        }
    }
}

async fn compare_extremes(twins: &Twins, key: &Key<'_>) {
    let (memory, redis) = (&twins.memory, &twins.redis);
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
