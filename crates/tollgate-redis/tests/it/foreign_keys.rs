//! What is not ours to read fails those who need it and nobody else, and is left as it was.

use std::time::Duration;

use tollgate::{Key, Limit, Plan, Quota, Store, StoreError, StoreErrorKind, Subject, Take};
use tollgate_redis::RedisStore;
use tollgate_testkit::conformance::permit_on;
use tollgate_testkit::server::{Flavor, Raw, Value};

use crate::fixture::{block_on, in_order, name_of, of_each_kind, patient, plan, prefix, shared};

/// What somebody else may have put where our counters are: a command without its key, and its arguments.
fn plantings(is_list: bool, size: usize) -> Vec<(&'static str, Vec<Vec<u8>>)> {
    let zeros = |count: usize| vec![0; count];
    // A flag that only a later version knows, in what would else be a state.
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

/// How many bytes a state has, and whether it is a list's first.
fn shape(letter: &str) -> (bool, usize) {
    match letter {
        "w" | "n" => (true, 14),
        "a" => (false, 21),
        _ => (false, 28),
    }
}

fn dump(raw: &mut Raw, key: &str) -> Value {
    raw.call(&["DUMP", key])
}

/// Plants everything under every algorithm's keys, one after the other.
fn for_each_planting(flavor: Flavor, check: impl Fn(&RedisStore, &Key<'_>, &str)) {
    let server = shared(flavor);
    let (prefix, mut raw) = (prefix(), server.raw());
    let store = patient(server).prefix(prefix.as_str()).unwrap().build();
    for limit in of_each_kind(10) {
        let (is_list, size) = shape(&limit.identity()[..1]);
        for (nth, (command, arguments)) in plantings(is_list, size).into_iter().enumerate() {
            let subject = Subject::of(["planted", &nth.to_string()]);
            let key = Key::new(&subject, &limit);
            let name = name_of(&prefix, &key);
            let words = [command.as_bytes().to_vec(), name.clone().into_bytes()];
            let planted = raw.call(&[&words[..], &arguments].concat());
            assert!(!planted.is_error(), "{planted:?}");
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
fn every_verb_fails_by_the_name_of_the_key() {
    for flavor in Flavor::ALL {
        for_each_planting(flavor, |store, key, name| {
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

fn one<'a>(key: &Key<'a>) -> Plan<'a> {
    Plan::new([Take::new(*key, 4)]).unwrap()
}

#[test]
fn neighbours_in_the_same_call_are_decided_rightly() {
    for_each_planting(Flavor::Redis, |store, key, name| {
        let subjects: Vec<Subject> =
            (0..3).map(|nth| Subject::of(["good", name, &nth.to_string()])).collect();
        let good: Vec<Key<'_>> =
            subjects.iter().map(|subject| Key::new(subject, key.limit())).collect();
        let bad = one(key);
        let both = Plan::new([Take::new(good[2], 4), Take::new(*key, 4)]).unwrap();
        // The first two leave alone; the others share the third call.
        let plans = [one(&good[0]), one(&good[0]), one(&good[1]), bad, both, one(&good[1])];
        let mut answers = block_on(in_order(plans.iter().map(|plan| store.take(plan))));
        assert_incompatible(answers.remove(4), name);
        assert_incompatible(answers.remove(3), name);
        let left: Vec<_> = answers.into_iter().map(|answer| answer.unwrap().remaining()).collect();
        assert_eq!(left, [Some(6), Some(2), Some(6), Some(2)], "beside {name}");
        let untouched = block_on(store.stats(&good[2])).unwrap();
        assert_eq!(untouched.remaining(), 10, "of a plan with {name}");
    });
}

/// A list that no version of ours writes, but whose ends look like ours: what is told of it is nonsense, and
/// must stay with who asked for it.
#[test]
fn nonsense_of_one_plan_is_not_told_to_the_next() {
    let server = shared(Flavor::Redis);
    let (prefix, mut raw) = (prefix(), server.raw());
    let store = patient(server).prefix(prefix.as_str()).unwrap().build();
    let limit = Limit::sliding_window(Quota::per_minute(10)).unwrap();
    let subjects = ["first", "forged", "beside", "next"].map(|name| Subject::of([name]));
    let [first, forged, beside, next] = subjects.each_ref().map(|who| Key::new(who, &limit));
    let now = block_on(store.take(&one(&first))).unwrap().at().as_micros();
    // The second entry is older than the first, and holds nearly all.
    let pairs = [(60_000_000, 0), (now, 1), (1, 100), (now, 101)];
    let number = |number: u64| number.to_be_bytes()[1..].to_vec();
    let entries = pairs.map(|(at, total)| [number(at), number(total)].concat());
    let words = [b"RPUSH".to_vec(), name_of(&prefix, &forged).into_bytes()];
    raw.call(&[&words[..], &entries].concat());
    let both = Plan::new([Take::new(forged, 1), Take::new(beside, 7)]).unwrap();
    let plans = [one(&first), one(&first), both, one(&next), one(&next)];
    let answers = block_on(in_order(plans.iter().map(|plan| store.take(plan))));
    assert!(answers[2].is_err(), "{:?}", answers[2]);
    let told = answers[3..].iter().map(|answer| answer.as_ref().unwrap().remaining());
    assert_eq!(told.collect::<Vec<_>>(), [Some(6), Some(2)]);
}
