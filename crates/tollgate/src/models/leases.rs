//! Models of the leases of a node: spending, requests, refunds, and the events that end leases.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use shuttle::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use shuttle::thread;

use crate::lease::{LeaseOutcome, LeaseRequest, LeaseTable, LeaseTime};
use crate::{
    Key, LeaseSize, Limit, ManualClock, MemoryStore, Plan, Quota, Subject, Take, Timestamp,
};

/// Number of decisions from which on a plan is leased.
const DECISIONS: usize = 16;

/// A node with its store. Its clocks stand still.
#[derive(Debug)]
struct Node {
    table: LeaseTable,
    store: MemoryStore<ManualClock>,
    limit: Limit,
    subject: Subject,
}

impl Node {
    /// Creates a node with a limit of `count` and leases of at most `size`.
    fn new(count: u64, size: u32) -> Arc<Self> {
        let size = LeaseSize::Fixed(NonZeroU32::new(size).unwrap());
        let table = LeaseTable::new(1000);
        table.enable();
        Arc::new(Self {
            table,
            store: MemoryStore::builder().clock(ManualClock::new()).build(),
            limit: Limit::fixed_window(Quota::per_day(count)).unwrap().with_lease(size),
            subject: Subject::of(["k"]),
        })
    }

    /// Creates a node that holds a lease.
    fn leasing(count: u64, size: u32) -> Arc<Self> {
        let node = Self::new(count, size);
        let request = node.first_request();
        node.finish(request);
        assert!(node.left() > 0);
        node
    }

    fn plan(&self, cost: u64) -> Plan<'_> {
        Plan::new([Take::new(Key::new(&self.subject, &self.limit), cost)]).unwrap()
    }

    fn spend(&self, cost: u64) -> LeaseOutcome<'_> {
        self.table.spend(&self.plan(cost), Timestamp::EPOCH, now())
    }

    /// Makes the demand worth a lease. Takes nothing from the store.
    fn first_request(&self) -> LeaseRequest {
        for _ in 0..DECISIONS {
            if let LeaseOutcome::Request(request) = self.spend(1) {
                return request;
            }
        }
        panic!("no request after {DECISIONS} decisions");
    }

    /// Sends a request. Returns the amount that the store took for it, and whether it was granted.
    fn finish(&self, request: LeaseRequest) -> (u64, bool) {
        let cost = request.wanted().costs()[0];
        let reply = self.store.lease(&self.plan(1), request.wanted()).unwrap();
        let grant = reply.takes()[0];
        let is_granted = reply.is_granted();
        request.finish(Some(&reply));
        // A request of the background has no cost, and nothing to refuse.
        let spent = if grant.reply.is_allowed() { cost } else { 0 };
        (spent, is_granted)
    }

    /// Decides a request of cost 1, as a store that leases does. Returns how much was admitted.
    fn decide(&self) -> u64 {
        match self.spend(1) {
            LeaseOutcome::NotLeased => u64::from(self.store.take(&self.plan(1)).is_allowed()),
            LeaseOutcome::Refused(_) => 0,
            LeaseOutcome::Request(request) => self.finish(request).0,
            LeaseOutcome::Decided(_, request) => {
                if let Some(request) = request {
                    self.finish(request);
                }
                1
            }
        }
    }

    /// The leased amount that is not spent.
    fn left(&self) -> u64 {
        self.table.leased(&Key::new(&self.subject, &self.limit), now())
    }

    /// The amount left in the store.
    fn in_store(&self) -> u64 {
        self.store.stats(&Key::new(&self.subject, &self.limit)).remaining()
    }

    /// Asserts that each granted unit was spent once, is left, or was dropped.
    fn assert_balance(&self) {
        let left = self.left();
        let stats = self.table.stats(now());
        assert_eq!(stats.granted + stats.refunded, stats.spent + left + stats.dropped, "{stats:?}");
    }
}

fn now() -> LeaseTime {
    LeaseTime::new(Duration::from_secs(1), Duration::from_secs(1_000_000))
}

/// Starts a thread that shares a node.
fn start<T: Send + 'static>(
    node: &Arc<Node>,
    body: impl FnOnce(&Node) -> T + Send + 'static,
) -> thread::JoinHandle<T> {
    let node = Arc::clone(node);
    thread::spawn(move || body(&node))
}

/// Threads spend a lease to its end, without requests for another one.
pub(super) fn lease_is_spent_exactly_once() {
    let node = Node::leasing(100, 18);
    let (leased, spent) = (node.left(), Arc::new(AtomicU64::new(0)));
    let spend = |cost: u64| {
        let spent = Arc::clone(&spent);
        start(&node, move |node| {
            for _ in 0..6 {
                if let LeaseOutcome::Decided(..) = node.spend(cost) {
                    spent.fetch_add(cost, Ordering::SeqCst);
                }
            }
        })
    };
    let threads = [spend(1), spend(2), spend(3)];
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    let spent = spent.load(Ordering::SeqCst);
    assert_eq!(spent + node.left(), leased);
    assert!(node.left() < 3, "a cost of 3 was not paid with {} left", node.left());
    node.assert_balance();
}

/// Threads decide by leases and by the store, and request more leases as they do.
pub(super) fn decisions_with_renewals_admit_exactly_the_limit() {
    let node = Node::new(24, 5);
    let threads =
        [(); 3].map(|()| start(&node, |node| (0..14).map(|_| node.decide()).sum::<u64>()));
    let admitted: u64 = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
    assert_eq!(admitted + node.left() + node.in_store(), 24);
    node.assert_balance();
}

/// A plan has one request at a time, however many threads need more.
pub(super) fn one_request_of_a_plan_is_in_flight() {
    let node = Node::new(100, 18);
    let in_flight = Arc::new(AtomicUsize::new(0));
    let decide = || {
        let in_flight = Arc::clone(&in_flight);
        start(&node, move |node| {
            for _ in 0..12 {
                let request = match node.spend(3) {
                    LeaseOutcome::Request(request) => Some(request),
                    LeaseOutcome::Decided(_, request) => request,
                    LeaseOutcome::NotLeased | LeaseOutcome::Refused(_) => None,
                };
                let Some(request) = request else { continue };
                assert_eq!(in_flight.fetch_add(1, Ordering::SeqCst), 0, "two requests");
                let reply = node.store.lease(&node.plan(3), request.wanted()).unwrap();
                assert_eq!(in_flight.fetch_sub(1, Ordering::SeqCst), 1);
                request.finish(Some(&reply));
            }
        })
    };
    let threads = [decide(), decide(), decide()];
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    node.assert_balance();
}

/// A refund returns to a lease what it had paid, so that it can be spent once more.
pub(super) fn refunds_return_what_was_spent() {
    let node = Node::leasing(100, 18);
    let leased = node.left();
    let body = |node: &Node| {
        let mut spent = 0;
        for _ in 0..5 {
            if let LeaseOutcome::Decided(..) = node.spend(2) {
                spent += 2;
            }
            if node.table.refund(&node.plan(1), Timestamp::EPOCH, now()).is_some() {
                spent -= 1;
            }
        }
        spent
    };
    let threads = [start(&node, body), start(&node, body), start(&node, body)];
    // A thread can refund what another one has spent.
    let spent: i64 = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
    assert_eq!(u64::try_from(spent).unwrap() + node.left(), leased);
    node.assert_balance();
}

/// How leases end.
#[derive(Debug, Clone, Copy)]
enum End {
    Subject,
    All,
    Disable,
}

impl End {
    fn apply(self, node: &Node) {
        match self {
            Self::Subject => node.table.end_subject(node.subject.as_str()),
            Self::All => node.table.end_all(),
            Self::Disable => node.table.disable(),
        }
    }
}

/// Once a thread knows that the leases have ended, none of them pays.
pub(super) fn nothing_is_spent_after_an_end() {
    for end in [End::Subject, End::All, End::Disable] {
        let node = Node::leasing(100, 18);
        let has_ended = Arc::new(AtomicBool::new(false));
        let spend = || {
            let has_ended = Arc::clone(&has_ended);
            start(&node, move |node| {
                for _ in 0..4 {
                    let has_ended = has_ended.load(Ordering::SeqCst);
                    let is_paid = matches!(node.spend(1), LeaseOutcome::Decided(..));
                    assert!(!(has_ended && is_paid), "spent after {end:?}");
                }
            })
        };
        let threads = [spend(), spend()];
        end.apply(&node);
        has_ended.store(true, Ordering::SeqCst);
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(node.left(), 0);
        node.assert_balance();
    }
}

/// A lease that was requested before an end, and granted before or after it, pays nothing after it.
pub(super) fn nothing_is_spent_of_a_request_from_before_an_end() {
    for end in [End::Subject, End::All, End::Disable] {
        let node = Node::new(100, 18);
        let request = node.first_request();
        let grant = start(&node, move |node| {
            node.finish(request);
        });
        let spend = start(&node, |node| drop(node.spend(1)));
        end.apply(&node);
        assert!(!matches!(node.spend(1), LeaseOutcome::Decided(..)), "spent after {end:?}");
        grant.join().unwrap();
        assert!(!matches!(node.spend(1), LeaseOutcome::Decided(..)), "spent after {end:?}");
        spend.join().unwrap();
        assert_eq!(node.left(), 0);
        node.assert_balance();
    }
}
