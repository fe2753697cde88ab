//! A store that was saved and restored answers as one that was not interrupted.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use tollgate::algorithm::CalendarUnit;
use tollgate::{
    Key, Limit, Listing, ManualClock, MemoryStore, Permit, Plan, Quota, SnapshotErrorKind, Subject,
    Take, Timestamp,
};
use tollgate_testkit::answer::Operation;
use tollgate_testkit::conformance::permit_id;
use tollgate_testkit::history::{History, HistoryLevel};
use tollgate_testkit::random::Random;
use tollgate_testkit::spec::Kind;

use crate::asking::ask;

pub(crate) type Store = MemoryStore<ManualClock>;

pub(crate) fn store(clock: &ManualClock) -> Store {
    MemoryStore::builder().clock(clock.clone()).build()
}

pub(crate) fn saved(store: &Store) -> Vec<u8> {
    let mut file = Vec::new();
    store.save(&mut file).unwrap();
    file
}

/// One limit of each kind, some of them named.
pub(crate) fn limits() -> Vec<Limit> {
    let quota = Quota::new(9, Duration::from_secs(60));
    let limits = [
        Limit::token_bucket(quota.burst(20)),
        Limit::token_bucket(quota).and_then(|limit| limit.named("named")),
        Limit::sliding_window(quota).and_then(|limit| limit.in_rule("rule")),
        Limit::sliding_counter(quota),
        Limit::fixed_window(quota),
        Limit::calendar_window(9, CalendarUnit::Week, "America/New_York"),
        Limit::concurrency(9, Duration::from_secs(60)),
    ];
    limits.into_iter().map(Result::unwrap).chain([Limit::block()]).collect()
}

/// Keys of every kind, used, paused and both.
pub(crate) fn filled(clock: &ManualClock) -> Store {
    let store = store(clock);
    for limit in limits() {
        for (nth, name) in
            ["k", "paused", "a subject that is too long for a slot"].iter().enumerate()
        {
            let subject = Subject::of([name]);
            let key = Key::new(&subject, &limit);
            ask(&store, key, Operation::Hold { cost: 2, permit: 7 });
            ask(&store, key, Operation::Debit { cost: 1, age_us: 5_000_000 });
            if nth == 1 {
                ask(&store, key, Operation::Pause { length_us: 3_000_000 });
            }
        }
    }
    store
}

#[test]
fn a_restored_store_answers_as_one_that_was_not_interrupted() {
    let (mut compared, mut keys) = (0, 0);
    for wildness in [HistoryLevel::Basic, HistoryLevel::Operations, HistoryLevel::Changes] {
        for kind in Kind::ALL {
            for seed in 0..150 {
                let kept = compare(seed, kind, wildness);
                (compared, keys) = (compared + 1, keys + kept);
            }
        }
    }
    assert!(
        keys * 2 > compared,
        "only {keys} of {compared} keys were in use: the test shows little"
    );
}

/// Interrupts a history at some moment; how many keys were in use then.
fn compare(seed: u64, kind: Kind, wildness: HistoryLevel) -> u64 {
    let clock = ManualClock::new();
    let lasting = store(&clock);
    let mut restored = None;
    let mut history = History::new(seed, kind, wildness);
    let limits: Vec<Limit> = history.limits().iter().map(|spec| spec.build().unwrap()).collect();
    let name = if seed.is_multiple_of(2) { "k" } else { "a subject that is too long for a slot" };
    let subject = Subject::of([name]);
    let split = Random::new(seed).within(1, 40);
    let (mut last, mut kept) = (None, 0);
    for moment_number in 0..60 {
        let moment = history.next(last.as_ref());
        clock.set(Timestamp::from_micros(moment.at_us));
        if moment_number == split {
            let store = store(&clock);
            kept = store.restore(&saved(&lasting)).unwrap();
            restored = Some(store);
        }
        let key = Key::new(&subject, &limits[moment.limit]);
        let answer = ask(&lasting, key, moment.operation);
        // What had ended is not saved, and does not come back with a clock that steps back over it.
        if let Some(restored) = &restored
            && (kept > 0 || wildness != HistoryLevel::Changes)
        {
            let told = ask(restored, key, moment.operation);
            assert_eq!(told, answer, "{kind:?} {wildness:?} seed {seed} {moment:?}");
        }
        last = Some(answer);
    }
    kept
}

#[test]
fn every_key_and_its_limit_come_back() {
    let clock = ManualClock::new();
    let before = filled(&clock);
    let limit = Limit::token_bucket(Quota::per_day(3)).unwrap();
    for n in 0..5000 {
        let subject = Subject::of([format!("user-{n}")]);
        let _ = before.take(&Plan::new([Take::new(Key::new(&subject, &limit), 1)]).unwrap());
    }
    let after = store(&clock);
    assert_eq!(after.restore(&saved(&before)).unwrap(), before.occupancy().keys as u64);
    assert_eq!(after.occupancy().keys, before.occupancy().keys);
    let listed = |store: &Store| {
        let mut keys = store.list(&Listing::all().with_page_size(usize::MAX)).unwrap().keys;
        keys.sort_by_key(|key| (key.subject.clone(), key.algorithm.as_str(), key.limit.clone()));
        keys
    };
    assert_eq!(listed(&after), listed(&before));
    assert!(listed(&after).iter().all(|key| key.known.is_some()));
}

/// Past 65 536 names a scope is written out, and its numbers are not remembered.
#[test]
fn keys_of_unnumbered_limits_come_back() {
    let clock = ManualClock::new();
    let (before, after) = (store(&clock), store(&clock));
    let limit = |n: u64| {
        let limit = Limit::token_bucket(Quota::per_day(2)).unwrap();
        limit.named(&n.to_string()).unwrap()
    };
    let subject = Subject::of(["k"]);
    for n in 0..66_000 {
        let _ = ask(&before, Key::new(&subject, &limit(n)), Operation::Take { cost: 1 });
    }
    assert_eq!(after.restore(&saved(&before)).unwrap(), 66_000);
    for n in [0, 8191, 8192, 65_535, 65_536, 65_999] {
        let answer = ask(&after, Key::new(&subject, &limit(n)), Operation::Take { cost: 1 });
        assert_eq!((answer.is_allowed(), answer.remaining), (true, 0), "limit {n}");
    }
}

#[test]
fn what_has_ended_is_not_saved_and_not_restored() {
    let clock = ManualClock::new();
    let before = filled(&clock);
    let file = saved(&before);
    clock.advance(Duration::from_secs(14 * 86_400));
    let mut later = Vec::new();
    assert_eq!(before.save(&mut later).unwrap(), 0);
    assert_eq!(store(&clock).restore(&file).unwrap(), 0);
    assert_eq!(store(&clock).restore(&later).unwrap(), 0);
}

#[test]
fn only_an_empty_store_with_room_is_restored_into() {
    let clock = ManualClock::new();
    let before = filled(&clock);
    let file = saved(&before);
    assert_eq!(before.restore(&file).unwrap_err().kind(), SnapshotErrorKind::StoreNotEmpty);
    let small = MemoryStore::builder().max_keys(3).clock(clock).build();
    assert_eq!(small.restore(&file).unwrap_err().kind(), SnapshotErrorKind::TooMany);
    assert_eq!(small.occupancy().keys, 0);
}

/// Whatever is taken, held and given back meanwhile, each file is whole.
#[test]
fn saving_beside_takes_gives_whole_files() {
    let store = MemoryStore::new();
    let limits = limits();
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let takers: Vec<_> = (0..4u64)
            .map(|nth| {
                let (store, limits) = (&store, &limits);
                scope.spawn(move || {
                    for n in 0..4000 {
                        let subject = Subject::of([format!("{nth}-{}", n % 500)]);
                        for limit in limits {
                            let plan =
                                Plan::new([Take::new(Key::new(&subject, limit), 1)]).unwrap();
                            let plan = plan.with_permit(permit_id(n + 1));
                            if let Some(permit) = Permit::of(&plan, &store.take(&plan)) {
                                assert!(store.release(&permit));
                            }
                        }
                    }
                })
            })
            .collect();
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                let mut file = Vec::new();
                let keys = store.save(&mut file).unwrap();
                let restored = MemoryStore::new().restore(&file).unwrap();
                assert!(restored <= keys);
            }
        });
        for taker in takers {
            taker.join().unwrap();
        }
        done.store(true, Ordering::Relaxed);
    });
}
