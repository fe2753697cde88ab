//! Which plans are leased: those in demand, and a bounded number of them.

use std::num::NonZeroU32;
use std::time::Duration;

use tollgate::lease::{LeaseOutcome, LeaseTable};
use tollgate::{LeaseSize, Limit, ManualClock, MemoryStore, Quota, Subject};

use super::{Node, at, limit, plan};

/// Returns how many of 400 plans lease.
fn lease_many(node: &Node, prefix: &str) -> u64 {
    let (limit, mut leased) = (limit(), 0);
    for number in 0..400 {
        let subject = Subject::of([format!("{prefix}{number}")]);
        let plan = plan(&subject, &limit, 1);
        for _ in 0..16 {
            if let LeaseOutcome::Request(request) = node.spend(&plan) {
                leased += u64::from(node.finish(&plan, request) > 0);
            }
        }
    }
    leased
}

#[test]
fn number_of_leased_plans_is_bounded_and_idle_plans_make_room() {
    let mut node = Node::new();
    node.table = LeaseTable::new(16);
    node.table.enable();
    let first = lease_many(&node, "a");
    assert!((8..=16).contains(&first), "{first} leased plans");
    assert_eq!(node.table.stats(node.now).held, first);
    assert_eq!(lease_many(&node, "a"), 0, "no space");
    node.now = at(5000, 5000);
    let later = lease_many(&node, "b");
    assert!((8..=16).contains(&later), "{later} leased plans");
}

/// A search looks at all plans of a shard, so it must not happen for every decision.
#[test]
fn full_table_is_searched_for_idle_plans_ten_times_a_second() {
    let mut node = Node::new();
    node.table = LeaseTable::new(16);
    node.table.enable();
    assert!(lease_many(&node, "a") > 0);
    let mut leased_at = |time| {
        node.now = at(time, time);
        lease_many(&node, "b")
    };
    assert_eq!(leased_at(4950), 0, "nothing is idle");
    assert_eq!(leased_at(5049), 0, "searched 99 ms ago");
    assert!(leased_at(5050) > 0);
}

#[test]
fn rare_plans_are_not_leased() {
    for limit in [limit(), limit().with_lease(LeaseSize::Auto)] {
        let subject = Subject::of(["k"]);
        let plan = plan(&subject, &limit, 1);
        let mut node = Node::new();
        for second in 0..20 {
            node.now = at(second * 1000, second * 1000);
            for _ in 0..15 {
                assert!(matches!(node.spend(&plan), LeaseOutcome::NotLeased));
            }
        }
        assert!(matches!(node.spend(&plan), LeaseOutcome::Request(_)));
    }
}

#[test]
fn earlier_reading_of_another_thread_does_not_hide_demand_before_the_first_lease() {
    let (limit, subject) = (limit(), Subject::of(["k"]));
    let plan = plan(&subject, &limit, 1);
    let mut node = Node::new();
    let mut decisions = 0;
    for now in [at(999, 999), at(1000, 1000)].into_iter().cycle() {
        node.now = now;
        decisions += 1;
        if let LeaseOutcome::Request(_) = node.spend(&plan) {
            break;
        }
        assert!(decisions < 100, "never requested");
    }
    assert!(decisions <= 17, "{decisions}");
}

/// Leases of a fixed size that is far above the demand must not use up the quota.
#[test]
fn fixed_size_above_the_demand_strands_little() {
    let size = LeaseSize::Fixed(NonZeroU32::new(100).unwrap());
    let limit = Limit::fixed_window(Quota::per_hour(100_000)).unwrap().with_lease(size);
    let subject = Subject::of(["k"]);
    let plan = plan(&subject, &limit, 1);
    let mut node = Node::new();
    for tick in 0..20 * 60 {
        node.now = at(tick * 50, tick * 50);
        match node.spend(&plan) {
            LeaseOutcome::Request(request) | LeaseOutcome::Decided(_, Some(request)) => {
                let _ = node.finish(&plan, request);
            }
            LeaseOutcome::Decided(..) | LeaseOutcome::Refused(_) | LeaseOutcome::NotLeased => {}
        }
    }
    let stats = node.table.stats(node.now);
    assert!(stats.decisions > 600, "{stats:?}");
    assert!(stats.dropped < stats.granted / 3, "{stats:?}");
}

/// A bucket gives up what it refills within the hold of a lease, until its deficit covers it.
#[test]
fn key_that_is_busy_for_a_second_uses_its_limit() {
    let limit = Limit::token_bucket(Quota::per_second(1000).burst(2000)).unwrap();
    let limit = limit.with_lease(LeaseSize::Auto);
    let subject = Subject::of(["k"]);
    let plan = plan(&subject, &limit, 1);
    let clock = ManualClock::new();
    let mut node = Node::new();
    node.store = MemoryStore::builder().clock(clock.clone()).build();
    let mut admitted = 0;
    for millisecond in 0..1000 {
        node.now = at(millisecond, millisecond);
        for _ in 0..8 {
            let is_admitted = match node.spend(&plan) {
                LeaseOutcome::Decided(_, None) => true,
                LeaseOutcome::Decided(_, Some(request)) => {
                    let _ = node.finish(&plan, request);
                    true
                }
                LeaseOutcome::Request(request) => {
                    let reply = node.store.lease(&plan, request.wanted()).unwrap();
                    let is_allowed = reply.decision(&plan, request.wanted()).is_allowed();
                    request.finish(Some(&reply));
                    is_allowed
                }
                LeaseOutcome::NotLeased => node.store.take(&plan).is_allowed(),
                LeaseOutcome::Refused(_) => false,
            };
            admitted += u64::from(is_admitted);
        }
        clock.advance(Duration::from_millis(1));
    }
    assert!((2900..=3000).contains(&admitted), "{admitted} of 3000");
}
