//! A refused caller who asks again costs Redis nothing, and is not refused for longer than need be.

use std::time::{Duration, Instant};

use tollgate::{Decision, Key, Limit, Quota, Source, Store, Subject};
use tollgate_redis::RedisStore;
use tollgate_testkit::server::{Flavor, Raw, Server};
use tollgate_testkit::wait::eventually;

use crate::fixture::{block_on, of_each_kind, patient, plan};

/// How often Redis was asked to run a script.
fn script_calls(raw: &mut Raw) -> u64 {
    let info = raw.call(&["INFO", "commandstats"]);
    let calls = |line: &str| {
        let (name, rest) = line.split_once(":calls=")?;
        let is_script = ["cmdstat_eval", "cmdstat_evalsha", "cmdstat_fcall"].contains(&name);
        is_script.then(|| rest.split(',').next().unwrap().parse::<u64>().unwrap())
    };
    info.text().lines().filter_map(calls).sum()
}

fn take<'a>(store: &RedisStore, subject: &'a Subject, limit: &'a Limit) -> Decision<'a> {
    block_on(store.take(&plan(subject, limit, 1))).unwrap()
}

/// Takes until it is refused from memory: the limit is used up, and changes are heard of.
fn until_remembered(store: &RedisStore, subject: &Subject, limit: &Limit) {
    let remembered = || take(store, subject, limit).source() == Source::Cache;
    eventually("a refusal is remembered", remembered);
}

/// Of a window that does not end with the hour of the clock, which may end while a test runs.
fn hourly() -> Limit {
    Limit::sliding_window(Quota::per_hour(3)).unwrap().named("hourly").unwrap()
}

#[test]
fn a_refused_key_costs_redis_nothing() {
    let server = Server::start(Flavor::Redis);
    let (store, mut raw) = (patient(&server).build(), server.raw());
    let subject = Subject::of(["k"]);
    for limit in of_each_kind(3).iter().filter(|limit| limit.ttl().is_none()) {
        until_remembered(&store, &subject, limit);
        let (before, begun) = (script_calls(&mut raw), Instant::now());
        for _ in 0..10_000 {
            assert!(!take(&store, &subject, limit).is_allowed());
        }
        // A refusal is asked for again every second.
        let asked = script_calls(&mut raw) - before;
        let seconds = begun.elapsed().as_secs() + 1;
        assert!(asked <= seconds, "{}: {asked} calls in {seconds} s", limit.algorithm());
    }
}

#[test]
fn a_remembered_wait_shrinks_and_is_never_too_long() {
    let server = Server::start(Flavor::Redis);
    let store = patient(&server).build();
    let (subject, limit) = (Subject::of(["k"]), hourly());
    until_remembered(&store, &subject, &limit);
    let (mut last, mut remembered) = (Duration::MAX, 0);
    for _ in 0..1000 {
        let truth = block_on(store.peek(&plan(&subject, &limit, 1))).unwrap();
        let told = take(&store, &subject, &limit);
        assert_eq!(truth.source(), Source::Store);
        let is_remembered = told.source() == Source::Cache;
        let (truth, told) = (truth.retry_after().unwrap(), told.retry_after().unwrap());
        assert!(told <= truth, "{told:?} is longer than {truth:?}");
        // What was asked anew may be longer by the time that asking took.
        assert!(!is_remembered || told < last, "{told:?} after {last:?}");
        last = if is_remembered { told } else { Duration::MAX };
        remembered += u64::from(is_remembered);
    }
    assert!(remembered > 0);
}

/// What is remembered ends by itself, when the window does and not later.
#[test]
fn a_remembered_refusal_ends_when_there_is_room() {
    let server = Server::start(Flavor::Redis);
    let store = patient(&server).build();
    let subject = Subject::of(["k"]);
    until_remembered(&store, &subject, &hourly());
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
    // Earlier if this machine was away for the whole window.
    assert!(refused_until <= first.at() + Duration::from_secs(1));
}

#[test]
fn slots_are_asked_for_every_time() {
    let server = Server::start(Flavor::Redis);
    let store = patient(&server).build();
    let subject = Subject::of(["k"]);
    until_remembered(&store, &subject, &hourly());
    let slots = Limit::concurrency(2, Duration::from_secs(3600)).unwrap();
    for nth in 0..200 {
        let decision = take(&store, &subject, &slots);
        assert_eq!((decision.source(), decision.is_allowed()), (Source::Store, nth < 2));
    }
}

#[test]
fn room_made_by_this_process_is_there_at_once() {
    let server = Server::start(Flavor::Redis);
    let store = patient(&server).build();
    let (subject, limit) = (Subject::of(["k"]), hourly());
    for _ in 0..20 {
        until_remembered(&store, &subject, &limit);
        let _ = block_on(store.refund(&plan(&subject, &limit, 1))).unwrap();
        assert!(take(&store, &subject, &limit).is_allowed(), "after a refund");
        until_remembered(&store, &subject, &limit);
        block_on(store.reset(&Key::new(&subject, &limit))).unwrap();
        assert!(take(&store, &subject, &limit).is_allowed(), "after a reset");
    }
}

/// Also for the subject of nobody's facts, whose key cannot hold its text, and for one that is escaped.
#[test]
fn room_made_by_another_process_is_heard_of() {
    let server = Server::start(Flavor::Redis);
    let (store, other) = (patient(&server).build(), patient(&server).build());
    let nobody = Subject::of([""; 0]);
    for subject in [Subject::of(["k"]), nobody, Subject::in_tenant("a{b}", ["%", "é:/"])] {
        let limit = hourly();
        let passes = || take(&store, &subject, &limit).is_allowed();
        until_remembered(&store, &subject, &limit);
        let _ = block_on(other.refund(&plan(&subject, &limit, 1))).unwrap();
        eventually(&format!("a refund for {subject:?} is heard of"), passes);
        until_remembered(&store, &subject, &limit);
        block_on(other.reset(&Key::new(&subject, &limit))).unwrap();
        eventually(&format!("a reset for {subject:?} is heard of"), passes);
    }
}

#[test]
fn other_numbers_are_not_refused_from_memory() {
    let server = Server::start(Flavor::Redis);
    let store = patient(&server).build();
    let (subject, limit) = (Subject::of(["k"]), hourly());
    until_remembered(&store, &subject, &limit);
    let raised = Limit::sliding_window(Quota::per_hour(4)).unwrap().named("hourly").unwrap();
    let decision = take(&store, &subject, &raised);
    assert_eq!((decision.source(), decision.is_allowed()), (Source::Store, true));
    let costlier = block_on(store.take(&plan(&subject, &limit, 2))).unwrap();
    assert_eq!(costlier.source(), Source::Store, "another cost waits for another time");
}

#[test]
fn who_cannot_hear_remembers_nothing() {
    let server = Server::start(Flavor::Redis);
    let (store, mut raw) = (patient(&server).build(), server.raw());
    let (subject, limit) = (Subject::of(["k"]), hourly());
    until_remembered(&store, &subject, &limit);
    // Nobody may listen any more, and who does is put out.
    raw.call(&["ACL", "SETUSER", "default", "resetchannels"]);
    raw.call(&["CLIENT", "KILL", "TYPE", "pubsub"]);
    let is_asked = || take(&store, &subject, &limit).source() == Source::Store;
    eventually("the loss is noticed", is_asked);
    for _ in 0..1000 {
        assert!(is_asked(), "a refusal was remembered by one who does not hear");
    }
    raw.call(&["ACL", "SETUSER", "default", "allchannels"]);
    until_remembered(&store, &subject, &limit);
}
