//! A restored store decides like the original one.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use tollgate::algorithm::CalendarUnit;
use tollgate::{
    Key, Limit, ListedKey, Listing, ManualClock, MemoryStore, Permit, Plan, Quota,
    SnapshotErrorKind, Subject, Take, Timestamp,
};
use tollgate_testkit::answer::Operation;
use tollgate_testkit::conformance::permit_id;
use tollgate_testkit::history::{History, HistoryLevel};
use tollgate_testkit::random::Random;
use tollgate_testkit::spec::Kind;

use crate::operations::apply;

pub(crate) type Store = MemoryStore<ManualClock>;

pub(crate) fn store(clock: &ManualClock) -> Store {
    MemoryStore::builder().clock(clock.clone()).build()
}

pub(crate) fn saved(store: &Store) -> Vec<u8> {
    let mut file = Vec::new();
    store.save(&mut file).unwrap();
    file
}

/// Returns one limit per algorithm, some of them named.
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

/// Returns a store with keys of every algorithm, some of them paused.
pub(crate) fn filled(clock: &ManualClock) -> Store {
    let store = store(clock);
    for limit in limits() {
        for (nth, name) in
            ["k", "paused", "a subject that is too long for a slot"].iter().enumerate()
        {
            let subject = Subject::of([name]);
            let key = Key::new(&subject, &limit);
            apply(&store, key, Operation::Hold { cost: 2, permit: 7 });
            apply(&store, key, Operation::Debit { cost: 1, age_us: 5_000_000 });
            if nth == 1 {
                apply(&store, key, Operation::Pause { length_us: 3_000_000 });
            }
        }
    }
    store
}

#[test]
fn restored_store_decides_like_the_original() {
    let (mut compared, mut keys) = (0, 0);
    for level in
        [HistoryLevel::Basic, HistoryLevel::Operations, HistoryLevel::Changes, HistoryLevel::Leases]
    {
        for kind in Kind::ALL {
            for seed in 0..150 {
                let kept = compare(seed, kind, level);
                (compared, keys) = (compared + 1, keys + kept);
            }
        }
    }
    assert!(
        keys * 2 > compared,
        "only {keys} of {compared} keys were active, too few for this test"
    );
}

/// Restores a store in the middle of a history and returns how many keys were active then.
fn compare(seed: u64, kind: Kind, level: HistoryLevel) -> u64 {
    let clock = ManualClock::new();
    let original = store(&clock);
    let mut restored = None;
    let mut history = History::new(seed, kind, level);
    let limits: Vec<Limit> = history.limits().iter().map(|spec| spec.build().unwrap()).collect();
    let name = if seed.is_multiple_of(2) { "k" } else { "a subject that is too long for a slot" };
    let subject = Subject::of([name]);
    let split = Random::new(seed).within(1, 40);
    let (mut last, mut kept) = (None, 0);
    for index in 0..60 {
        let step = history.next(last.as_ref());
        clock.set(Timestamp::from_micros(step.at_us));
        if index == split {
            let store = store(&clock);
            kept = store.restore(&saved(&original)).unwrap();
            restored = Some(store);
        }
        let key = Key::new(&subject, &limits[step.limit]);
        let expected = apply(&original, key, step.operation);
        // Expired state is not saved. It would count again in the original if the clock steps back.
        if let Some(restored) = &restored
            && (kept > 0 || level < HistoryLevel::Changes)
        {
            let answer = apply(restored, key, step.operation);
            assert_eq!(answer, expected, "{kind:?} {level:?} seed {seed} {step:?}");
        }
        last = Some(expected);
    }
    kept
}

/// Returns the keys of a store in a fixed order.
pub(crate) fn listed(store: &Store) -> Vec<ListedKey> {
    let mut keys = store.list(&Listing::all().with_page_size(usize::MAX)).unwrap().keys;
    keys.sort_by_key(|key| (key.subject.clone(), key.algorithm.as_str(), key.limit.clone()));
    keys
}

#[test]
fn restores_every_key_and_its_limit() {
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
    assert_eq!(listed(&after), listed(&before));
    assert!(listed(&after).iter().all(|key| key.known.is_some()));
}

/// After 65 536 limit names, keys contain the identity as text and their limits are not stored.
#[test]
fn restores_keys_of_unregistered_limits() {
    let clock = ManualClock::new();
    let (before, after) = (store(&clock), store(&clock));
    let limit = |n: u64| {
        let limit = Limit::token_bucket(Quota::per_day(2)).unwrap();
        limit.named(&n.to_string()).unwrap()
    };
    let subject = Subject::of(["k"]);
    for n in 0..66_000 {
        let _ = apply(&before, Key::new(&subject, &limit(n)), Operation::Take { cost: 1 });
    }
    assert_eq!(after.restore(&saved(&before)).unwrap(), 66_000);
    for n in [0, 8191, 8192, 65_535, 65_536, 65_999] {
        let answer = apply(&after, Key::new(&subject, &limit(n)), Operation::Take { cost: 1 });
        assert_eq!((answer.is_allowed(), answer.remaining), (true, 0), "limit {n}");
    }
}

#[test]
fn expired_keys_are_not_saved_or_restored() {
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
fn restores_only_into_an_empty_store_with_enough_capacity() {
    let clock = ManualClock::new();
    let before = filled(&clock);
    let file = saved(&before);
    assert_eq!(before.restore(&file).unwrap_err().kind(), SnapshotErrorKind::StoreNotEmpty);
    let small = MemoryStore::builder().max_keys(3).clock(clock).build();
    assert_eq!(small.restore(&file).unwrap_err().kind(), SnapshotErrorKind::TooMany);
    assert_eq!(small.occupancy().keys, 0);
}

/// Snapshots during concurrent takes and releases are complete.
#[test]
fn snapshots_during_takes_are_valid() {
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
