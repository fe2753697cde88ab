//! The key of a token bucket never expires before the bucket is full, and at most a full refill and the grace later,
//! although most takes keep the expiry of an earlier one.

use std::time::Duration;

use tollgate::{Key, Limit, ManualClock, Plan, Quota, Store, Subject, Take, Timestamp};
use tollgate_redis::{RedisStore, Scripting};
use tollgate_testkit::random::Random;
use tollgate_testkit::server::{Flavor, Raw, Server};

use crate::fixture::{block_on, builder, name_of};

const PREFIX: &str = "rl:";
const WEEK: u64 = 7 * 86_400_000_000;
/// The grace of programs with a test clock, in microseconds.
const GRACE: u64 = 100_000_000_000;
/// More than any expiry that a script sets, in milliseconds.
const MARK: u64 = 100_000_000_000;

/// The limits of a history: two versions of one bucket, with their full refills, and another bucket.
struct Limits {
    versions: [(Limit, u64); 2],
    other: Limit,
}

impl Limits {
    fn new() -> Self {
        let week = Duration::from_micros(WEEK);
        let bucket =
            |quota, name| Limit::token_bucket(quota).and_then(|limit| limit.named(name)).unwrap();
        let first = (bucket(Quota::new(10, week), "bucket"), WEEK);
        let second = (bucket(Quota::new(30, week).burst(20), "bucket"), WEEK / 3 * 2);
        Self { versions: [first, second], other: bucket(Quota::new(10, week), "other") }
    }
}

/// A bucket on a test clock. Redis expires keys by its own clock, so the test deletes them by the test clock.
struct Bucket<'a> {
    raw: Raw,
    store: &'a RedisStore,
    clock: &'a ManualClock,
    subject: Subject,
    /// The expiry of the key on the test clock, in microseconds.
    expiry: Option<u64>,
    /// Number of writes that kept the expiry, and of writes that set it.
    kept: u64,
    renewed: u64,
}

impl Bucket<'_> {
    /// Runs a random operation at a time, and checks the expiry after it.
    fn step(&mut self, now: u64, limits: &Limits, version: usize, random: &mut Random) {
        let (limit, refill) = &limits.versions[version];
        let key = Key::new(&self.subject, limit);
        let name = name_of(PREFIX, &key);
        self.clock.set(Timestamp::from_micros(now));
        if self.expiry.is_some_and(|expiry| expiry <= now) {
            self.raw.call(&["DEL", &name]);
        }
        let before = self.raw.call(&["GET", &name]);
        self.raw.call(&["PEXPIRE", &name, &(2 * MARK).to_string()]);
        let other = Key::new(&self.subject, &limits.other);
        block_on(operate(self.store, key, other, random));
        let full = block_on(self.store.stats(&key)).unwrap().reset_after();
        let (ttl, after) = (self.raw.call(&["PTTL", &name]).int(), self.raw.call(&["GET", &name]));
        let Ok(ttl) = u64::try_from(ttl) else {
            assert!(after.is_nil(), "the key never expires");
            self.expiry = None;
            return;
        };
        if ttl < MARK {
            (self.expiry, self.renewed) = (Some(now + ttl * 1000), self.renewed + 1);
        } else if before != after {
            self.kept += 1;
        }
        let full = now + u64::try_from(full.as_micros()).unwrap();
        let expiry = self.expiry.expect("a key has an expiry");
        // Milliseconds are rounded up.
        let last = now + refill + GRACE + 1000;
        assert!(before == after || expiry <= last, "expires {} us too late", expiry - last);
        assert!(expiry >= full, "expires {} us before the bucket is full", full - expiry);
    }
}

async fn operate(store: &RedisStore, key: Key<'_>, other: Key<'_>, random: &mut Random) {
    let cost = if random.one_in(4) { random.within(0, 12) } else { 1 };
    let one = Plan::new([Take::new(key, cost)]).unwrap();
    let result = match random.within(0, 19) {
        0 => store.refund(&one).await,
        1 => store.debit(&one, Duration::from_micros(random.within(0, WEEK))).await,
        2 => store.debit(&one, Duration::ZERO).await,
        // The general program decides a plan with a shadow take.
        3..=8 => {
            let two = [Take::new(key, cost), Take::new(other, 0).shadow(0)];
            store.take(&Plan::new(two).unwrap()).await
        }
        _ => store.take(&one).await,
    };
    let _ = result.unwrap();
}

/// Draws a time: soon after `now`, within the refill, after it, or before `now`.
fn next_time(random: &mut Random, now: u64) -> u64 {
    match random.within(0, 29) {
        0 => now - random.within(0, WEEK),
        1 => now + random.within(0, 3 * WEEK),
        2..=8 => now + random.within(0, WEEK / 3),
        9..=19 => now + random.within(0, WEEK / 10),
        _ => now + random.within(0, 1000),
    }
}

#[test]
fn expiry_covers_the_refill_after_any_history() {
    let (server, limits) = (Server::start(Flavor::Redis), Limits::new());
    for scripting in [Scripting::Script, Scripting::Function] {
        let clock = ManualClock::new();
        let builder = builder(&server).prefix(PREFIX).unwrap().scripting(scripting);
        let store = builder.clock(clock.clone()).max_refusals(0).build();
        let (mut kept, mut renewed) = (0, 0);
        for seed in 0..100 {
            let mut random = Random::new(seed);
            let subject = Subject::of([format!("{scripting:?}{seed}")]);
            let (store, clock) = (&store, &clock);
            let raw = server.raw();
            let mut bucket =
                Bucket { raw, store, clock, subject, expiry: None, kept: 0, renewed: 0 };
            let (mut now, mut version) = (1_750_000_000_000_000, 0);
            for _ in 0..50 {
                now = next_time(&mut random, now);
                if random.one_in(12) {
                    version = 1 - version;
                }
                bucket.step(now, &limits, version, &mut random);
            }
            (kept, renewed) = (kept + bucket.kept, renewed + bucket.renewed);
        }
        assert!(kept > renewed && renewed > 100, "{kept} writes kept the expiry, {renewed} set it");
    }
}

/// A key that migrates to a node whose clock is ahead keeps its TTL, so it exists longer on that clock than its TTL.
#[test]
fn expiry_is_set_again_on_a_clock_that_is_ahead() {
    let (server, limits) = (Server::start(Flavor::Redis), Limits::new());
    let (clock, mut raw) = (ManualClock::new(), server.raw());
    let builder = builder(&server).prefix(PREFIX).unwrap().clock(clock.clone());
    let store = builder.max_refusals(0).build();
    let (limit, refill) = &limits.versions[0];
    let (began, life) = (1_750_000_000_000_000, refill + GRACE);
    for percent in (100..=200).step_by(4) {
        for with_other in [false, true] {
            let subject = Subject::of([format!("{percent}{with_other}")]);
            let key = Key::new(&subject, limit);
            let name = name_of(PREFIX, &key);
            // The general program decides a plan with a shadow take.
            let other =
                with_other.then(|| Take::new(Key::new(&subject, &limits.other), 0).shadow(0));
            let request = Plan::new([Take::new(key, 1)].into_iter().chain(other)).unwrap();
            clock.set(Timestamp::from_micros(began));
            assert!(block_on(store.take(&request)).unwrap().is_allowed());
            raw.call(&["PEXPIRE", &name, &(2 * MARK).to_string()]);
            clock.set(Timestamp::from_micros(began + life / 100 * percent));
            assert!(block_on(store.take(&request)).unwrap().is_allowed());
            let ttl = u64::try_from(raw.call(&["PTTL", &name]).int()).unwrap();
            assert!(ttl < MARK, "the expiry was kept after {percent} % of it");
        }
    }
}
