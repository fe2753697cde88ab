//! The circuit breaker opens after consecutive failures, and closes after a successful probe.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use tollgate::{BreakerState, Limit, Listing, LocalDecisions, Quota, StoreErrorKind, StoreEvent};
use tollgate_testkit::faulty_store::StoreFault;

use super::*;

fn limit() -> Limit {
    Limit::fixed_window(Quota::per_minute(100)).unwrap()
}

#[test]
fn opens_after_five_failures() {
    let (fleet, limit) = (Fleet::of(1), limit());
    assert_eq!(fleet.admitted(0, &limit, 2), 2);
    fleet.lose();
    assert_eq!(fleet.admitted(0, &limit, 4), 4);
    assert_eq!(fleet.nodes[0].breaker(), BreakerState::Closed);
    assert_eq!(fleet.admitted(0, &limit, 20), 20);
    assert_eq!(fleet.nodes[0].breaker(), BreakerState::Open);
    assert_eq!(fleet.shared.calls(), 2 + 5);
}

#[test]
fn opened_at_the_start_decides_by_shares_without_a_call() {
    let (fleet, limit) = (Fleet::of(2), limit());
    fleet.lose();
    fleet.nodes[0].open_breaker();
    assert_eq!(fleet.nodes[0].breaker(), BreakerState::Open);
    assert_eq!((fleet.admitted(0, &limit, 60), fleet.shared.calls()), (50, 0));
    fleet.shared.set(StoreFault::None);
    block_on(fleet.nodes[0].maintain());
    assert_eq!(fleet.nodes[0].breaker(), BreakerState::Closed);
    assert_eq!(fleet.admitted(0, &limit, 60), 50, "the first 50 are debited");
}

#[test]
fn success_between_failures_keeps_it_closed() {
    let (fleet, limit) = (Fleet::of(1), limit());
    for _ in 0..5 {
        fleet.lose();
        fleet.admitted(0, &limit, 4);
        fleet.shared.set(StoreFault::None);
        fleet.admitted(0, &limit, 1);
    }
    assert_eq!((fleet.nodes[0].breaker(), fleet.shared.calls()), (BreakerState::Closed, 25));
}

#[test]
fn unreadable_key_neither_refuses_nor_opens() {
    let (fleet, limit) = (Fleet::of(1), limit());
    fleet.shared.set(StoreFault::Unreadable);
    assert_eq!(fleet.admitted(0, &limit, 30), 30);
    assert_eq!((fleet.nodes[0].breaker(), fleet.shared.calls()), (BreakerState::Closed, 30));
}

#[test]
fn store_only_operations_fail_immediately_while_open() {
    let (fleet, limit) = (Fleet::of(1), limit());
    fleet.lose();
    fleet.admitted(0, &limit, 5);
    let (node, calls) = (&fleet.nodes[0], fleet.shared.calls());
    let subject = Subject::of(["k"]);
    let key = Key::new(&subject, &limit);
    let errors = [
        block_on(node.stats(&key)).unwrap_err(),
        block_on(node.reset(&key)).unwrap_err(),
        block_on(node.list(&Listing::all())).unwrap_err(),
    ];
    for error in errors {
        assert_eq!(error.kind(), StoreErrorKind::Unavailable);
    }
    assert_eq!(fleet.shared.calls(), calls);
}

#[test]
fn maintain_closes_it_as_soon_as_the_store_replies() {
    let (fleet, limit) = (Fleet::of(1), limit());
    fleet.lose();
    fleet.admitted(0, &limit, 5);
    for _ in 0..3 {
        fleet.wait(1);
        block_on(fleet.nodes[0].maintain());
        assert_eq!(fleet.nodes[0].breaker(), BreakerState::Open);
    }
    fleet.restore();
    assert_eq!(fleet.nodes[0].breaker(), BreakerState::Closed);
    let subject = Subject::of(["k"]);
    assert!(!take(&fleet.nodes[0], &one(&subject, &limit)).is_degraded());
}

#[test]
fn request_probes_after_open_for_without_maintain() {
    let (fleet, limit) = (Fleet::of(1), limit());
    fleet.lose();
    fleet.admitted(0, &limit, 5);
    let calls = || fleet.shared.calls();
    let before = calls();
    fleet.wait(29);
    fleet.admitted(0, &limit, 3);
    assert_eq!(calls(), before);
    fleet.wait(1);
    fleet.admitted(0, &limit, 3);
    assert_eq!(calls(), before + 1, "one request probes, and fails");
    fleet.shared.set(StoreFault::None);
    fleet.wait(30);
    let subject = Subject::of(["k"]);
    assert!(!take(&fleet.nodes[0], &one(&subject, &limit)).is_degraded());
    assert_eq!(fleet.nodes[0].breaker(), BreakerState::Closed);
}

#[test]
fn loss_and_return_are_reported_once() {
    static FAILED: AtomicU64 = AtomicU64::new(0);
    static REPORTED: Mutex<Vec<String>> = Mutex::new(Vec::new());
    let (fleet, limit) = (Fleet::of(1), limit());
    let builder = FallbackStore::builder(Arc::clone(&fleet.shared)).clock(fleet.clock.clone());
    let node = builder.on_event(|event| match event {
        StoreEvent::Failed(_) => drop(FAILED.fetch_add(1, Ordering::SeqCst)),
        StoreEvent::Lost { failures, reason, nodes } => {
            REPORTED.lock().unwrap().push(format!("lost {failures} {reason} {nodes}"));
        }
        StoreEvent::Restored(outage) => REPORTED.lock().unwrap().push(format!("{outage:?}")),
        _ => {}
    });
    let node = node.build();
    let subject = Subject::of(["k"]);
    fleet.lose();
    (0..120).for_each(|_| drop(take(&node, &one(&subject, &limit))));
    fleet.wait(7);
    fleet.shared.set(StoreFault::None);
    block_on(node.maintain());
    block_on(node.maintain());
    assert_eq!(FAILED.load(Ordering::SeqCst), 5);
    let outage =
        "Outage { lasted: 7s, admitted: 96, refused: 20, keys_replayed: 1, keys_dropped: 0 }";
    assert_eq!(*REPORTED.lock().unwrap(), ["lost 5 Unreachable 1", outage]);
    assert_eq!(node.local_decisions(), LocalDecisions::default());
}
