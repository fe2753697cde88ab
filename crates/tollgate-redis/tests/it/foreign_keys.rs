//! Values of other applications fail only the plans that use their keys, and stay unchanged.

use std::time::Duration;

use tollgate::{Key, Limit, Plan, Quota, Store, StoreError, StoreErrorKind, Subject, Take};
use tollgate_redis::RedisStore;
use tollgate_testkit::conformance::permit_on;
use tollgate_testkit::server::{Flavor, Raw, Value};

use crate::fixture::{
    block_on, builder, in_order, limits_of_each_algorithm, name_of, plan, prefix, shared,
};

/// Returns foreign values: a command without its key, and its arguments.
fn foreign_values(is_list: bool, size: usize) -> Vec<(&'static str, Vec<Vec<u8>>)> {
    let zeros = |count: usize| vec![0; count];
    // A flag of a newer version.
    let newer = [zeros(size), vec![2], zeros(14)].concat();
    let cut_off = [zeros(size), vec![1], zeros(13)].concat();
    let mut all = vec![("HSET", vec![b"field".to_vec(), b"value".to_vec()])];
    if is_list {
        all.push(("SET", vec![zeros(size)]));
        all.push(("RPUSH", vec![b"job-1".to_vec(), b"job-2".to_vec()]));
        all.push(("RPUSH", vec![newer]));
        all.push(("RPUSH", vec![cut_off]));
        all.push(("RPUSH", vec![zeros(size), zeros(3)]));
        all.push(("RPUSH", vec![zeros(size), zeros(14), zeros(3)]));
        all.push(("RPUSH", vec![zeros(size), zeros(16), zeros(21), zeros(16), zeros(3)]));
    } else {
        all.push(("RPUSH", vec![zeros(size)]));
        all.push(("SET", vec![b"17".to_vec()]));
        all.push(("SET", vec![zeros(size - 1)]));
        all.push(("SET", vec![newer]));
        all.push(("SET", vec![cut_off]));
    }
    all
}

/// Returns whether a state is a list, and the length of the state or of the first element.
fn state_format(letter: &str) -> (bool, usize) {
    match letter {
        "w" | "n" => (true, 14),
        "a" => (false, 21),
        _ => (false, 28),
    }
}

fn dump(raw: &mut Raw, key: &str) -> Value {
    raw.call(&["DUMP", key])
}

/// Writes each foreign value under a key of each algorithm, and calls `check`.
fn for_each_foreign_value(flavor: Flavor, check: impl Fn(&RedisStore, &Key<'_>, &str)) {
    let server = shared(flavor);
    let (prefix, mut raw) = (prefix(), server.raw());
    let store = builder(server).prefix(prefix.as_str()).unwrap().build();
    for limit in limits_of_each_algorithm(10) {
        let (is_list, size) = state_format(&limit.identity()[..1]);
        for (nth, (command, arguments)) in foreign_values(is_list, size).into_iter().enumerate() {
            let subject = Subject::of(["foreign", &nth.to_string()]);
            let key = Key::new(&subject, &limit);
            let name = name_of(&prefix, &key);
            let words = [command.as_bytes().to_vec(), name.clone().into_bytes()];
            let reply = raw.call(&[&words[..], &arguments].concat());
            assert!(!reply.is_error(), "{reply:?}");
            let before = dump(&mut raw, &name);
            check(&store, &key, &name);
            assert_eq!(dump(&mut raw, &name), before, "{name} was changed");
            block_on(store.reset(&key)).unwrap();
            assert!(block_on(store.take(&plan(&subject, &limit, 10))).unwrap().is_allowed());
        }
    }
}

fn assert_incompatible<T: std::fmt::Debug>(result: Result<T, StoreError>, name: &str) {
    let error = result.expect_err(name);
    assert_eq!(error.kind(), StoreErrorKind::Incompatible, "{error} at {name}");
    assert!(error.to_string().contains(name), "{error:?} does not name {name}");
}

#[test]
fn every_verb_fails_with_the_name_of_the_key() {
    for flavor in Flavor::ALL {
        for_each_foreign_value(flavor, |store, key, name| {
            let plan = Plan::new([Take::new(*key, 1)]).unwrap();
            block_on(async {
                assert_incompatible(store.take(&plan).await, name);
                assert_incompatible(store.peek(&plan).await, name);
                assert_incompatible(store.refund(&plan).await, name);
                assert_incompatible(store.debit(&plan, Duration::ZERO).await, name);
                assert_incompatible(store.pause(key, Duration::from_secs(1)).await, name);
                assert_incompatible(store.stats(key).await, name);
                if key.limit().ttl().is_some() {
                    assert_incompatible(store.release(&permit_on(&[*key], 1)).await, name);
                    assert_incompatible(store.renew(&permit_on(&[*key], 1)).await, name);
                }
            });
        });
    }
}

fn take_four<'a>(key: &Key<'a>) -> Plan<'a> {
    Plan::new([Take::new(*key, 4)]).unwrap()
}

#[test]
fn other_plans_of_the_same_call_are_decided_correctly() {
    for_each_foreign_value(Flavor::Redis, |store, key, name| {
        let subjects: Vec<Subject> =
            (0..3).map(|nth| Subject::of(["good", name, &nth.to_string()])).collect();
        let good: Vec<Key<'_>> =
            subjects.iter().map(|subject| Key::new(subject, key.limit())).collect();
        let bad = take_four(key);
        let both = Plan::new([Take::new(good[2], 4), Take::new(*key, 4)]).unwrap();
        // The first two plans are sent alone; the others share the third call.
        let plans = [
            take_four(&good[0]),
            take_four(&good[0]),
            take_four(&good[1]),
            bad,
            both,
            take_four(&good[1]),
        ];
        let mut results = block_on(in_order(plans.iter().map(|plan| store.take(plan))));
        assert_incompatible(results.remove(4), name);
        assert_incompatible(results.remove(3), name);
        let left: Vec<_> = results.into_iter().map(|result| result.unwrap().remaining()).collect();
        assert_eq!(left, [Some(6), Some(2), Some(6), Some(2)], "in a call with {name}");
        let untouched = block_on(store.stats(&good[2])).unwrap();
        assert_eq!(untouched.remaining(), 10, "in a plan with {name}");
    });
}

/// A corrupt list whose first and last elements are valid: its invalid figures must not reach another plan.
#[test]
fn invalid_figures_do_not_reach_the_next_plan() {
    let server = shared(Flavor::Redis);
    let (prefix, mut raw) = (prefix(), server.raw());
    let store = builder(server).prefix(prefix.as_str()).unwrap().build();
    let limit = Limit::sliding_window(Quota::per_minute(10)).unwrap();
    let subjects = ["first", "forged", "second", "next"].map(|name| Subject::of([name]));
    let [first, forged, second, next] =
        subjects.each_ref().map(|subject| Key::new(subject, &limit));
    let now = block_on(store.take(&take_four(&first))).unwrap().at().as_micros();
    // The second entry is older than the first and has most of the total.
    let pairs = [(60_000_000, 0), (now, 1), (1, 100), (now, 101)];
    let number = |number: u64| number.to_be_bytes()[1..].to_vec();
    let entries = pairs.map(|(at, total)| [number(at), number(total)].concat());
    let words = [b"RPUSH".to_vec(), name_of(&prefix, &forged).into_bytes()];
    raw.call(&[&words[..], &entries].concat());
    let both = Plan::new([Take::new(forged, 1), Take::new(second, 7)]).unwrap();
    let plans = [take_four(&first), take_four(&first), both, take_four(&next), take_four(&next)];
    let results = block_on(in_order(plans.iter().map(|plan| store.take(plan))));
    assert!(results[2].is_err(), "{:?}", results[2]);
    let remaining = results[3..].iter().map(|result| result.as_ref().unwrap().remaining());
    assert_eq!(remaining.collect::<Vec<_>>(), [Some(6), Some(2)]);
}
