//! Replay of the outage ledger in a restored store.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use tollgate::{Outage, StoreEvent};
use tollgate_testkit::faulty_store::StoreFault;

use super::*;

#[test]
fn admissions_of_the_outage_are_debited() {
    for limit in every_algorithm(90) {
        let fleet = Fleet::of(3);
        assert_eq!(fleet.admitted(0, &limit, 6), 6);
        fleet.lose();
        (0..3).for_each(|node| assert_eq!(fleet.admitted(node, &limit, 100), 30));
        fleet.restore();
        assert_eq!(fleet.counted(&limit), 90, "{limit:?}");
        (0..3).for_each(|node| assert_eq!(fleet.admitted(node, &limit, 9), 0, "{limit:?}"));
    }
}

#[test]
fn replay_happens_once() {
    for limit in every_algorithm(90) {
        let fleet = Fleet::of(1);
        fleet.lose();
        assert_eq!(fleet.admitted(0, &limit, 20), 20);
        (0..5).for_each(|_| fleet.restore());
        assert_eq!(fleet.counted(&limit), 20, "{limit:?}");
    }
}

#[test]
fn expired_admissions_are_not_replayed() {
    for limit in every_algorithm(90) {
        let fleet = Fleet::of(1);
        fleet.lose();
        assert_eq!(fleet.admitted(0, &limit, 20), 20);
        fleet.wait(120);
        let before = fleet.shared.calls();
        fleet.restore();
        assert_eq!(fleet.shared.calls() - before, 1, "the probe only: {limit:?}");
        assert_eq!(fleet.counted(&limit), 0);
    }
}

#[test]
fn replayed_admissions_expire_at_their_age() {
    let fleet = Fleet::of(1);
    let limit = Limit::sliding_window(Quota::per_minute(10)).unwrap();
    fleet.lose();
    assert_eq!(fleet.admitted(0, &limit, 6), 6);
    fleet.wait(30);
    assert_eq!(fleet.admitted(0, &limit, 9), 4);
    fleet.wait(20);
    fleet.restore();
    assert_eq!((fleet.counted(&limit), fleet.admitted(0, &limit, 9)), (10, 0));
    fleet.wait(10);
    assert_eq!(fleet.admitted(0, &limit, 9), 6, "the first six expired");
    fleet.wait(30);
    assert_eq!(fleet.admitted(0, &limit, 9), 4);
}

#[test]
fn take_with_lost_reply_counts_at_most_twice() {
    let (fleet, limit) = (Fleet::of(1), Limit::fixed_window(Quota::per_minute(90)).unwrap());
    fleet.shared.set(StoreFault::ReplyLost);
    assert_eq!(fleet.admitted(0, &limit, 20), 20);
    fleet.restore();
    assert_eq!(fleet.counted(&limit), 20 + 5, "five calls before the breaker opened");
}

#[test]
fn single_failure_is_replayed_too() {
    let (fleet, limit) = (Fleet::of(1), Limit::fixed_window(Quota::per_minute(90)).unwrap());
    fleet.lose();
    assert_eq!(fleet.admitted(0, &limit, 3), 3);
    fleet.shared.set(StoreFault::None);
    assert_eq!(fleet.admitted(0, &limit, 2), 2);
    assert_eq!(fleet.counted(&limit), 2);
    block_on(fleet.nodes[0].maintain());
    assert_eq!(fleet.counted(&limit), 5);
}

#[test]
fn refund_in_an_outage_reduces_the_debit() {
    for limit in every_algorithm(90) {
        let (fleet, subject) = (Fleet::of(1), Subject::of(["k"]));
        fleet.lose();
        assert_eq!(fleet.admitted(0, &limit, 20), 20);
        let plan = Plan::new([Take::new(Key::new(&subject, &limit), 15)]).unwrap();
        let decision = block_on(fleet.nodes[0].refund(&plan)).unwrap();
        assert_eq!(decision.remaining(), Some(85), "{limit:?}");
        fleet.restore();
        assert_eq!(fleet.counted(&limit), 5, "{limit:?}");
    }
}

#[test]
fn debit_in_an_outage_is_replayed() {
    let (fleet, subject) = (Fleet::of(1), Subject::of(["k"]));
    let limit = Limit::sliding_window(Quota::per_minute(90)).unwrap();
    let plan = one(&subject, &limit);
    fleet.lose();
    block_on(fleet.nodes[0].debit(&plan, Duration::from_secs(59))).unwrap();
    block_on(fleet.nodes[0].debit(&plan, Duration::from_secs(10))).unwrap();
    fleet.restore();
    assert_eq!(fleet.counted(&limit), 2);
    fleet.wait(1);
    assert_eq!(fleet.counted(&limit), 1);
}

#[test]
fn pause_holds_locally_then_everywhere() {
    let (fleet, subject) = (Fleet::of(2), Subject::of(["k"]));
    let limit = Limit::fixed_window(Quota::per_minute(90)).unwrap();
    fleet.lose();
    block_on(fleet.nodes[0].pause(&Key::new(&subject, &limit), Duration::from_secs(40))).unwrap();
    assert_eq!(fleet.admitted(0, &limit, 6), 0);
    fleet.wait(10);
    fleet.restore();
    assert_eq!(fleet.admitted(1, &limit, 1), 0);
    fleet.wait(29);
    assert_eq!(fleet.admitted(1, &limit, 1), 0);
    fleet.wait(1);
    assert_eq!(fleet.admitted(1, &limit, 1), 1);
}

/// Loses the store during the replay of 300 keys. Returns the number of keys that it knows in the end, and the outage.
fn lose_during_replay(fault: StoreFault) -> (u64, Outage) {
    let (mut fleet, limit) = (Fleet::of(1), Limit::fixed_window(Quota::per_minute(9)).unwrap());
    let outage = Arc::new(Mutex::new(None));
    let reported = Arc::clone(&outage);
    let builder = FallbackStore::builder(Arc::clone(&fleet.shared)).clock(fleet.clock.clone());
    let node = builder.on_event(move |event| {
        if let StoreEvent::Restored(outage) = event {
            *reported.lock().unwrap() = Some(outage);
        }
    });
    fleet.nodes = vec![node.build()];
    let subjects: Vec<Subject> = (0..300).map(|number| Subject::of([number.to_string()])).collect();
    fleet.lose();
    subjects
        .iter()
        .for_each(|subject| assert!(take(&fleet.nodes[0], &one(subject, &limit)).is_allowed()));
    // The probe and the first debits succeed.
    fleet.shared.fail_after(100, fault);
    block_on(fleet.nodes[0].maintain());
    assert_eq!(fleet.nodes[0].breaker(), tollgate::BreakerState::Open);
    fleet.restore();
    let count = |subject: &Subject| fleet.shared.store().stats(&Key::new(subject, &limit)).count();
    assert!(subjects.iter().all(|subject| count(subject) <= 1), "a debit was sent twice");
    let known = subjects.iter().map(count).sum();
    (known, outage.lock().unwrap().unwrap())
}

#[test]
fn failed_replay_reopens_and_continues_later() {
    let (known, outage) = lose_during_replay(StoreFault::Unreachable);
    assert_eq!((known, outage.keys_replayed, outage.keys_dropped), (300, 300, 0));
}

#[test]
fn debits_with_lost_replies_are_dropped_and_counted() {
    let (known, outage) = lose_during_replay(StoreFault::RequestLost);
    assert_eq!((known, outage.keys_replayed, outage.keys_dropped), (99, 99, 201));
}

/// `TOLLGATE_REPLAYED_KEYS=1000000 cargo test --release … many_keys -- --nocapture` prints the time of the replay.
#[test]
fn many_keys_are_replayed() {
    let keys = std::env::var("TOLLGATE_REPLAYED_KEYS").ok().and_then(|keys| keys.parse().ok());
    let keys: u64 = keys.unwrap_or(3_000);
    let (fleet, limit) = (Fleet::of(1), Limit::sliding_window(Quota::per_minute(9)).unwrap());
    fleet.lose();
    for number in 0..keys {
        let subject = Subject::of([number.to_string()]);
        // Some accounts have two debits.
        for _ in 0..=number % 2 {
            assert!(take(&fleet.nodes[0], &one(&subject, &limit)).is_allowed());
        }
    }
    let (calls, began) = (fleet.shared.calls(), std::time::Instant::now());
    fleet.restore();
    println!("{keys} keys replayed in {:?}", began.elapsed());
    assert_eq!(
        fleet.shared.calls() - calls,
        1 + keys + keys / 2,
        "a probe, and one call per debit"
    );
    assert_eq!(fleet.nodes[0].breaker(), tollgate::BreakerState::Closed);
}

#[test]
fn unreadable_key_does_not_block_recovery() {
    let (fleet, limit) = (Fleet::of(1), Limit::fixed_window(Quota::per_minute(9)).unwrap());
    fleet.lose();
    assert_eq!(fleet.admitted(0, &limit, 9), 9);
    // The probe succeeds, the only debit fails.
    fleet.shared.fail_after(1, StoreFault::Unreadable);
    block_on(fleet.nodes[0].maintain());
    assert_eq!(fleet.nodes[0].breaker(), tollgate::BreakerState::Closed);
}

/// A local decision is recorded before the breaker closes, or not made.
#[test]
fn no_local_admission_after_the_breaker_closed() {
    let (fleet, limit) = (Fleet::of(1), Limit::fixed_window(Quota::per_minute(1_000_000)).unwrap());
    for _ in 0..300 {
        fleet.lose();
        fleet.admitted(0, &limit, 5);
        let is_done = AtomicBool::new(false);
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    while !is_done.load(Ordering::Relaxed) {
                        fleet.admitted(0, &limit, 1);
                    }
                });
            }
            fleet.restore();
            is_done.store(true, Ordering::Relaxed);
        });
        let calls = fleet.shared.calls();
        block_on(fleet.nodes[0].maintain());
        assert_eq!(fleet.shared.calls(), calls, "the ledger is not empty");
    }
}
