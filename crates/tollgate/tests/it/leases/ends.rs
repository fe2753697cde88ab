//! What ends leases: clocks and events.

use std::time::Duration;

use tollgate::lease::{LeaseOutcome, LeaseTable, LeaseTime};
use tollgate::{LeaseSize, Subject};

use super::{Node, at, limit, plan};

#[test]
fn lease_ends_when_either_clock_says_so() {
    let (limit, subject) = (limit(), Subject::of(["k"]));
    let plan = plan(&subject, &limit, 1);
    let is_live_at = |now| {
        let mut node = Node::new();
        assert_eq!(node.lease(&plan), 100);
        node.now = now;
        let is_live = node.decided(&plan).is_some();
        let dropped = node.table.stats(node.now).dropped;
        assert_eq!(dropped, if is_live { 0 } else { 99 });
        is_live
    };
    // The first lease has a quarter of the hold of one second.
    assert!(is_live_at(at(0, 0)) && is_live_at(at(249, 249)));
    assert!(!is_live_at(at(250, 250)));
    assert!(!is_live_at(at(250, 0)), "the monotonic clock");
    assert!(!is_live_at(at(0, 250)), "a suspended machine");
    let mut node = Node::new();
    let _ = node.lease(&plan);
    node.now = LeaseTime::new(Duration::from_millis(1), Duration::from_secs(999_999));
    assert!(node.decided(&plan).is_none(), "a wall clock that was set back");
}

/// A busy key spends its leases soon. One that does not needs more time.
#[test]
fn leases_are_longer_after_one_that_ended_unspent() {
    let (limit, subject) = (limit(), Subject::of(["k"]));
    let plan = plan(&subject, &limit, 1);
    let mut node = Node::new();
    let (mut now, mut holds) = (0, Vec::new());
    for _ in 0..4 {
        // Panics if a lease pays.
        let request = node.request(&plan);
        let hold = request.wanted().hold();
        holds.push(hold.as_millis());
        let _ = node.finish(&plan, request);
        // A thousandth early, for a slow clock.
        let end = now + u64::try_from(hold.as_millis()).unwrap() * 999 / 1000;
        node.now = at(end - 1, end - 1);
        assert!(node.decided(&plan).is_some());
        now = end + 1;
        node.now = at(now, now);
    }
    assert_eq!(holds, [250, 500, 1000, 1000]);
}

/// Threads read the clocks before they wait for the lease, so readings arrive in any order.
#[test]
fn earlier_reading_of_another_thread_neither_ends_leases_nor_forgets_the_demand() {
    let (limit, subject) = (limit().with_lease(LeaseSize::Auto), Subject::of(["k"]));
    let plan = plan(&subject, &limit, 1);
    let mut node = Node::new();
    let earlier = at(999, 999);
    node.now = at(1000, 1000);
    let granted = node.lease(&plan);
    assert_eq!(granted, 2, "an eighth of 16");
    node.now = earlier;
    assert_eq!(node.table.stats(node.now).held, 1, "a scrape");
    assert!(node.decided(&plan).is_some());
    assert_eq!(node.table.stats(node.now).dropped, 0);
    // A request that was not sent has begun a pause of 250 ms.
    node.now = at(1300, 1300);
    let amounts = node.request(&plan).wanted().amounts().to_vec();
    assert_eq!(amounts, [18 * 130 / 1024], "of 18 decisions in this period");
}

#[test]
fn events_end_leases_that_are_held_or_requested() {
    let (limit, subject, other) = (limit(), Subject::of(["k"]), Subject::of(["other"]));
    let (plan, other) = (plan(&subject, &limit, 1), plan(&other, &limit, 1));
    let events: [fn(&LeaseTable); 3] = [
        |table| table.end_subject(":k"),
        LeaseTable::end_all,
        |table| {
            table.disable();
            table.enable();
        },
    ];
    for (number, end) in events.into_iter().enumerate() {
        let node = Node::new();
        let _ = (node.lease(&plan), node.lease(&other));
        assert!(node.decided(&plan).is_some());
        end(&node.table);
        let request = node.request(&plan);
        assert_eq!(node.decided(&other).is_some(), number == 0, "other subjects");
        end(&node.table);
        assert!(node.finish(&plan, request) > 0);
        assert!(node.decided(&plan).is_none(), "granted before the event");
    }
    let node = Node::new();
    let request = node.request(&plan);
    node.table.disable();
    let _ = node.finish(&plan, request);
    assert!(matches!(node.spend(&plan), LeaseOutcome::NotLeased), "without a subscription");
}
