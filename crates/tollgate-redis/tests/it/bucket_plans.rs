//! Plans of several token buckets run in the leanest program, with the same results as in memory.

use std::time::Duration;

use tollgate::{
    Key, Limit, ManualClock, MemoryStore, Plan, Quota, Store, Subject, Take, Timestamp,
};
use tollgate_redis::{RedisStore, Scripting};
use tollgate_testkit::random::Random;
use tollgate_testkit::server::{Flavor, Raw, Server};

use crate::fixture::{block_on, builder, in_order, plan, script_calls};
use crate::random_world::{Outcome, Step, Verb, World, WorldTake};

const SCRIPTINGS: [Scripting; 2] = [Scripting::Script, Scripting::Function];
const LIMITS: usize = 5;
const HISTORIES: u64 = 150;
/// Number of calls in a history, each with several plans.
const MOMENTS: u64 = 20;
/// Refill time of the fastest bucket, in microseconds.
const WINDOW: u64 = 1_000_000;

fn bucket(nth: usize, count: u64) -> Limit {
    let window = Duration::from_micros(WINDOW) * u32::try_from(nth + 1).unwrap();
    let quota = Quota::new(count, window);
    Limit::token_bucket(quota).and_then(|limit| limit.named(&format!("limit{nth}"))).unwrap()
}

/// Returns the number of commands so far.
fn calls_of(raw: &mut Raw, command: &str) -> u64 {
    let info = raw.call(&["INFO", "commandstats"]);
    let prefix = format!("cmdstat_{command}:calls=");
    let line = info.text().lines().find_map(|line| line.strip_prefix(&prefix).map(str::to_owned));
    line.map_or(0, |rest| rest.split(',').next().unwrap().parse().unwrap())
}

/// A call that falls back to the general program reads the time twice.
#[test]
fn plans_of_buckets_need_no_general_program() {
    for (flavor, scripting) in
        Flavor::ALL.into_iter().flat_map(|flavor| SCRIPTINGS.map(|s| (flavor, s)))
    {
        let server = Server::start(flavor);
        let store = builder(&server).scripting(scripting).max_refusals(0).build();
        let limits: Vec<Limit> = (0..LIMITS).map(|nth| bucket(nth, 6)).collect();
        let subjects = ["a", "b"].map(|name| Subject::of([name]));
        let takes = |subject, count| {
            limits[..count].iter().map(move |limit| Take::new(Key::new(subject, limit), 2))
        };
        let plans = [1, 2, 5, 3, 4].map(|count| {
            let takes = subjects.iter().flat_map(|subject| takes(subject, count));
            Plan::new(takes).unwrap()
        });
        block_on(store.peek(&plans[0])).unwrap();
        let mut raw = server.raw();
        let before = (script_calls(&mut raw), calls_of(&mut raw, "time"));
        for _ in 0..3 {
            // Allowed, then refused.
            for result in block_on(in_order(plans.iter().map(|plan| store.take(plan)))) {
                result.unwrap();
            }
            for result in block_on(in_order(plans.iter().map(|plan| store.peek(plan)))) {
                result.unwrap();
            }
        }
        let calls = script_calls(&mut raw) - before.0;
        assert!(calls > 0);
        let times = calls_of(&mut raw, "time") - before.1;
        assert_eq!(times, calls, "a call fell back on {flavor} with {scripting:?}");
    }
}

/// A memory store and a Redis store on the same clock.
struct Stores {
    clock: ManualClock,
    memory: MemoryStore<ManualClock>,
    redis: RedisStore,
}

/// Draws a plan of one to five buckets on keys that the other plans of the call use too.
fn draw_step(random: &mut Random, world: &World) -> Step {
    let (first, count) = (random.within(0, 4), random.within(1, 5));
    let mut takes = Vec::new();
    for nth in 0..count {
        let limit = usize::try_from((first + nth) % 5).unwrap();
        let capacity = world.limits[limit][0].capacity();
        let cost = match random.within(0, 19) {
            0 => 0,
            1 => capacity,
            2 if random.one_in(3) => capacity + 1,
            3..=6 => random.within(0, capacity),
            _ => 1,
        };
        let subject = usize::from(random.one_in(4));
        // Other parameters make the call fall back, also after the first takes of a plan.
        let version = usize::from(random.one_in(200));
        takes.push(WorldTake { subject, limit, version, cost, shadow: None });
    }
    let verb = if random.one_in(4) { Verb::Peek } else { Verb::Take };
    Step { verb, takes }
}

/// Compares a history. Returns the numbers of refused and of allowed plans of several buckets.
async fn compare(stores: &Stores, seed: u64) -> [u64; 2] {
    let mut random = Random::new(seed);
    let subjects = ["a", "b"].map(|name| Subject::of([name, &seed.to_string()])).to_vec();
    let limits = (0..LIMITS).map(|nth| {
        let count = random.within(1, 40);
        vec![bucket(nth, count), bucket(nth, count + 1)]
    });
    let world = World { subjects, limits: limits.collect() };
    let mut decided = [0; 2];
    for _ in 0..MOMENTS {
        let step =
            if random.one_in(3) { random.within(0, 2 * WINDOW) } else { random.within(0, 50_000) };
        stores.clock.advance(Duration::from_micros(step));
        let steps: Vec<Step> =
            (0..random.within(1, 12)).map(|_| draw_step(&mut random, &world)).collect();
        let mut expected = Vec::new();
        for step in &steps {
            expected.push(world.request(&stores.memory, step).await.unwrap());
        }
        let seen = in_order(steps.iter().map(|step| world.request(&stores.redis, step))).await;
        for ((step, expected), seen) in steps.iter().zip(expected).zip(seen) {
            let seen = seen.unwrap();
            assert_eq!(seen, expected, "seed {seed}: {step:?} of {steps:?}\n{world}");
            if let Outcome::Decided(decision) = &seen
                && step.takes.len() > 1
            {
                decided[usize::from(decision.is_allowed())] += 1;
            }
        }
    }
    decided
}

#[test]
fn plans_of_buckets_on_shared_keys_match_memory() {
    for (flavor, scripting) in
        Flavor::ALL.into_iter().flat_map(|flavor| SCRIPTINGS.map(|s| (flavor, s)))
    {
        let server = Server::start(flavor);
        let clock = ManualClock::new();
        let redis = builder(&server).scripting(scripting).max_refusals(0).clock(clock.clone());
        let memory = MemoryStore::builder().clock(clock.clone()).build();
        let stores = Stores { redis: redis.build(), memory, clock };
        stores.clock.set(Timestamp::from_micros(1_750_000_000_000_000));
        // Loads the program: a call of an unknown script is repeated, after other calls.
        let (subject, limit) = (Subject::of(["first"]), bucket(0, 1));
        block_on(stores.redis.peek(&plan(&subject, &limit, 0))).unwrap();
        let mut decided = [0; 2];
        for seed in 0..HISTORIES {
            let more = block_on(compare(&stores, seed));
            decided = [decided[0] + more[0], decided[1] + more[1]];
        }
        let [refused, allowed] = decided;
        assert!(refused > 1000 && allowed > 1000, "{refused} refused, {allowed} allowed");
    }
}
