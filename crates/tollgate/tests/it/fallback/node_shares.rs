//! Decisions of a node without the shared store.

use tollgate::{Source, Verdict};

use super::*;

#[test]
fn shares_of_all_nodes_add_up_to_the_limit() {
    for limit in every_algorithm(90) {
        let fleet = Fleet::of(3);
        fleet.lose();
        for node in 0..3 {
            assert_eq!(fleet.admitted(node, &limit, 100), 30, "{limit:?}");
        }
    }
}

#[test]
fn indivisible_limit_rounds_each_share_up() {
    let (fleet, limit) = (Fleet::of(4), Limit::sliding_window(Quota::per_minute(5)).unwrap());
    fleet.lose();
    let admitted: usize = (0..4).map(|node| fleet.admitted(node, &limit, 9)).sum();
    assert_eq!(admitted, 8);
}

#[test]
fn repeated_outages_share_one_local_count() {
    let (fleet, limit) = (Fleet::of(3), Limit::sliding_window(Quota::per_minute(90)).unwrap());
    let mut admitted = 0;
    for _ in 0..10 {
        fleet.lose();
        // Enough calls to open the breaker.
        admitted += fleet.admitted(0, &limit, 10);
        fleet.restore();
        fleet.wait(1);
    }
    assert_eq!(admitted, 30);
}

#[test]
fn share_follows_node_count_and_keeps_usage() {
    let (fleet, limit) = (Fleet::of(1), Limit::fixed_window(Quota::per_minute(90)).unwrap());
    fleet.lose();
    assert_eq!(fleet.admitted(0, &limit, 40), 40);
    fleet.nodes[0].set_nodes(NonZeroU32::new(3).unwrap());
    assert_eq!(fleet.admitted(0, &limit, 40), 0);
    fleet.nodes[0].set_nodes(NonZeroU32::new(2).unwrap());
    assert_eq!(fleet.admitted(0, &limit, 40), 5);
}

#[test]
fn degraded_decision_is_marked_with_source_and_share() {
    let (fleet, limit) = (Fleet::of(3), Limit::fixed_window(Quota::per_minute(10)).unwrap());
    let subject = Subject::of(["k"]);
    let plan = one(&subject, &limit);
    let decision = take(&fleet.nodes[0], &plan);
    assert_eq!((decision.source(), decision.loss()), (Source::Store, None));
    fleet.lose();
    let decision = take(&fleet.nodes[0], &plan);
    assert_eq!((decision.source(), decision.loss()), (Source::Local, Some(OnStoreLoss::Local)));
    let status = decision.statuses()[0];
    assert_eq!((status.limit().count(), status.share()), (10, Some(4)));
    assert_eq!((status.count(), status.remaining()), (1, 3));
}

#[test]
fn allow_is_not_counted_and_deny_takes_nothing() {
    let (fleet, limit) = (Fleet::of(2), Limit::fixed_window(Quota::per_minute(2)).unwrap());
    let subject = Subject::of(["k"]);
    fleet.lose();
    let plan = on_loss(&subject, &limit, OnStoreLoss::Allow);
    for _ in 0..9 {
        let decision = take(&fleet.nodes[0], &plan);
        assert!(decision.is_allowed() && decision.loss() == Some(OnStoreLoss::Allow));
    }
    let plan = on_loss(&subject, &limit, OnStoreLoss::Deny);
    let decision = take(&fleet.nodes[1], &plan);
    assert_eq!(decision.verdict(), Verdict::Deny { retry_after: Duration::from_secs(1) });
    assert_eq!(decision.loss(), Some(OnStoreLoss::Deny));
    fleet.restore();
    assert_eq!(fleet.counted(&limit), 2, "admissions are replayed up to the capacity");
}

#[test]
fn degraded_plan_is_all_or_nothing() {
    let fleet = Fleet::of(1);
    let small = Limit::fixed_window(Quota::per_minute(1)).unwrap().in_rule("small").unwrap();
    let large = Limit::fixed_window(Quota::per_minute(9)).unwrap().in_rule("large").unwrap();
    let subject = Subject::of(["k"]);
    let distribution = Distribution { on_store_loss: OnStoreLoss::Deny, ..Distribution::default() };
    let [of_small, of_large] =
        [&small, &large].map(|limit| Take::new(Key::new(&subject, limit), 1));
    let both = Plan::new([of_small, of_large]).unwrap();
    let strict = Plan::new([of_large, of_small.with_distribution(distribution)]).unwrap();
    fleet.lose();
    assert!(!take(&fleet.nodes[0], &strict).is_allowed());
    let allowed = [(); 3].map(|()| take(&fleet.nodes[0], &both).is_allowed());
    assert_eq!(allowed, [true, false, false]);
    let peeked = block_on(fleet.nodes[0].peek(&one(&subject, &large))).unwrap();
    assert_eq!(peeked.remaining(), Some(8));
    fleet.restore();
    assert_eq!((fleet.counted(&small), fleet.counted(&large)), (1, 1));
}

#[test]
fn shadow_limits_never_refuse_in_degraded_mode() {
    let (fleet, limit) = (Fleet::of(1), Limit::fixed_window(Quota::per_minute(1)).unwrap());
    let subject = Subject::of(["k"]);
    for on_store_loss in [OnStoreLoss::Local, OnStoreLoss::Allow, OnStoreLoss::Deny] {
        let distribution = Distribution { on_store_loss, ..Distribution::default() };
        let shadow =
            Take::new(Key::new(&subject, &limit), 1).with_distribution(distribution).shadow(1);
        let plan = Plan::new([shadow]).unwrap();
        fleet.lose();
        (0..3).for_each(|_| assert!(take(&fleet.nodes[0], &plan).is_allowed()));
    }
}
