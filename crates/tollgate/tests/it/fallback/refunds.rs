//! Refunds around an outage: credited at most once, and never where the take was not counted twice.

use tollgate_testkit::faulty_store::StoreFault;

use super::*;

fn refund<'a>(fleet: &Fleet, subject: &'a Subject, limit: &'a Limit, cost: u64) -> Decision<'a> {
    let plan = Plan::new([Take::new(Key::new(subject, limit), cost)]).unwrap();
    block_on(fleet.nodes[0].refund(&plan)).unwrap()
}

/// The shared store counts six takes, and the ledger four. The breaker is closed.
fn six_shared_and_four_local(limit: &Limit) -> Fleet {
    let fleet = Fleet::of(1);
    assert_eq!(fleet.admitted(0, limit, 6), 6);
    fleet.lose();
    assert_eq!(fleet.admitted(0, limit, 4), 4);
    fleet
}

#[test]
fn refund_with_lost_reply_is_credited_once() {
    for (fault, left) in [(StoreFault::ReplyLost, 3), (StoreFault::RequestLost, 6)] {
        for limit in every_algorithm(90) {
            let (fleet, subject) = (six_shared_and_four_local(&limit), Subject::of(["k"]));
            fleet.shared.set(fault);
            let decision = refund(&fleet, &subject, &limit, 3);
            assert!(decision.is_allowed() && decision.is_degraded());
            assert_eq!(decision.remaining(), Some(90 - 4), "not credited in the node: {limit:?}");
            assert_eq!(fleet.counted(&limit), left);
            fleet.restore();
            assert_eq!(fleet.counted(&limit), left + 4, "{fault:?} {limit:?}");
        }
    }
}

#[test]
fn refund_that_did_not_run_is_credited_in_the_ledger() {
    for fault in [StoreFault::Unreachable, StoreFault::Unreadable] {
        for limit in every_algorithm(90) {
            let (fleet, subject) = (six_shared_and_four_local(&limit), Subject::of(["k"]));
            fleet.shared.set(fault);
            assert_eq!(refund(&fleet, &subject, &limit, 3).remaining(), Some(90 - 1));
            fleet.restore();
            assert_eq!(fleet.counted(&limit), 6 + 4 - 3, "{fault:?} {limit:?}");
        }
    }
}

/// The ledger has nothing to reduce: the quota stays used, and too few requests pass, never too many.
#[test]
fn refund_in_an_outage_of_a_shared_take_is_lost() {
    for limit in every_algorithm(90) {
        let (fleet, subject) = (Fleet::of(1), Subject::of(["k"]));
        assert_eq!(fleet.admitted(0, &limit, 6), 6);
        fleet.lose();
        assert_eq!(refund(&fleet, &subject, &limit, 3).remaining(), Some(90), "never above full");
        fleet.restore();
        assert_eq!(fleet.counted(&limit), 6, "{limit:?}");
    }
}

#[test]
fn refund_of_a_replayed_take_is_credited_in_the_shared_store() {
    for limit in every_algorithm(90) {
        let (fleet, subject) = (six_shared_and_four_local(&limit), Subject::of(["k"]));
        fleet.restore();
        assert_eq!(refund(&fleet, &subject, &limit, 3).remaining(), Some(90 - 7));
        fleet.restore();
        assert_eq!(fleet.counted(&limit), 6 + 4 - 3, "{limit:?}");
    }
}

/// The account has left the ledger when the refund arrives, so the refund is lost.
#[test]
fn refund_during_a_replay_is_not_credited_twice() {
    for limit in every_algorithm(90) {
        let (fleet, subject) = (Fleet::of(1), Subject::of(["k"]));
        fleet.lose();
        assert_eq!(fleet.admitted(0, &limit, 5), 5);
        fleet.shared.fail_after(1, StoreFault::Suspended);
        let mut maintain = std::pin::pin!(fleet.nodes[0].maintain());
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        assert!(maintain.as_mut().poll(&mut context).is_pending());
        assert_eq!(refund(&fleet, &subject, &limit, 3).remaining(), Some(90 - 2));
        fleet.shared.set(StoreFault::None);
        block_on(maintain);
        assert_eq!(fleet.counted(&limit), 5, "{limit:?}");
    }
}
