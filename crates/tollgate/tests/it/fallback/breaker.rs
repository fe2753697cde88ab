//! A store that fails is soon not asked at all, and soon asked again.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use tollgate::{BreakerState, Limit, Listing, LocalDecisions, Quota, StoreErrorKind, StoreEvent};
use tollgate_testkit::faulty_store::StoreFault;

use super::*;

fn limit() -> Limit {
    Limit::fixed_window(Quota::per_minute(100)).unwrap()
}

#[test]
fn after_five_failures_it_is_not_asked() {
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
fn failures_with_answers_between_them_do_not_open_it() {
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
fn a_key_that_cannot_be_read_refuses_nobody_and_opens_nothing() {
    let (fleet, limit) = (Fleet::of(1), limit());
    fleet.shared.set(StoreFault::Unreadable);
    assert_eq!(fleet.admitted(0, &limit, 30), 30);
    assert_eq!((fleet.nodes[0].breaker(), fleet.shared.calls()), (BreakerState::Closed, 30));
}

#[test]
fn while_it_is_open_what_needs_the_store_fails_at_once() {
    let (fleet, limit) = (Fleet::of(1), limit());
    fleet.lose();
    fleet.admitted(0, &limit, 5);
    let (node, asked) = (&fleet.nodes[0], fleet.shared.calls());
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
    assert_eq!(fleet.shared.calls(), asked);
}

#[test]
fn looked_after_it_is_asked_again_as_soon_as_it_answers() {
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
fn without_anyone_looking_after_it_a_request_tries_it_in_time() {
    let (fleet, limit) = (Fleet::of(1), limit());
    fleet.lose();
    fleet.admitted(0, &limit, 5);
    let asked = || fleet.shared.calls();
    let before = asked();
    fleet.wait(29);
    fleet.admitted(0, &limit, 3);
    assert_eq!(asked(), before);
    fleet.wait(1);
    fleet.admitted(0, &limit, 3);
    assert_eq!(asked(), before + 1, "one tries, and it is still lost");
    fleet.shared.set(StoreFault::None);
    fleet.wait(30);
    let subject = Subject::of(["k"]);
    assert!(!take(&fleet.nodes[0], &one(&subject, &limit)).is_degraded());
    assert_eq!(fleet.nodes[0].breaker(), BreakerState::Closed);
}

#[test]
fn whoever_wants_hears_of_it_once() {
    static FAILED: AtomicU64 = AtomicU64::new(0);
    static HEARD: Mutex<Vec<String>> = Mutex::new(Vec::new());
    let (fleet, limit) = (Fleet::of(1), limit());
    let builder = FallbackStore::builder(Arc::clone(&fleet.shared)).clock(fleet.clock.clone());
    let node = builder.on_event(|event| match event {
        StoreEvent::Failed(_) => drop(FAILED.fetch_add(1, Ordering::SeqCst)),
        StoreEvent::Lost { failures, reason, nodes } => {
            HEARD.lock().unwrap().push(format!("lost {failures} {reason} {nodes}"));
        }
        StoreEvent::Restored(outage) => HEARD.lock().unwrap().push(format!("{outage:?}")),
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
    assert_eq!(*HEARD.lock().unwrap(), ["lost 5 Unreachable 1", outage]);
    assert_eq!(node.local_decisions(), LocalDecisions::default());
}
