//! What a store knows when it is back.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use tollgate::StoreEvent;
use tollgate_testkit::faulty_store::StoreFault;

use super::*;

#[test]
fn it_knows_what_was_spent_without_it() {
    for limit in every_kind(90) {
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
fn it_is_told_once() {
    for limit in every_kind(90) {
        let fleet = Fleet::of(1);
        fleet.lose();
        assert_eq!(fleet.admitted(0, &limit, 20), 20);
        (0..5).for_each(|_| fleet.restore());
        assert_eq!(fleet.counted(&limit), 20, "{limit:?}");
    }
}

#[test]
fn what_no_longer_matters_is_not_told() {
    for limit in every_kind(90) {
        let fleet = Fleet::of(1);
        fleet.lose();
        assert_eq!(fleet.admitted(0, &limit, 20), 20);
        fleet.wait(120);
        let before = fleet.shared.calls();
        fleet.restore();
        assert_eq!(fleet.shared.calls() - before, 1, "only whether it answers: {limit:?}");
        assert_eq!(fleet.counted(&limit), 0);
    }
}

#[test]
fn what_was_spent_long_ago_returns_as_if_it_had_been_there() {
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
    assert_eq!(fleet.admitted(0, &limit, 9), 6, "those of a minute ago");
    fleet.wait(30);
    assert_eq!(fleet.admitted(0, &limit, 9), 4);
}

#[test]
fn whose_answer_was_lost_is_counted_twice_at_most() {
    let (fleet, limit) = (Fleet::of(1), Limit::fixed_window(Quota::per_minute(90)).unwrap());
    fleet.shared.set(StoreFault::ReplyLost);
    assert_eq!(fleet.admitted(0, &limit, 20), 20);
    fleet.restore();
    assert_eq!(fleet.counted(&limit), 20 + 5, "five were asked before it was lost");
}

#[test]
fn a_failure_between_answers_is_told_too() {
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
fn what_is_given_back_without_it_is_not_owed() {
    for limit in every_kind(90) {
        let (fleet, subject) = (Fleet::of(1), Subject::of(["k"]));
        fleet.lose();
        assert_eq!(fleet.admitted(0, &limit, 20), 20);
        let back = Plan::new([Take::new(Key::new(&subject, &limit), 15)]).unwrap();
        let decision = block_on(fleet.nodes[0].refund(&back)).unwrap();
        assert_eq!(decision.remaining(), Some(85), "{limit:?}");
        fleet.restore();
        assert_eq!(fleet.counted(&limit), 5, "{limit:?}");
    }
}

#[test]
fn what_is_debited_without_it_is_owed() {
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
fn a_pause_holds_here_at_once_and_everywhere_when_it_is_back() {
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

#[test]
fn a_store_that_fails_while_it_is_told_stays_lost_and_hears_the_rest_later() {
    let (mut fleet, limit) = (Fleet::of(1), Limit::fixed_window(Quota::per_minute(9)).unwrap());
    let outage = Arc::new(Mutex::new(None));
    let heard = Arc::clone(&outage);
    let builder = FallbackStore::builder(Arc::clone(&fleet.shared)).clock(fleet.clock.clone());
    let node = builder.on_event(move |event| {
        if let StoreEvent::Restored(outage) = event {
            *heard.lock().unwrap() = Some(outage);
        }
    });
    fleet.nodes = vec![node.build()];
    let subjects: Vec<Subject> = (0..300).map(|number| Subject::of([number.to_string()])).collect();
    fleet.lose();
    subjects
        .iter()
        .for_each(|subject| assert!(take(&fleet.nodes[0], &one(subject, &limit)).is_allowed()));
    // The probe and the first of them are heard.
    fleet.shared.fail_after(100, StoreFault::Unreachable);
    block_on(fleet.nodes[0].maintain());
    assert_eq!(fleet.nodes[0].breaker(), tollgate::BreakerState::Open);
    fleet.restore();
    let known =
        |subject: &&Subject| fleet.shared.store().stats(&Key::new(subject, &limit)).count() == 1;
    let known = subjects.iter().filter(known).count();
    // Nothing is told twice, so what was under way when it failed is lost, and said to be.
    assert!((1..300).contains(&known), "{known}");
    let outage = outage.lock().unwrap().unwrap();
    assert_eq!(
        (outage.keys_replayed + outage.keys_dropped, outage.keys_replayed),
        (300, known as u64),
        "{outage:?}"
    );
}

#[test]
fn a_key_that_cannot_be_read_keeps_no_store_lost() {
    let (fleet, limit) = (Fleet::of(1), Limit::fixed_window(Quota::per_minute(9)).unwrap());
    fleet.lose();
    assert_eq!(fleet.admitted(0, &limit, 9), 9);
    // The probe is answered, and the one debit is not.
    fleet.shared.fail_after(1, StoreFault::Unreadable);
    block_on(fleet.nodes[0].maintain());
    assert_eq!(fleet.nodes[0].breaker(), tollgate::BreakerState::Closed);
}

/// Whoever finds the store lost writes down what it spends, unless the store decides again by then.
#[test]
fn nothing_is_spent_alone_after_the_store_decides_again() {
    let (fleet, limit) = (Fleet::of(1), Limit::fixed_window(Quota::per_minute(1_000_000)).unwrap());
    for _ in 0..300 {
        fleet.lose();
        fleet.admitted(0, &limit, 5);
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    while !is_over.load(Ordering::Relaxed) {
                        fleet.admitted(0, &limit, 1);
                    }
                });
            }
            fleet.restore();
            is_over.store(true, Ordering::Relaxed);
        });
        let asked = fleet.shared.calls();
        block_on(fleet.nodes[0].maintain());
        assert_eq!(fleet.shared.calls(), asked, "there is something left to tell");
    }
}
