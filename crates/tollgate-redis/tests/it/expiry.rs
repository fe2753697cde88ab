//! Nothing stays in Redis for longer than it matters, and a second.

use std::time::Duration;

use tollgate::algorithm::CalendarUnit;
use tollgate::{Decision, Key, Limit, Permit, PermitId, Quota, Store, Subject, Timestamp};
use tollgate_redis::RedisStore;
use tollgate_testkit::random::Random;
use tollgate_testkit::server::{Flavor, Raw, Server};
use tollgate_testkit::spec::Kind;

use crate::drawn::{Events, World};
use crate::fixture::{block_on, name_of, patient, plan};

const PREFIX: &str = "rl:";

/// Ten per minute of every algorithm, and ten of which a slot returns after a minute.
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

/// When the server will forget the key, in microseconds since the epoch; none if it never does.
fn end_of(raw: &mut Raw, key: &Key<'_>) -> Option<u64> {
    let end = raw.call(&["PEXPIRETIME", &name_of(PREFIX, key)]).int();
    u64::try_from(end).ok().map(|millis| millis * 1000)
}

/// The key is kept until it is full again, and about a second longer.
fn assert_kept(raw: &mut Raw, key: &Key<'_>, at: Timestamp, reset_after: Duration, what: &str) {
    let what = format!("{} after {what}", key.limit().algorithm());
    let full = (at + reset_after).as_micros();
    let end = end_of(raw, key).unwrap_or_else(|| panic!("{what}: it is gone, or stays for ever"));
    assert!(end >= full, "{what}: forgotten {} us too early", full - end);
    // Redis counts in milliseconds, from a moment around the time that the script has read.
    let since = server_time(raw).saturating_sub(at.as_micros());
    assert!(end <= full + since + 1_002_000, "{what}: kept {} us too long", end - full);
}

/// The server's time in microseconds.
fn server_time(raw: &mut Raw) -> u64 {
    let parts = raw.call(&["TIME"]);
    let [seconds, micros] =
        [0, 1].map(|part| parts.array()[part].text().parse::<u64>().expect("digits"));
    seconds * 1_000_000 + micros
}

fn assert_kept_as_told(raw: &mut Raw, key: &Key<'_>, decision: &Decision<'_>, what: &str) {
    assert_kept(raw, key, decision.at(), decision.statuses()[0].reset_after(), what);
}

fn is_gone(raw: &mut Raw, key: &Key<'_>) -> bool {
    raw.call(&["EXISTS", &name_of(PREFIX, key)]).int() == 0
}

#[test]
fn every_counter_is_kept_until_it_is_full_again_and_no_longer() {
    for flavor in Flavor::ALL {
        let server = Server::start(flavor);
        let (store, mut raw) = (patient(&server).build(), server.raw());
        for limit in &limits() {
            let subject = Subject::of(["k"]);
            let key = Key::new(&subject, limit);
            let ask = plan(&subject, limit, 3);
            let taken = block_on(store.take(&ask)).unwrap();
            assert_kept_as_told(&mut raw, &key, &taken, "a take");
            let again = block_on(store.take(&ask)).unwrap();
            assert_kept_as_told(&mut raw, &key, &again, "a second take");
            let age = Duration::from_secs(20);
            let debited = block_on(store.debit(&plan(&subject, limit, 1), age)).unwrap();
            assert_kept_as_told(&mut raw, &key, &debited, "a debit");
            let refunded = block_on(store.refund(&plan(&subject, limit, 1))).unwrap();
            assert_kept_as_told(&mut raw, &key, &refunded, "a refund");
        }
    }
}

#[test]
fn a_paused_counter_is_kept_until_its_pause_ends_or_it_is_full() {
    let server = Server::start(Flavor::Redis);
    let (store, mut raw) = (patient(&server).build(), server.raw());
    for limit in &limits() {
        for (used, length) in [(0, 30), (4, 1), (4, 30), (4, 600)] {
            let subject = Subject::of(["k", &used.to_string(), &length.to_string()]);
            let key = Key::new(&subject, limit);
            let taken = block_on(store.take(&plan(&subject, limit, used))).unwrap();
            block_on(store.pause(&key, Duration::from_secs(length))).unwrap();
            let paused = block_on(store.peek(&plan(&subject, limit, 0))).unwrap();
            let end = end_of(&mut raw, &key).expect("a pause ends");
            // A pause and what was taken before it end at moments that are known to lie between.
            let figures = (paused.at() + paused.statuses()[0].reset_after()).as_micros();
            let earliest = (taken.at() + taken.statuses()[0].reset_after()).as_micros();
            assert!(end >= figures.max(earliest) - 1000, "{} forgotten", limit.algorithm());
            let since = server_time(&mut raw) - taken.at().as_micros();
            assert!(end <= figures + since + 1_002_000, "{} kept too long", limit.algorithm());
        }
    }
}

#[test]
fn slots_are_kept_until_the_last_returns() {
    let server = Server::start(Flavor::Redis);
    let (store, mut raw) = (patient(&server).build(), server.raw());
    let limit = Limit::concurrency(3, Duration::from_secs(60)).unwrap();
    let subject = Subject::of(["k"]);
    let key = Key::new(&subject, &limit);
    let held = plan(&subject, &limit, 1).with_permit(PermitId::random());
    let permit = Permit::of(&held, &block_on(store.take(&held)).unwrap()).unwrap();
    let until = block_on(store.renew(&permit)).unwrap().expect("it is held");
    assert_kept(&mut raw, &key, until, Duration::ZERO, "a renewal");
    block_on(store.pause(&key, Duration::from_secs(1))).unwrap();
    let until = block_on(store.renew(&permit)).unwrap().expect("it is held beneath a pause");
    assert_kept(&mut raw, &key, until, Duration::ZERO, "a renewal beneath a pause");
    block_on(store.reset(&key)).unwrap();
    let permit = Permit::of(&held, &block_on(store.take(&held)).unwrap()).unwrap();
    assert!(block_on(store.release(&permit)).unwrap());
    assert!(is_gone(&mut raw, &key), "all slots were given back");
}

#[test]
fn what_is_refunded_to_full_is_gone() {
    let server = Server::start(Flavor::Redis);
    let (store, mut raw) = (patient(&server).build(), server.raw());
    for limit in limits().iter().filter(|limit| limit.ttl().is_none()) {
        let subject = Subject::of(["k"]);
        for refunded in [6, 100] {
            assert!(block_on(store.take(&plan(&subject, limit, 6))).unwrap().is_allowed());
            let _ = block_on(store.refund(&plan(&subject, limit, refunded))).unwrap();
            let key = Key::new(&subject, limit);
            assert!(is_gone(&mut raw, &key), "{} stays", limit.algorithm());
        }
    }
}

async fn ask_at_random(store: &RedisStore, seed: u64) {
    let mut random = Random::new(seed);
    let world = World::draw(&mut random, &seed.to_string(), &Kind::ALL);
    let mut events = Events::new(random);
    for _ in 0..60 {
        let step = events.next_step(&world);
        events.learn(&world.ask(store, &step).await.unwrap());
    }
}

#[test]
fn nothing_stays_for_ever_whatever_was_asked() {
    let server = Server::start(Flavor::Redis);
    let (store, mut raw) = (patient(&server).max_refusals(0).build(), server.raw());
    for seed in 0..100 {
        block_on(ask_at_random(&store, seed));
    }
    let keys = raw.call(&["KEYS", "*"]);
    assert!(keys.array().len() > 100, "only {} keys", keys.array().len());
    for key in keys.array() {
        assert!(raw.call(&["PTTL", key.text()]).int() != -1, "{} stays for ever", key.text());
    }
}
