//! The refusal cache: repeated requests cost no call to Redis, and are not refused longer than necessary.

use std::time::{Duration, Instant};

use tollgate::{Decision, Key, Limit, Quota, Source, Store, Subject};
use tollgate_redis::RedisStore;
use tollgate_testkit::server::{Flavor, Server};
use tollgate_testkit::wait::eventually;

use crate::fixture::{block_on, builder, limits_of_each_algorithm, plan, script_calls};

fn take<'a>(store: &RedisStore, subject: &'a Subject, limit: &'a Limit) -> Decision<'a> {
    block_on(store.take(&plan(subject, limit, 1))).unwrap()
}

/// Takes until the cache refuses: the limit is used up, and the store is subscribed.
fn take_until_cached(store: &RedisStore, subject: &Subject, limit: &Limit) {
    let is_cached = || take(store, subject, limit).source() == Source::Cache;
    eventually("a refusal is cached", is_cached);
}

/// A window that does not end with the hour, which might end during the test.
fn hourly() -> Limit {
    Limit::sliding_window(Quota::per_hour(3)).unwrap().named("hourly").unwrap()
}

#[test]
fn refused_key_costs_no_calls() {
    let server = Server::start(Flavor::Redis);
    let (store, mut raw) = (builder(&server).build(), server.raw());
    let subject = Subject::of(["k"]);
    for limit in limits_of_each_algorithm(3).iter().filter(|limit| limit.ttl().is_none()) {
        take_until_cached(&store, &subject, limit);
        let (before, started) = (script_calls(&mut raw), Instant::now());
        for _ in 0..10_000 {
            assert!(!take(&store, &subject, limit).is_allowed());
        }
        // Each refusal is refreshed once per second.
        let calls = script_calls(&mut raw) - before;
        let seconds = started.elapsed().as_secs() + 1;
        assert!(calls <= seconds, "{}: {calls} calls in {seconds} s", limit.algorithm());
    }
}

#[test]
fn cached_wait_shrinks_and_is_longer_by_a_call_at_most() {
    let server = Server::start(Flavor::Redis);
    let store = builder(&server).build();
    let (subject, limit) = (Subject::of(["k"]), hourly());
    let start = Instant::now();
    take_until_cached(&store, &subject, &limit);
    // The wait counts from the reply, so that it is never too short.
    let mut slowest = start.elapsed();
    let (mut last, mut cached_count) = (Duration::MAX, 0);
    for _ in 0..1000 {
        let truth = block_on(store.peek(&plan(&subject, &limit, 1))).unwrap();
        let start = Instant::now();
        let cached = take(&store, &subject, &limit);
        slowest = slowest.max(start.elapsed());
        assert_eq!(truth.source(), Source::Store);
        let is_cached = cached.source() == Source::Cache;
        let (truth, cached) = (truth.retry_after().unwrap(), cached.retry_after().unwrap());
        assert!(cached <= truth + slowest, "{cached:?} is longer than {truth:?}");
        // A fresh wait may be longer than the cached one by the time of the call.
        assert!(!is_cached || cached < last, "{cached:?} after {last:?}");
        last = if is_cached { cached } else { Duration::MAX };
        cached_count += u64::from(is_cached);
    }
    assert!(cached_count > 0);
}

/// A cached refusal ends with the window, not later.
#[test]
fn cached_refusal_ends_with_the_window() {
    let server = Server::start(Flavor::Redis);
    let store = builder(&server).build();
    let subject = Subject::of(["k"]);
    take_until_cached(&store, &subject, &hourly());
    let limit = Limit::fixed_window(Quota::per_second(1)).unwrap();
    let first = take(&store, &subject, &limit);
    let mut refused_until = first.at();
    eventually("the window ends", || {
        let decision = take(&store, &subject, &limit);
        if let Some(wait) = decision.retry_after() {
            refused_until = refused_until.max(decision.at() + wait);
        }
        decision.is_allowed()
    });
    // Earlier if this machine was suspended for the whole window.
    assert!(refused_until <= first.at() + Duration::from_secs(1));
}

#[test]
fn concurrency_limits_are_not_cached() {
    let server = Server::start(Flavor::Redis);
    let store = builder(&server).build();
    let subject = Subject::of(["k"]);
    take_until_cached(&store, &subject, &hourly());
    let slots = Limit::concurrency(2, Duration::from_secs(3600)).unwrap();
    for nth in 0..200 {
        let decision = take(&store, &subject, &slots);
        assert_eq!((decision.source(), decision.is_allowed()), (Source::Store, nth < 2));
    }
}

#[test]
fn refund_or_reset_applies_immediately_in_this_process() {
    let server = Server::start(Flavor::Redis);
    let store = builder(&server).build();
    let (subject, limit) = (Subject::of(["k"]), hourly());
    for _ in 0..20 {
        take_until_cached(&store, &subject, &limit);
        let _ = block_on(store.refund(&plan(&subject, &limit, 1))).unwrap();
        assert!(take(&store, &subject, &limit).is_allowed(), "after a refund");
        take_until_cached(&store, &subject, &limit);
        block_on(store.reset(&Key::new(&subject, &limit))).unwrap();
        assert!(take(&store, &subject, &limit).is_allowed(), "after a reset");
    }
}

/// Also for the empty subject, which is a placeholder in its key, and for an escaped one.
#[test]
fn refund_or_reset_reaches_other_processes() {
    let server = Server::start(Flavor::Redis);
    let (store, other) = (builder(&server).build(), builder(&server).build());
    let empty = Subject::of([""; 0]);
    for subject in [Subject::of(["k"]), empty, Subject::in_tenant("a{b}", ["%", "é:/"])] {
        let limit = hourly();
        let passes = || take(&store, &subject, &limit).is_allowed();
        take_until_cached(&store, &subject, &limit);
        let _ = block_on(other.refund(&plan(&subject, &limit, 1))).unwrap();
        eventually(&format!("a refund for {subject:?} reaches the node"), passes);
        take_until_cached(&store, &subject, &limit);
        block_on(other.reset(&Key::new(&subject, &limit))).unwrap();
        eventually(&format!("a reset for {subject:?} reaches the node"), passes);
    }
}

#[test]
fn other_limits_and_costs_are_not_refused_by_the_cache() {
    let server = Server::start(Flavor::Redis);
    let store = builder(&server).build();
    let (subject, limit) = (Subject::of(["k"]), hourly());
    take_until_cached(&store, &subject, &limit);
    let raised = Limit::sliding_window(Quota::per_hour(4)).unwrap().named("hourly").unwrap();
    let decision = take(&store, &subject, &raised);
    assert_eq!((decision.source(), decision.is_allowed()), (Source::Store, true));
    let costlier = block_on(store.take(&plan(&subject, &limit, 2))).unwrap();
    assert_eq!(costlier.source(), Source::Store, "another cost has another wait");
}

#[test]
fn nothing_is_cached_without_a_subscription() {
    let server = Server::start(Flavor::Redis);
    let (store, mut raw) = (builder(&server).build(), server.raw());
    let (subject, limit) = (Subject::of(["k"]), hourly());
    take_until_cached(&store, &subject, &limit);
    // Denies and ends all subscriptions.
    raw.call(&["ACL", "SETUSER", "default", "resetchannels"]);
    raw.call(&["CLIENT", "KILL", "TYPE", "pubsub"]);
    let is_decided_by_store = || take(&store, &subject, &limit).source() == Source::Store;
    eventually("the subscription is lost", is_decided_by_store);
    for _ in 0..1000 {
        assert!(is_decided_by_store(), "a refusal was cached without a subscription");
    }
    raw.call(&["ACL", "SETUSER", "default", "allchannels"]);
    take_until_cached(&store, &subject, &limit);
}
