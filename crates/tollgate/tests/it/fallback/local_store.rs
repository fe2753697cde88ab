//! Fallback over local stores other than a `MemoryStore`: equal decisions, failures, suspended calls.

use std::pin::pin;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};
use std::thread;

use tollgate::{
    BreakerState, Distributed, DynStore, Permit, PermitId, Status, StoreErrorKind, StoreEvent,
    Verdict,
};

use super::*;

type Local = Arc<FaultyStore<MemoryStore<ManualClock>>>;

/// One of two nodes, with a local store that fails on demand and is not immediate.
struct Node {
    clock: ManualClock,
    shared: Shared,
    local: Local,
    store: FallbackStore<Shared, ManualClock, Local>,
    /// Errors of the local store.
    errors: Arc<Mutex<Vec<String>>>,
}

impl Node {
    fn new() -> Self {
        let clock = ManualClock::at(Timestamp::from_micros(1_700_000_000_000_000));
        let memory = || MemoryStore::builder().clock(clock.clone()).build();
        let (shared, local) = (FaultyStore::new(memory()), FaultyStore::new(memory()));
        let (shared, local, errors) = (Arc::new(shared), Arc::new(local), Arc::default());
        let reported: Arc<Mutex<Vec<String>>> = Arc::clone(&errors);
        let store = FallbackStore::builder(Arc::clone(&shared))
            .nodes(NonZeroU32::new(2).unwrap())
            .clock(clock.clone())
            .local(Arc::clone(&local))
            .on_event(move |event| {
                if let StoreEvent::LocalFailed(error) = event {
                    reported.lock().unwrap().push(error.to_string());
                }
            })
            .build();
        Self { clock, shared, local, store, errors }
    }

    /// Loses the shared store, and opens the breaker.
    fn lose(&self) {
        self.shared.set(StoreFault::Unreachable);
        let (subject, limit) = (Subject::of(["opens the breaker"]), per_minute(9));
        (0..5).for_each(|_| drop(take(&self.store, &one(&subject, &limit))));
        assert_eq!(self.store.breaker(), BreakerState::Open);
    }

    fn restore(&self) {
        self.shared.set(StoreFault::None);
        block_on(self.store.maintain());
        assert_eq!(self.store.breaker(), BreakerState::Closed);
    }

    fn take(&self, limit: &Limit, on_store_loss: OnStoreLoss) -> (Verdict, Option<OnStoreLoss>) {
        let subject = Subject::of(["k"]);
        let decision = take(&self.store, &on_loss(&subject, limit, on_store_loss));
        (decision.verdict(), decision.loss())
    }

    /// Returns the count of the key in the shared store.
    fn counted(&self, limit: &Limit) -> u64 {
        self.shared.store().stats(&Key::new(&Subject::of(["k"]), limit)).count()
    }

    fn errors(&self) -> Vec<String> {
        std::mem::take(&mut *self.errors.lock().unwrap())
    }
}

fn per_minute(count: u64) -> Limit {
    Limit::fixed_window(Quota::per_minute(count)).unwrap()
}

fn denied() -> Verdict {
    Verdict::Deny { retry_after: Duration::from_secs(1) }
}

fn poll<F: Future>(future: std::pin::Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

/// Verdict, `on_store_loss`, count and remaining of a decision.
type Figures = (Verdict, Option<OnStoreLoss>, u64, u64);

/// Takes, refunds and debits in an outage, recovers, and returns the figures of every decision.
fn outage<L: Store>(
    local: impl FnOnce(MemoryStore<ManualClock>) -> L,
    limit: &Limit,
) -> Vec<Figures> {
    let clock = ManualClock::at(Timestamp::from_micros(1_700_000_000_000_000));
    let memory = || MemoryStore::builder().clock(clock.clone()).build();
    let shared = Arc::new(FaultyStore::new(memory()));
    let builder = FallbackStore::builder(Arc::clone(&shared)).nodes(NonZeroU32::new(3).unwrap());
    let store = builder.clock(clock.clone()).local(local(memory())).build();
    let (subject, mut figures) = (Subject::of(["k"]), Vec::new());
    let plan = one(&subject, limit);
    let mut see = |decision: Decision<'_>| {
        let status = decision.statuses()[0];
        figures.push((decision.verdict(), decision.loss(), status.count(), status.remaining()));
    };
    see(take(&store, &plan));
    shared.set(StoreFault::Unreachable);
    (0..20).for_each(|_| see(take(&store, &plan)));
    see(block_on(store.refund(&plan)).unwrap());
    see(block_on(store.peek(&plan)).unwrap());
    see(block_on(store.debit(&plan, Duration::from_secs(3))).unwrap());
    clock.advance(Duration::from_secs(7));
    shared.set(StoreFault::None);
    block_on(store.maintain());
    see(take(&store, &plan));
    figures
}

#[test]
fn any_local_store_decides_as_a_memory_store() {
    for limit in every_algorithm(30) {
        let expected = outage(|memory| memory, &limit);
        let degraded = expected.iter().filter(|(_, loss, ..)| *loss == Some(OnStoreLoss::Local));
        let admitted = degraded.clone().take(20).filter(|(verdict, ..)| verdict.is_allowed());
        assert_eq!((admitted.count(), degraded.count()), (10, 23), "{limit:?}");
        assert_eq!(outage(Arc::new, &limit), expected);
        assert_eq!(outage(FaultyStore::new, &limit), expected);
        assert_eq!(outage(DynStore::new, &limit), expected);
    }
}

#[test]
fn failing_local_store_refuses_local_limits_as_deny() {
    let (node, limit) = (Node::new(), per_minute(90));
    node.lose();
    assert_eq!(node.take(&limit, OnStoreLoss::Local), (Verdict::Allow, Some(OnStoreLoss::Local)));
    for (fault, message) in [
        (StoreFault::Unreachable, "Unreachable"),
        (StoreFault::ReplyLost, "ReplyLost"),
        (StoreFault::Unreadable, "Unreadable"),
    ] {
        node.local.set(fault);
        assert_eq!(node.take(&limit, OnStoreLoss::Local), (denied(), Some(OnStoreLoss::Deny)));
        assert_eq!(node.errors(), [message]);
    }
    assert_eq!(node.store.local_decisions().refused, 3);
    node.local.set(StoreFault::None);
    assert_eq!(node.take(&limit, OnStoreLoss::Local), (Verdict::Allow, Some(OnStoreLoss::Local)));
    node.restore();
    assert_eq!(node.counted(&limit), 2, "refused takes are not replayed");
}

#[test]
fn failing_local_store_does_not_affect_allow_and_deny() {
    let (node, limit) = (Node::new(), per_minute(90));
    node.lose();
    node.local.set(StoreFault::Unreachable);
    assert_eq!(node.take(&limit, OnStoreLoss::Allow), (Verdict::Allow, Some(OnStoreLoss::Allow)));
    assert_eq!(node.take(&limit, OnStoreLoss::Deny), (denied(), Some(OnStoreLoss::Deny)));
    assert_eq!(node.errors(), [""; 0], "the local store is not called");
    node.restore();
    assert_eq!(node.counted(&limit), 1);
}

#[test]
fn failing_local_store_admits_no_part_of_a_plan() {
    let (node, subject) = (Node::new(), Subject::of(["k"]));
    let limits = ["local", "allow"].map(|rule| per_minute(9).in_rule(rule).unwrap());
    let allow = Distribution { on_store_loss: OnStoreLoss::Allow, ..Distribution::default() };
    let [local, allowed] = [0, 1].map(|index| Take::new(Key::new(&subject, &limits[index]), 1));
    let plan = Plan::new([local, allowed.with_distribution(allow)]).unwrap();
    node.lose();
    node.local.set(StoreFault::Unreachable);
    let decision = take(&node.store, &plan);
    let verdicts: Vec<Verdict> = decision.statuses().iter().map(Status::verdict).collect();
    assert_eq!(verdicts, [denied(), Verdict::Allow]);
    assert!(!decision.is_allowed());
    node.restore();
    assert_eq!([0, 1].map(|index| node.counted(&limits[index])), [0, 0]);
}

#[test]
fn failing_local_store_still_records_forced_debits() {
    let (node, limit, subject) = (Node::new(), per_minute(90), Subject::of(["k"]));
    node.lose();
    node.local.set(StoreFault::Unreachable);
    let decision = block_on(node.store.debit(&one(&subject, &limit), Duration::ZERO)).unwrap();
    assert_eq!(decision.loss(), Some(OnStoreLoss::Deny));
    node.restore();
    assert_eq!(node.counted(&limit), 1);
}

#[test]
fn failing_local_store_decides_undistributed_limits_by_on_store_loss() {
    let (node, limit, subject) = (Node::new(), per_minute(9), Subject::of(["k"]));
    node.local.set(StoreFault::Unreachable);
    for (on_store_loss, verdict, loss) in [
        (OnStoreLoss::Local, denied(), OnStoreLoss::Deny),
        (OnStoreLoss::Deny, denied(), OnStoreLoss::Deny),
        (OnStoreLoss::Allow, Verdict::Allow, OnStoreLoss::Allow),
    ] {
        let distribution = Distribution { distributed: Distributed::Off, on_store_loss };
        let off = Take::new(Key::new(&subject, &limit), 1).with_distribution(distribution);
        let decision = take(&node.store, &Plan::new([off]).unwrap());
        assert_eq!((decision.verdict(), decision.loss()), (verdict, Some(loss)));
        assert_eq!(node.errors(), ["Unreachable"]);
    }
}

#[test]
fn uncounted_local_take_is_not_refunded() {
    let (node, subject) = (Node::new(), Subject::of(["k"]));
    let limits = ["off", "on"].map(|rule| per_minute(3).in_rule(rule).unwrap());
    let distribution =
        Distribution { distributed: Distributed::Off, on_store_loss: OnStoreLoss::Allow };
    let [off, on] = [0, 1].map(|index| Take::new(Key::new(&subject, &limits[index]), 1));
    let plan = Plan::new([off.with_distribution(distribution), on]).unwrap();
    (0..3).for_each(|_| assert!(take(&node.store, &plan).is_allowed()));
    // The fourth take fails in the local store, and the shared store refuses it.
    node.local.fail_after(0, StoreFault::Unreachable);
    let calls = node.local.calls();
    assert!(!take(&node.store, &plan).is_allowed());
    assert_eq!(node.local.calls(), calls + 1, "no refund");
    assert_eq!(node.local.store().stats(&Key::new(&subject, &limits[0])).count(), 3);
}

#[test]
fn permits_and_pauses_report_a_failing_local_store() {
    let (node, subject) = (Node::new(), Subject::of(["k"]));
    let limit = Limit::concurrency(4, Duration::from_secs(60)).unwrap();
    let plan = one(&subject, &limit).with_permit(PermitId::random());
    let permit = Permit::of(&plan, &take(&node.store, &plan)).unwrap();
    node.local.set(StoreFault::Unreachable);
    // The shared store holds the slots.
    assert!(block_on(node.store.renew(&permit)).unwrap().is_some());
    assert!(block_on(node.store.release(&permit)).unwrap());
    // The local store might hold slots.
    let unavailable = StoreErrorKind::Unavailable;
    assert_eq!(block_on(node.store.renew(&permit)).unwrap_err().kind(), unavailable);
    assert_eq!(block_on(node.store.release(&permit)).unwrap_err().kind(), unavailable);
    let key = Key::new(&subject, &limit);
    assert_eq!(block_on(node.store.reset(&key)).unwrap_err().kind(), unavailable);
    let pause = node.store.pause(&key, Duration::from_secs(9));
    assert_eq!(block_on(pause).unwrap_err().kind(), unavailable);
    assert_eq!(node.errors().len(), 6);
    assert!(!take(&node.store, &plan).is_allowed(), "paused in the shared store");
}

#[test]
fn admission_of_a_suspended_local_store_survives_the_close() {
    let (node, limit, subject) = (Node::new(), per_minute(90), Subject::of(["k"]));
    let plan = one(&subject, &limit);
    node.lose();
    node.local.set(StoreFault::Suspended);
    let mut request = pin!(node.store.take(&plan));
    assert!(poll(request.as_mut()).is_pending());
    // A suspended request blocks neither recovery nor other requests.
    node.restore();
    assert!(!take(&node.store, &plan).is_degraded());
    node.local.set(StoreFault::None);
    let Poll::Ready(Ok(decision)) = poll(request.as_mut()) else { panic!("suspended") };
    assert!(decision.is_allowed() && decision.is_degraded());
    assert_eq!(node.counted(&limit), 1);
    block_on(node.store.maintain());
    assert_eq!(node.counted(&limit), 2, "the degraded admission is debited");
    block_on(node.store.maintain());
    assert_eq!(node.counted(&limit), 2, "once");
}

#[test]
fn dropped_request_records_no_admission() {
    let (node, limit, subject) = (Node::new(), per_minute(2), Subject::of(["k"]));
    let plan = one(&subject, &limit);
    node.lose();
    node.local.set(StoreFault::Suspended);
    {
        let mut request = pin!(node.store.take(&plan));
        assert!(poll(request.as_mut()).is_pending());
    }
    node.local.set(StoreFault::None);
    assert!(!take(&node.store, &plan).is_allowed(), "it used the local share");
    node.clock.advance(Duration::from_secs(60));
    assert!(take(&node.store, &plan).is_allowed());
    node.restore();
    assert_eq!(node.counted(&limit), 1);
}

/// Every admission is counted once in the shared store, by the store itself or by the replay.
#[test]
fn concurrent_recovery_loses_no_admission() {
    fn check<L: Store>(local: L) {
        let clock = ManualClock::at(Timestamp::from_micros(1_700_000_000_000_000));
        let shared =
            Arc::new(FaultyStore::new(MemoryStore::builder().clock(clock.clone()).build()));
        let store = FallbackStore::builder(Arc::clone(&shared)).clock(clock).local(local).build();
        let (limit, subject) = (per_minute(1_000_000), Subject::of(["k"]));
        let (plan, admitted) = (one(&subject, &limit), AtomicU64::new(0));
        let admit = || {
            assert!(take(&store, &plan).is_allowed());
            admitted.fetch_add(1, Ordering::Relaxed);
        };
        for _ in 0..200 {
            shared.set(StoreFault::Unreachable);
            (0..5).for_each(|_| admit());
            let is_done = AtomicBool::new(false);
            thread::scope(|scope| {
                for _ in 0..2 {
                    scope.spawn(|| {
                        while !is_done.load(Ordering::Relaxed) {
                            admit();
                        }
                    });
                }
                shared.set(StoreFault::None);
                block_on(store.maintain());
                is_done.store(true, Ordering::Relaxed);
            });
            assert_eq!(store.breaker(), BreakerState::Closed);
        }
        block_on(store.maintain());
        let counted = shared.store().stats(&Key::new(&subject, &limit)).count();
        assert_eq!(counted, admitted.into_inner());
    }
    check(MemoryStore::new());
    check(FaultyStore::new(MemoryStore::new()));
}
