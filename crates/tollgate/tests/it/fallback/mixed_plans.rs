//! Plans with takes in this node, in the shared store, and in shadow there.

use tollgate::{Distributed, Source, Status};

use super::*;

fn limits() -> [Limit; 2] {
    let limit = |rule, count| Limit::fixed_window(Quota::per_minute(count)).unwrap().in_rule(rule);
    [limit("local", 5).unwrap(), limit("shared", 3).unwrap()]
}

fn distributed<'a>(subject: &'a Subject, limit: &'a Limit, distributed: Distributed) -> Take<'a> {
    let distribution = Distribution { distributed, ..Distribution::default() };
    Take::new(Key::new(subject, limit), 1).with_distribution(distribution)
}

/// Returns a plan of a take in the shared store, and one distributed as given.
fn mixed<'a>(
    subject: &'a Subject,
    [local, shared]: &'a [Limit; 2],
    local_mode: Distributed,
) -> Plan<'a> {
    Plan::new([
        distributed(subject, shared, Distributed::On),
        distributed(subject, local, local_mode),
    ])
    .unwrap()
}

fn remaining(node: &impl Store, plan: &Plan<'_>) -> [u64; 2] {
    let decision = block_on(node.peek(plan)).unwrap();
    [decision.statuses()[0].remaining(), decision.statuses()[1].remaining()]
}

#[test]
fn mixed_plan_is_all_or_nothing() {
    for mode in [Distributed::Off, Distributed::Shadow] {
        let (fleet, limits, subject) = (Fleet::of(2), limits(), Subject::of(["k"]));
        let plan = mixed(&subject, &limits, mode);
        // The local limit counts per node, the shared limit counts both nodes.
        let allowed: Vec<bool> =
            (0..8).map(|turn| take(&fleet.nodes[turn % 2], &plan).is_allowed()).collect();
        assert_eq!(allowed, [true, true, true, false, false, false, false, false]);
        assert_eq!(
            [0, 1].map(|node| remaining(&fleet.nodes[node], &plan)),
            [[0, 3], [0, 4]],
            "{mode:?}"
        );
    }
}

#[test]
fn local_refusal_takes_nothing_in_the_store() {
    let (fleet, subject) = (Fleet::of(1), Subject::of(["k"]));
    let [local, shared] = limits();
    let swapped = [shared.in_rule("local").unwrap(), local.in_rule("shared").unwrap()];
    let plan = mixed(&subject, &swapped, Distributed::Off);
    let allowed = (0..8).filter(|_| take(&fleet.nodes[0], &plan).is_allowed()).count();
    assert_eq!((allowed, remaining(&fleet.nodes[0], &plan)), (3, [2, 0]));
}

#[test]
fn refused_shadow_group_is_not_refunded() {
    let (fleet, limits, subject) = (Fleet::of(1), limits(), Subject::of(["k"]));
    let [local, shared] = &limits;
    let tiny = Limit::fixed_window(Quota::per_minute(1)).unwrap().in_rule("tiny").unwrap();
    let shadow = distributed(&subject, &tiny, Distributed::Off).shadow(1);
    let takes = [
        distributed(&subject, shared, Distributed::On),
        distributed(&subject, local, Distributed::Off),
        shadow,
    ];
    let plan = Plan::new(takes).unwrap();
    (0..9).for_each(|_| drop(take(&fleet.nodes[0], &plan)));
    let decision = block_on(fleet.nodes[0].peek(&plan)).unwrap();
    let remaining: Vec<u64> = decision.statuses().iter().map(Status::remaining).collect();
    assert_eq!(remaining, [0, 2, 0]);
}

#[test]
fn shadow_takes_reach_the_store_and_may_differ() {
    let (fleet, [local, _], subject) = (Fleet::of(2), limits(), Subject::of(["k"]));
    let plan = Plan::new([distributed(&subject, &local, Distributed::Shadow)]).unwrap();
    let mut differ = 0;
    for turn in 0..10 {
        let decision = take(&fleet.nodes[turn % 2], &plan);
        assert!(decision.is_allowed() && decision.source() == Source::Local);
        differ += usize::from(!decision.shadow_decision().unwrap().is_allowed());
    }
    assert_eq!(differ, 5, "both nodes together take ten of five");
    fleet.lose();
    let decision = take(&fleet.nodes[0], &plan);
    assert!(decision.shadow_decision().is_none() && !decision.is_degraded());
}

#[test]
fn refund_goes_to_the_store_that_took() {
    let (fleet, limits, subject) = (Fleet::of(1), limits(), Subject::of(["k"]));
    let plan = mixed(&subject, &limits, Distributed::Off);
    assert!(take(&fleet.nodes[0], &plan).is_allowed());
    let decision = block_on(fleet.nodes[0].refund(&plan)).unwrap();
    assert_eq!(decision.statuses().iter().map(Status::remaining).collect::<Vec<_>>(), [3, 5]);
    assert_eq!(remaining(&fleet.nodes[0], &plan), [3, 5]);
}

#[test]
fn without_the_store_only_shared_takes_are_degraded() {
    let (fleet, limits, subject) = (Fleet::of(3), limits(), Subject::of(["k"]));
    fleet.lose();
    let plan = mixed(&subject, &limits, Distributed::Off);
    let decision = take(&fleet.nodes[0], &plan);
    assert!(decision.is_allowed() && decision.is_degraded());
    let shares: Vec<Option<u64>> = decision.statuses().iter().map(Status::share).collect();
    assert_eq!(shares, [Some(1), None]);
    assert!(!take(&fleet.nodes[0], &plan).is_allowed());
    assert_eq!(remaining(&fleet.nodes[0], &plan), [0, 4]);
}

#[test]
fn max_distribution_bounds_every_take() {
    let (fleet, [local, _], subject) = (Fleet::of(1), limits(), Subject::of(["k"]));
    for (max, calls) in [(Distributed::Off, 0), (Distributed::Shadow, 1), (Distributed::On, 1)] {
        let builder = FallbackStore::builder(Arc::clone(&fleet.shared)).clock(fleet.clock.clone());
        let node = builder.max_distribution(max).build();
        let before = fleet.shared.calls();
        let decision = take(&node, &one(&subject, &local));
        assert_eq!(fleet.shared.calls() - before, calls, "{max:?}");
        assert_eq!(decision.source() == Source::Store, max == Distributed::On);
    }
}

#[test]
fn refused_plan_only_peeks_in_shadow() {
    let (fleet, [local, shared], subject) = (Fleet::of(1), limits(), Subject::of(["k"]));
    // `off` refuses from the fourth take on; the other take is in shadow.
    let takes = [
        distributed(&subject, &shared, Distributed::Off),
        distributed(&subject, &local, Distributed::Shadow),
    ];
    let plan = Plan::new(takes).unwrap();
    let allowed = (0..9).filter(|_| take(&fleet.nodes[0], &plan).is_allowed()).count();
    assert_eq!((allowed, remaining(&fleet.nodes[0], &plan)), (3, [0, 2]));
    assert_eq!(fleet.counted(&local), 3, "a refused plan is not counted in shadow");
}

#[test]
fn source_is_the_store_that_refused() {
    let (fleet, limits, subject) = (Fleet::of(1), limits(), Subject::of(["k"]));
    let plan = mixed(&subject, &limits, Distributed::Off);
    let [_, shared] = &limits;
    assert_eq!(take(&fleet.nodes[0], &plan).source(), Source::Store);
    assert_eq!(fleet.admitted(0, shared, 9), 2);
    assert_eq!(take(&fleet.nodes[0], &plan).source(), Source::Store);
    let (fleet, swapped) = (
        Fleet::of(1),
        [shared.clone().in_rule("local").unwrap(), limits[0].clone().in_rule("shared").unwrap()],
    );
    let plan = mixed(&subject, &swapped, Distributed::Off);
    (0..9).for_each(|_| drop(take(&fleet.nodes[0], &plan)));
    let last = take(&fleet.nodes[0], &plan);
    assert!(!last.is_allowed() && last.source() == Source::Local);
}
