//! Debits that surely did not run stay in the outage ledger; those that may have run are never sent again.

use std::pin::pin;
use std::task::{Context, Waker};

use tollgate::{BreakerState, Permit, PermitId};
use tollgate_testkit::faulty_store::StoreFault;

use super::*;

/// Polls a future once, and drops it.
fn cancel(future: impl Future) {
    let mut future = pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    assert!(future.as_mut().poll(&mut context).is_pending());
}

/// Takes one slot under each of these permits. Returns the last permit.
fn hold(fleet: &Fleet, limit: &Limit, permits: u128) -> Option<Permit> {
    let (subject, mut last) = (Subject::of(["k"]), None);
    for permit in 1..=permits {
        let plan = one(&subject, limit).with_permit(PermitId::from_u128(permit).unwrap());
        last = Permit::of(&plan, &take(&fleet.nodes[0], &plan));
        assert!(last.is_some());
    }
    last
}

#[test]
fn outage_with_little_traffic_is_debited() {
    for limit in every_algorithm(90) {
        let fleet = Fleet::of(1);
        assert_eq!(fleet.admitted(0, &limit, 4), 4);
        fleet.lose();
        // Too few failures to open the breaker.
        for _ in 0..4 {
            assert_eq!(fleet.admitted(0, &limit, 1), 1);
            block_on(fleet.nodes[0].maintain());
        }
        assert_eq!(fleet.nodes[0].breaker(), BreakerState::Closed);
        fleet.restore();
        assert_eq!(fleet.counted(&limit), 8, "{limit:?}");
    }
}

#[test]
fn lost_store_gets_no_debit_before_a_probe_succeeds() {
    for limit in every_algorithm(90) {
        let fleet = Fleet::of(1);
        // Every call times out, and has not run.
        fleet.shared.set(StoreFault::RequestLost);
        assert_eq!(fleet.admitted(0, &limit, 3), 3);
        let calls = fleet.shared.calls();
        (0..3).for_each(|_| block_on(fleet.nodes[0].maintain()));
        assert_eq!(fleet.shared.calls() - calls, 3, "one probe each: {limit:?}");
        fleet.restore();
        assert_eq!(fleet.counted(&limit), 3, "{limit:?}");
    }
}

#[test]
fn debits_that_did_not_run_are_kept() {
    for fault in [StoreFault::Unreachable, StoreFault::Overloaded] {
        for limit in every_algorithm(90) {
            let fleet = Fleet::of(1);
            fleet.lose();
            assert_eq!(fleet.admitted(0, &limit, 20), 20);
            // The probe succeeds.
            fleet.shared.fail_after(1, fault);
            block_on(fleet.nodes[0].maintain());
            assert_eq!(fleet.counted(&limit), 0);
            assert_eq!(fleet.admitted(0, &limit, 5), 5, "recorded with the kept ones");
            fleet.restore();
            assert_eq!(fleet.counted(&limit), 25, "{fault:?} {limit:?}");
        }
    }
}

#[test]
fn kept_debits_refill_at_the_rate_of_the_limit() {
    let fleet = Fleet::of(1);
    let limit = Limit::token_bucket(Quota::per_minute(60).burst(90)).unwrap();
    fleet.lose();
    assert_eq!(fleet.admitted(0, &limit, 20), 20);
    for _ in 0..100 {
        fleet.shared.fail_after(1, StoreFault::Unreachable);
        fleet.clock.advance(Duration::from_millis(150));
        block_on(fleet.nodes[0].maintain());
    }
    fleet.restore();
    assert_eq!(fleet.counted(&limit), 5, "fifteen seconds refill fifteen tokens");
}

#[test]
fn debit_that_may_have_run_is_not_sent_again() {
    for limit in every_algorithm(90) {
        let fleet = Fleet::of(1);
        fleet.lose();
        assert_eq!(fleet.admitted(0, &limit, 20), 20);
        fleet.shared.fail_after(1, StoreFault::ReplyLost);
        block_on(fleet.nodes[0].maintain());
        fleet.restore();
        assert_eq!(fleet.counted(&limit), 20, "{limit:?}");
    }
}

#[test]
fn cancelled_recovery_keeps_what_was_not_sent() {
    let (fleet, limit) = (Fleet::of(1), Limit::concurrency(900, Duration::from_secs(60)).unwrap());
    fleet.lose();
    let _ = hold(&fleet, &limit, 600);
    // The probe succeeds. The first 512 takes run, and their replies are late.
    fleet.shared.fail_after(1, StoreFault::Suspended);
    cancel(fleet.nodes[0].maintain());
    assert_eq!(fleet.counted(&limit), 512);
    fleet.restore();
    assert_eq!(fleet.counted(&limit), 600);
}

/// Without `maintain` a request recovers the store, and its caller may drop it.
#[test]
fn cancelled_request_keeps_what_was_not_sent() {
    let (fleet, limit) = (Fleet::of(1), Limit::concurrency(900, Duration::from_secs(60)).unwrap());
    fleet.lose();
    let _ = hold(&fleet, &limit, 600);
    fleet.wait(30);
    fleet.shared.fail_after(1, StoreFault::Suspended);
    let (subject, other) = (Subject::of(["other"]), Limit::block());
    cancel(fleet.nodes[0].peek(&one(&subject, &other)));
    assert_eq!(fleet.counted(&limit), 512);
    fleet.restore();
    assert_eq!(fleet.counted(&limit), 600);
}

#[test]
fn slot_released_during_a_replay_does_not_return() {
    let (fleet, limit) = (Fleet::of(1), Limit::concurrency(900, Duration::from_secs(60)).unwrap());
    let node = &fleet.nodes[0];
    fleet.lose();
    let last = hold(&fleet, &limit, 600).unwrap();
    fleet.shared.fail_after(1, StoreFault::Suspended);
    let mut recovery = Box::pin(node.maintain());
    let mut context = Context::from_waker(Waker::noop());
    assert!(recovery.as_mut().poll(&mut context).is_pending());
    // Its take is not sent yet.
    assert!(block_on(node.release(&last)).unwrap());
    drop(recovery);
    fleet.restore();
    assert_eq!(fleet.counted(&limit), 599);
}

#[test]
fn key_reset_during_a_replay_stays_reset() {
    let (fleet, limit) = (Fleet::of(1), Limit::concurrency(900, Duration::from_secs(60)).unwrap());
    let (node, subject) = (&fleet.nodes[0], Subject::of(["k"]));
    fleet.lose();
    let _ = hold(&fleet, &limit, 600);
    // The probe and one take succeed, so that the next replay is late and closes the breaker first.
    fleet.shared.fail_after(2, StoreFault::Unreachable);
    block_on(node.maintain());
    fleet.wait(1);
    fleet.shared.fail_after(1, StoreFault::Suspended);
    let mut recovery = Box::pin(node.maintain());
    let mut context = Context::from_waker(Waker::noop());
    assert!(recovery.as_mut().poll(&mut context).is_pending());
    assert_eq!(node.breaker(), BreakerState::Closed);
    fleet.shared.set(StoreFault::None);
    block_on(node.reset(&Key::new(&subject, &limit))).unwrap();
    drop(recovery);
    fleet.restore();
    assert_eq!((fleet.counted(&limit), node.keys_to_replay()), (0, 0));
}

#[test]
fn cancelled_recovery_drops_what_was_sent() {
    for limit in every_algorithm(90) {
        let fleet = Fleet::of(1);
        fleet.lose();
        assert_eq!(fleet.admitted(0, &limit, 20), 20);
        fleet.shared.fail_after(1, StoreFault::Suspended);
        cancel(fleet.nodes[0].maintain());
        fleet.restore();
        assert_eq!(fleet.counted(&limit), 20, "{limit:?}");
    }
}

#[test]
fn recovery_cancelled_at_the_probe_keeps_everything() {
    for limit in every_algorithm(90) {
        let fleet = Fleet::of(1);
        fleet.lose();
        assert_eq!(fleet.admitted(0, &limit, 20), 20);
        fleet.shared.set(StoreFault::Suspended);
        cancel(fleet.nodes[0].maintain());
        assert_eq!(fleet.nodes[0].keys_to_replay(), 1);
        fleet.restore();
        assert_eq!((fleet.counted(&limit), fleet.nodes[0].keys_to_replay()), (20, 0), "{limit:?}");
    }
}

/// A pause may be sent again: it ends at the same time.
#[test]
fn pause_is_kept_until_it_succeeds() {
    let (limit, subject) =
        (Limit::fixed_window(Quota::per_minute(90)).unwrap(), Subject::of(["k"]));
    for fault in [StoreFault::Unreachable, StoreFault::RequestLost, StoreFault::ReplyLost] {
        let fleet = Fleet::of(2);
        fleet.lose();
        let key = Key::new(&subject, &limit);
        block_on(fleet.nodes[0].pause(&key, Duration::from_secs(40))).unwrap();
        fleet.shared.fail_after(1, fault);
        block_on(fleet.nodes[0].maintain());
        fleet.restore();
        assert_eq!(fleet.admitted(1, &limit, 1), 0, "{fault:?}");
    }
}

/// One of several servers is lost: the others are used again although debits of its keys stay.
#[test]
fn debits_that_keep_failing_do_not_keep_the_breaker_open() {
    let (fleet, limit) = (Fleet::of(1), Limit::fixed_window(Quota::per_minute(90)).unwrap());
    let subjects = ["a", "b", "c"].map(|name| Subject::of([name]));
    fleet.lose();
    for subject in [&subjects[0], &subjects[1], &subjects[2], &subjects[0], &subjects[1]] {
        assert!(take(&fleet.nodes[0], &one(subject, &limit)).is_allowed());
    }
    let mut rounds = 0;
    while fleet.nodes[0].breaker() != BreakerState::Closed {
        // The probe and one debit succeed.
        fleet.shared.fail_after(2, StoreFault::Unreachable);
        block_on(fleet.nodes[0].maintain());
        fleet.wait(1);
        rounds += 1;
        assert!(rounds <= 2, "the breaker stays open");
    }
    fleet.restore();
    let counted =
        subjects.each_ref().map(|subject| fleet.shared.store().stats(&Key::new(subject, &limit)));
    assert_eq!(counted.map(|status| status.count()), [2, 2, 1]);
}
