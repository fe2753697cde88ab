//! Counters expire in Redis one second after their state is equal to no state. Token buckets expire after at most one
//! full refill and a second; see `bucket_expiry.rs`.

use std::time::Duration;

use tollgate::algorithm::{CalendarUnit, Parameters};
use tollgate::{Decision, Key, Limit, Permit, PermitId, Quota, Store, Subject, Timestamp};
use tollgate_redis::RedisStore;
use tollgate_testkit::random::Random;
use tollgate_testkit::server::{Flavor, Raw, Server};
use tollgate_testkit::spec::Kind;

use crate::fixture::{block_on, builder, name_of, plan};
use crate::random_events::Events;
use crate::random_world::World;

const PREFIX: &str = "rl:";

/// Limits of ten per minute of every algorithm.
fn limits() -> Vec<Limit> {
    let quota = Quota::per_minute(10);
    let limits = [
        Limit::token_bucket(quota),
        Limit::token_bucket(quota.burst(1000)),
        Limit::sliding_window(quota),
        Limit::sliding_counter(quota),
        Limit::fixed_window(quota),
        Limit::calendar_window(10, CalendarUnit::Minute, "UTC"),
        Limit::concurrency(10, Duration::from_secs(60)),
    ];
    let name = |nth: usize| format!("limit{nth}");
    let limits = limits.into_iter().enumerate();
    limits.map(|(nth, limit)| limit.unwrap().named(&name(nth)).unwrap()).collect()
}

/// Returns the expiry of a key in microseconds since the epoch, or `None` if it never expires.
fn expiry_of(raw: &mut Raw, key: &Key<'_>) -> Option<u64> {
    let end = raw.call(&["PEXPIRETIME", &name_of(PREFIX, key)]).int();
    u64::try_from(end).ok().map(|millis| millis * 1000)
}

/// Returns how much longer than until it is full a key may be kept, in microseconds: a full refill for token buckets.
fn slack_of(limit: &Limit) -> u64 {
    let refill = match limit.parameters() {
        Parameters::TokenBucket(bucket) => bucket.burst() * bucket.rate().1 / bucket.rate().0,
        _ => 0,
    };
    // Redis uses milliseconds, and its time differs slightly from the time that the script has read.
    refill + 1_002_000
}

/// Asserts that the key expires about one second after it is full again.
fn assert_kept(raw: &mut Raw, key: &Key<'_>, at: Timestamp, reset_after: Duration, what: &str) {
    let what = format!("{} after {what}", key.limit().algorithm());
    let full = (at + reset_after).as_micros();
    let end =
        expiry_of(raw, key).unwrap_or_else(|| panic!("{what}: the key is absent or never expires"));
    assert!(end >= full, "{what}: expires {} us too early", full - end);
    let since = server_time(raw).saturating_sub(at.as_micros());
    let slack = slack_of(key.limit());
    assert!(end <= full + since + slack, "{what}: kept {} us too long", end - full);
}

/// Returns the server's time in microseconds.
fn server_time(raw: &mut Raw) -> u64 {
    let parts = raw.call(&["TIME"]);
    let [seconds, micros] =
        [0, 1].map(|part| parts.array()[part].text().parse::<u64>().expect("digits"));
    seconds * 1_000_000 + micros
}

fn assert_kept_until_reset(raw: &mut Raw, key: &Key<'_>, decision: &Decision<'_>, what: &str) {
    assert_kept(raw, key, decision.at(), decision.statuses()[0].reset_after(), what);
}

fn is_gone(raw: &mut Raw, key: &Key<'_>) -> bool {
    raw.call(&["EXISTS", &name_of(PREFIX, key)]).int() == 0
}

#[test]
fn counters_expire_when_they_are_full_again() {
    for flavor in Flavor::ALL {
        let server = Server::start(flavor);
        let (store, mut raw) = (builder(&server).build(), server.raw());
        for limit in &limits() {
            let subject = Subject::of(["k"]);
            let key = Key::new(&subject, limit);
            let request = plan(&subject, limit, 3);
            let taken = block_on(store.take(&request)).unwrap();
            assert_kept_until_reset(&mut raw, &key, &taken, "a take");
            let again = block_on(store.take(&request)).unwrap();
            assert_kept_until_reset(&mut raw, &key, &again, "a second take");
            let age = Duration::from_secs(20);
            let debited = block_on(store.debit(&plan(&subject, limit, 1), age)).unwrap();
            assert_kept_until_reset(&mut raw, &key, &debited, "a debit");
            let refunded = block_on(store.refund(&plan(&subject, limit, 1))).unwrap();
            assert_kept_until_reset(&mut raw, &key, &refunded, "a refund");
        }
    }
}

#[test]
fn paused_counters_expire_with_their_pause_or_usage() {
    let server = Server::start(Flavor::Redis);
    let (store, mut raw) = (builder(&server).build(), server.raw());
    for limit in &limits() {
        for (used, length) in [(0, 30), (4, 1), (4, 30), (4, 600)] {
            let subject = Subject::of(["k", &used.to_string(), &length.to_string()]);
            let key = Key::new(&subject, limit);
            let taken = block_on(store.take(&plan(&subject, limit, used))).unwrap();
            block_on(store.pause(&key, Duration::from_secs(length))).unwrap();
            let paused = block_on(store.peek(&plan(&subject, limit, 0))).unwrap();
            let end = expiry_of(&mut raw, &key).expect("a pause ends");
            // The exact ends of the pause and of the takes are unknown, but have bounds.
            let figures = (paused.at() + paused.statuses()[0].reset_after()).as_micros();
            let earliest = (taken.at() + taken.statuses()[0].reset_after()).as_micros();
            assert!(end >= figures.max(earliest) - 1000, "{} expires too early", limit.algorithm());
            let since = server_time(&mut raw) - taken.at().as_micros();
            let last = figures + since + slack_of(limit);
            assert!(end <= last, "{} kept too long", limit.algorithm());
        }
    }
}

#[test]
fn slots_expire_with_the_last_one() {
    let server = Server::start(Flavor::Redis);
    let (store, mut raw) = (builder(&server).build(), server.raw());
    let limit = Limit::concurrency(3, Duration::from_secs(60)).unwrap();
    let subject = Subject::of(["k"]);
    let key = Key::new(&subject, &limit);
    let held = plan(&subject, &limit, 1).with_permit(PermitId::random());
    let permit = Permit::of(&held, &block_on(store.take(&held)).unwrap()).unwrap();
    let until = block_on(store.renew(&permit)).unwrap().expect("the permit holds a slot");
    assert_kept(&mut raw, &key, until, Duration::ZERO, "a renewal");
    block_on(store.pause(&key, Duration::from_secs(1))).unwrap();
    let until =
        block_on(store.renew(&permit)).unwrap().expect("the permit holds a slot during a pause");
    assert_kept(&mut raw, &key, until, Duration::ZERO, "a renewal during a pause");
    block_on(store.reset(&key)).unwrap();
    let permit = Permit::of(&held, &block_on(store.take(&held)).unwrap()).unwrap();
    assert!(block_on(store.release(&permit)).unwrap());
    assert!(is_gone(&mut raw, &key), "all slots are released");
}

#[test]
fn full_refund_deletes_the_key() {
    let server = Server::start(Flavor::Redis);
    let (store, mut raw) = (builder(&server).build(), server.raw());
    for limit in limits().iter().filter(|limit| limit.ttl().is_none()) {
        let subject = Subject::of(["k"]);
        for refunded in [6, 100] {
            assert!(block_on(store.take(&plan(&subject, limit, 6))).unwrap().is_allowed());
            let _ = block_on(store.refund(&plan(&subject, limit, refunded))).unwrap();
            let key = Key::new(&subject, limit);
            assert!(is_gone(&mut raw, &key), "{} is not deleted", limit.algorithm());
        }
    }
}

async fn run_random_steps(store: &RedisStore, seed: u64) {
    let mut random = Random::new(seed);
    let world = World::draw(&mut random, &seed.to_string(), &Kind::ALL);
    let mut events = Events::new(random);
    for _ in 0..60 {
        let step = events.next_step(&world);
        events.observe(&world.request(store, &step).await.unwrap());
    }
}

#[test]
fn every_key_has_an_expiry() {
    let server = Server::start(Flavor::Redis);
    let (store, mut raw) = (builder(&server).max_refusals(0).build(), server.raw());
    for seed in 0..100 {
        block_on(run_random_steps(&store, seed));
    }
    let keys = raw.call(&["KEYS", "*"]);
    assert!(keys.array().len() > 100, "only {} keys", keys.array().len());
    for key in keys.array() {
        assert!(raw.call(&["PTTL", key.text()]).int() != -1, "{} never expires", key.text());
    }
}
