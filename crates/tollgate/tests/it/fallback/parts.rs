//! Plans of which a node counts a part itself.

use tollgate::{Distributed, Source, Status};

use super::*;

fn limits() -> [Limit; 2] {
    let limit = |rule, count| Limit::fixed_window(Quota::per_minute(count)).unwrap().in_rule(rule);
    [limit("near", 5).unwrap(), limit("far", 3).unwrap()]
}

fn shared<'a>(subject: &'a Subject, limit: &'a Limit, distributed: Distributed) -> Take<'a> {
    let distribution = Distribution { distributed, ..Distribution::default() };
    Take::new(Key::new(subject, limit), 1).with_distribution(distribution)
}

/// A take that is counted here, and one that is counted there.
fn mixed<'a>(subject: &'a Subject, [near, far]: &'a [Limit; 2], reach: Distributed) -> Plan<'a> {
    Plan::new([shared(subject, far, Distributed::On), shared(subject, near, reach)]).unwrap()
}

fn left(node: &impl Store, plan: &Plan<'_>) -> [u64; 2] {
    let decision = block_on(node.peek(plan)).unwrap();
    [decision.statuses()[0].remaining(), decision.statuses()[1].remaining()]
}

#[test]
fn they_are_all_or_nothing_together() {
    for reach in [Distributed::Off, Distributed::Shadow] {
        let (fleet, limits, subject) = (Fleet::of(2), limits(), Subject::of(["k"]));
        let plan = mixed(&subject, &limits, reach);
        // Counted here by each, counted there by both.
        let allowed: Vec<bool> =
            (0..8).map(|turn| take(&fleet.nodes[turn % 2], &plan).is_allowed()).collect();
        assert_eq!(allowed, [true, true, true, false, false, false, false, false]);
        assert_eq!(
            [0, 1].map(|node| left(&fleet.nodes[node], &plan)),
            [[0, 3], [0, 4]],
            "{reach:?}"
        );
    }
}

#[test]
fn what_is_refused_here_takes_nothing_there() {
    let (fleet, subject) = (Fleet::of(1), Subject::of(["k"]));
    let [near, far] = limits();
    let swapped = [far.in_rule("near").unwrap(), near.in_rule("far").unwrap()];
    let plan = mixed(&subject, &swapped, Distributed::Off);
    let allowed = (0..8).filter(|_| take(&fleet.nodes[0], &plan).is_allowed()).count();
    assert_eq!((allowed, left(&fleet.nodes[0], &plan)), (3, [2, 0]));
}

#[test]
fn shadow_groups_that_would_refuse_are_not_given_back_what_they_never_took() {
    let (fleet, limits, subject) = (Fleet::of(1), limits(), Subject::of(["k"]));
    let [near, far] = &limits;
    let tiny = Limit::fixed_window(Quota::per_minute(1)).unwrap().in_rule("tiny").unwrap();
    let watched = shared(&subject, &tiny, Distributed::Off).shadow(1);
    let takes =
        [shared(&subject, far, Distributed::On), shared(&subject, near, Distributed::Off), watched];
    let plan = Plan::new(takes).unwrap();
    (0..9).for_each(|_| drop(take(&fleet.nodes[0], &plan)));
    let decision = block_on(fleet.nodes[0].peek(&plan)).unwrap();
    let left: Vec<u64> = decision.statuses().iter().map(Status::remaining).collect();
    assert_eq!(left, [0, 2, 0]);
}

#[test]
fn the_store_is_told_of_what_is_only_tried_there_and_differs_where_it_does() {
    let (fleet, [near, _], subject) = (Fleet::of(2), limits(), Subject::of(["k"]));
    let plan = Plan::new([shared(&subject, &near, Distributed::Shadow)]).unwrap();
    let mut differ = 0;
    for turn in 0..10 {
        let decision = take(&fleet.nodes[turn % 2], &plan);
        assert!(decision.is_allowed() && decision.source() == Source::Local);
        differ += usize::from(!decision.shadow_decision().unwrap().is_allowed());
    }
    assert_eq!(differ, 5, "both together had ten of five");
    fleet.lose();
    let decision = take(&fleet.nodes[0], &plan);
    assert!(decision.shadow_decision().is_none() && !decision.is_degraded());
}

#[test]
fn what_is_given_back_is_given_back_where_it_was_taken() {
    let (fleet, limits, subject) = (Fleet::of(1), limits(), Subject::of(["k"]));
    let plan = mixed(&subject, &limits, Distributed::Off);
    assert!(take(&fleet.nodes[0], &plan).is_allowed());
    let decision = block_on(fleet.nodes[0].refund(&plan)).unwrap();
    assert_eq!(decision.statuses().iter().map(Status::remaining).collect::<Vec<_>>(), [3, 5]);
    assert_eq!(left(&fleet.nodes[0], &plan), [3, 5]);
}

#[test]
fn without_the_store_only_its_part_is_degraded() {
    let (fleet, limits, subject) = (Fleet::of(3), limits(), Subject::of(["k"]));
    fleet.lose();
    let plan = mixed(&subject, &limits, Distributed::Off);
    let decision = take(&fleet.nodes[0], &plan);
    assert!(decision.is_allowed() && decision.is_degraded());
    let shares: Vec<Option<u64>> = decision.statuses().iter().map(Status::share).collect();
    assert_eq!(shares, [Some(1), None]);
    assert!(!take(&fleet.nodes[0], &plan).is_allowed());
    assert_eq!(left(&fleet.nodes[0], &plan), [0, 4]);
}

#[test]
fn one_switch_holds_all_back() {
    let (fleet, [near, _], subject) = (Fleet::of(1), limits(), Subject::of(["k"]));
    for (at_most, asked) in [(Distributed::Off, 0), (Distributed::Shadow, 1), (Distributed::On, 1)]
    {
        let builder = FallbackStore::builder(Arc::clone(&fleet.shared)).clock(fleet.clock.clone());
        let node = builder.max_distribution(at_most).build();
        let before = fleet.shared.calls();
        let decision = take(&node, &one(&subject, &near));
        assert_eq!(fleet.shared.calls() - before, asked, "{at_most:?}");
        assert_eq!(decision.source() == Source::Store, at_most == Distributed::On);
    }
}

#[test]
fn what_another_limit_refuses_is_only_looked_at_in_the_store() {
    let (fleet, [near, far], subject) = (Fleet::of(1), limits(), Subject::of(["k"]));
    // Off refuses from the fourth on; the other is only tried.
    let takes =
        [shared(&subject, &far, Distributed::Off), shared(&subject, &near, Distributed::Shadow)];
    let plan = Plan::new(takes).unwrap();
    let allowed = (0..9).filter(|_| take(&fleet.nodes[0], &plan).is_allowed()).count();
    assert_eq!((allowed, left(&fleet.nodes[0], &plan)), (3, [0, 2]));
    assert_eq!(fleet.counted(&near), 3, "what passed nowhere is counted nowhere");
}

#[test]
fn who_refused_is_who_answered() {
    let (fleet, limits, subject) = (Fleet::of(1), limits(), Subject::of(["k"]));
    let plan = mixed(&subject, &limits, Distributed::Off);
    let [_, far] = &limits;
    assert_eq!(take(&fleet.nodes[0], &plan).source(), Source::Store);
    assert_eq!(fleet.admitted(0, far, 9), 2);
    assert_eq!(take(&fleet.nodes[0], &plan).source(), Source::Store);
    let (fleet, swapped) = (
        Fleet::of(1),
        [far.clone().in_rule("near").unwrap(), limits[0].clone().in_rule("far").unwrap()],
    );
    let plan = mixed(&subject, &swapped, Distributed::Off);
    (0..9).for_each(|_| drop(take(&fleet.nodes[0], &plan)));
    let last = take(&fleet.nodes[0], &plan);
    assert!(!last.is_allowed() && last.source() == Source::Local);
}
