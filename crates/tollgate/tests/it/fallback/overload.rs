//! A call that was not sent because too many wait is neither a store failure nor decided by this node.

use std::sync::Mutex;

use tollgate::{BreakerState, Distributed, PermitId, StoreError, StoreErrorKind, StoreEvent};

use super::*;

const LOSSES: [OnStoreLoss; 3] = [OnStoreLoss::Local, OnStoreLoss::Allow, OnStoreLoss::Deny];

fn limit(rule: &str) -> Limit {
    Limit::fixed_window(Quota::per_minute(5)).unwrap().in_rule(rule).unwrap()
}

fn overloaded() -> Fleet {
    let fleet = Fleet::of(1);
    fleet.shared.set(StoreFault::Overloaded);
    fleet
}

fn is_overloaded<T>(result: Result<T, StoreError>) -> bool {
    result.is_err_and(|error| error.kind() == StoreErrorKind::Overloaded)
}

/// Calls every operation on a plan.
fn all_operations(node: &impl Store, plan: &Plan<'_>) -> [bool; 4] {
    [
        is_overloaded(block_on(node.take(plan))),
        is_overloaded(block_on(node.peek(plan))),
        is_overloaded(block_on(node.refund(plan))),
        is_overloaded(block_on(node.debit(plan, Duration::ZERO))),
    ]
}

#[test]
fn overloaded_call_is_returned_and_changes_nothing() {
    let (subject, limit) = (Subject::of(["k"]), limit("r"));
    for loss in LOSSES {
        let fleet = Fleet::of(1);
        let plan = on_loss(&subject, &limit, loss);
        let node = &fleet.nodes[0];
        assert!(take(node, &plan).is_allowed());
        fleet.shared.set(StoreFault::Overloaded);
        for _ in 0..10 {
            assert_eq!(all_operations(node, &plan), [true; 4], "{loss:?}");
        }
        assert_eq!(node.breaker(), BreakerState::Closed);
        assert_eq!(node.local_decisions(), tollgate::LocalDecisions::default());
        fleet.restore();
        assert_eq!(fleet.counted(&limit), 1, "{loss:?}: nothing is replayed");
    }
}

#[test]
fn exhausted_client_gets_nothing_from_an_overloaded_node() {
    let (fleet, limit, subject) = (Fleet::of(1), limit("r"), Subject::of(["k"]));
    assert_eq!(fleet.admitted(0, &limit, 6), 5);
    fleet.shared.set(StoreFault::Overloaded);
    let plan = one(&subject, &limit);
    let admitted = (0..20).filter(|_| block_on(fleet.nodes[0].take(&plan)).is_ok());
    assert_eq!(admitted.count(), 0);
}

#[test]
fn overload_between_failures_does_not_open_the_breaker() {
    let (fleet, limit, subject) = (Fleet::of(1), limit("r"), Subject::of(["k"]));
    let plan = one(&subject, &limit);
    fleet.lose();
    (0..4).for_each(|_| drop(block_on(fleet.nodes[0].take(&plan)).unwrap()));
    fleet.shared.set(StoreFault::Overloaded);
    for _ in 0..9 {
        assert!(is_overloaded(block_on(fleet.nodes[0].take(&plan))));
    }
    assert_eq!(fleet.nodes[0].breaker(), BreakerState::Closed);
    fleet.lose();
    let _ = block_on(fleet.nodes[0].take(&plan)).unwrap();
    assert_eq!(fleet.nodes[0].breaker(), BreakerState::Open, "nor does it count as a success");
}

#[test]
fn mixed_plan_is_shed_whole() {
    let (fleet, subject) = (overloaded(), Subject::of(["k"]));
    let (local, shared) = (limit("local"), limit("shared"));
    let off = Distribution { distributed: Distributed::Off, ..Distribution::default() };
    let local_take = Take::new(Key::new(&subject, &local), 1).with_distribution(off);
    let plan = Plan::new([Take::new(Key::new(&subject, &shared), 1), local_take]).unwrap();
    let local_plan = Plan::new([local_take]).unwrap();
    let node = &fleet.nodes[0];
    assert!(take(node, &local_plan).is_allowed());
    let remaining = || block_on(node.peek(&local_plan)).unwrap().remaining();
    assert_eq!(remaining(), Some(4));
    for _ in 0..10 {
        assert_eq!(all_operations(node, &plan), [true; 4]);
        assert_eq!(
            remaining(),
            Some(4),
            "the local take is refunded, and other calls change nothing"
        );
    }
}

#[test]
fn mixed_plan_that_is_shed_frees_its_local_slots() {
    let (fleet, subject) = (overloaded(), Subject::of(["k"]));
    let slots = Limit::concurrency(1, Duration::from_secs(60)).unwrap().in_rule("local").unwrap();
    let shared = limit("shared");
    let off = Distribution { distributed: Distributed::Off, ..Distribution::default() };
    let slot = Take::new(Key::new(&subject, &slots), 1).with_distribution(off);
    let both = Plan::new([Take::new(Key::new(&subject, &shared), 1), slot]).unwrap();
    let node = &fleet.nodes[0];
    let result = block_on(node.take(&both.with_permit(PermitId::random())));
    assert!(is_overloaded(result));
    let alone = Plan::new([slot]).unwrap().with_permit(PermitId::random());
    assert!(take(node, &alone).is_allowed());
}

#[test]
fn shadow_call_that_is_shed_does_not_shed_the_request() {
    let (fleet, subject, limit) = (overloaded(), Subject::of(["k"]), limit("r"));
    let shadow = Distribution { distributed: Distributed::Shadow, ..Distribution::default() };
    let plan = Plan::new([Take::new(Key::new(&subject, &limit), 1).with_distribution(shadow)]);
    let decision = block_on(fleet.nodes[0].take(&plan.unwrap())).unwrap().is_allowed();
    assert!(decision);
    assert_eq!(fleet.nodes[0].breaker(), BreakerState::Closed);
}

#[test]
fn overload_is_reported_as_its_own_event() {
    let clock = ManualClock::new();
    let shared = Arc::new(FaultyStore::new(MemoryStore::builder().clock(clock.clone()).build()));
    shared.set(StoreFault::Overloaded);
    let events: Arc<Mutex<Vec<String>>> = Arc::default();
    let log = Arc::clone(&events);
    let record = move |event: StoreEvent<'_>| {
        let name = if matches!(event, StoreEvent::Overloaded(_)) { "overloaded" } else { "other" };
        log.lock().unwrap().push(name.to_owned());
    };
    let node = FallbackStore::builder(shared).clock(clock).on_event(record).build();
    let (subject, limit) = (Subject::of(["k"]), limit("r"));
    assert!(is_overloaded(block_on(node.take(&one(&subject, &limit)))));
    assert!(is_overloaded(block_on(node.stats(&Key::new(&subject, &limit)))));
    assert_eq!(*events.lock().unwrap(), ["overloaded", "overloaded"]);
}
