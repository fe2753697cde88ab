//! The lease table of a node: what it requests, spends, refunds and ends.

use std::num::NonZeroU32;
use std::time::Duration;

use tollgate::lease::{LeaseOutcome, LeaseRequest, LeaseTable, LeaseTime};
use tollgate::{
    Decision, Key, LeaseSize, Limit, ManualClock, MemoryStore, Plan, Quota, Source, Subject, Take,
    Timestamp,
};

mod demand;
mod ends;

/// A node with its own store. Only the test moves its clocks.
struct Node {
    table: LeaseTable,
    store: MemoryStore<ManualClock>,
    now: LeaseTime,
}

impl Node {
    fn new() -> Self {
        let table = LeaseTable::new(1000);
        table.enable();
        let store = MemoryStore::builder().clock(ManualClock::new()).build();
        Self { table, store, now: at(0, 0) }
    }

    fn spend<'a>(&self, plan: &Plan<'a>) -> LeaseOutcome<'a> {
        self.table.spend(plan, Timestamp::EPOCH, self.now)
    }

    /// Spends until the demand is worth a lease, and expects a request to the store.
    fn request(&self, plan: &Plan<'_>) -> LeaseRequest {
        for _ in 0..16 {
            match self.spend(plan) {
                LeaseOutcome::NotLeased => {}
                LeaseOutcome::Request(request) => return request,
                outcome @ (LeaseOutcome::Decided(..) | LeaseOutcome::Refused(_)) => {
                    panic!("{outcome:?} is not a request")
                }
            }
        }
        panic!("no request after 16 decisions");
    }

    /// Leases, and expects a grant.
    fn lease(&self, plan: &Plan<'_>) -> u64 {
        self.finish(plan, self.request(plan))
    }

    fn finish(&self, plan: &Plan<'_>, request: LeaseRequest) -> u64 {
        let reply = self.store.lease(plan, request.wanted()).unwrap();
        request.finish(Some(&reply));
        reply.takes()[0].amount
    }

    /// Returns the decision of a lease, if one pays.
    fn decided<'a>(&self, plan: &Plan<'a>) -> Option<Decision<'a>> {
        match self.spend(plan) {
            LeaseOutcome::Decided(decision, _) => Some(decision),
            _ => None,
        }
    }

    /// Returns the refusal that the node repeats, if any.
    fn refused<'a>(&self, plan: &Plan<'a>) -> Option<Decision<'a>> {
        match self.spend(plan) {
            LeaseOutcome::Refused(decision) => Some(decision),
            _ => None,
        }
    }
}

/// Readings of the monotonic and the wall clock, in milliseconds.
fn at(monotonic: u64, wall: u64) -> LeaseTime {
    let wall = Duration::from_secs(1_000_000) + Duration::from_millis(wall);
    LeaseTime::new(Duration::from_millis(monotonic), wall)
}

/// A limit of 1000 per minute with leases of 100.
fn limit() -> Limit {
    let size = LeaseSize::Fixed(NonZeroU32::new(100).unwrap());
    Limit::token_bucket(Quota::per_minute(1000)).unwrap().with_lease(size)
}

fn plan<'a>(subject: &'a Subject, limit: &'a Limit, cost: u64) -> Plan<'a> {
    Plan::new([Take::new(Key::new(subject, limit), cost)]).unwrap()
}

#[test]
fn dropped_request_pauses_requests_for_a_quarter_of_the_time() {
    let (limit, subject) = (limit(), Subject::of(["k"]));
    let plan = plan(&subject, &limit, 1);
    let mut node = Node::new();
    let request = node.request(&plan);
    assert!(matches!(node.spend(&plan), LeaseOutcome::NotLeased), "only one request at a time");
    drop(request);
    assert_eq!(node.table.stats(node.now).not_granted, 0, "it was not sent");
    node.now = at(249, 249);
    assert!(matches!(node.spend(&plan), LeaseOutcome::NotLeased));
    node.now = at(250, 250);
    node.request(&plan).finish(None);
    assert_eq!(node.table.stats(node.now).not_granted, 1);
    node.now = at(500, 500);
    assert_eq!(node.lease(&plan), 100);
}

#[test]
fn next_lease_is_requested_before_the_first_is_spent() {
    let (limit, subject) = (limit(), Subject::of(["k"]));
    let plan = plan(&subject, &limit, 1);
    let node = Node::new();
    assert_eq!(node.lease(&plan), 100);
    let mut requests = Vec::new();
    for _ in 0..80 {
        let LeaseOutcome::Decided(_, request) = node.spend(&plan) else { panic!("leased") };
        requests.extend(request);
    }
    assert_eq!(requests.len(), 1, "one request, when a quarter is left");
    let request = requests.remove(0);
    assert_eq!(request.wanted().costs(), [0], "no caller waits for it");
    let second = node.finish(&plan, request);
    let mut spent = 81;
    while let LeaseOutcome::Decided(_, request) = node.spend(&plan) {
        spent += 1;
        drop(request);
    }
    assert_eq!(spent, 100 + second);
    let stats = node.table.stats(node.now);
    assert_eq!((stats.grants, stats.granted, stats.spent), (2, 100 + second, 100 + second));
    assert_eq!((stats.dropped, stats.decisions), (0, 99 + second));
}

#[test]
fn refund_returns_only_what_was_spent() {
    let (limit, subject) = (limit(), Subject::of(["k"]));
    let (one, five) = (plan(&subject, &limit, 1), plan(&subject, &limit, 5));
    let mut node = Node::new();
    let refund = |node: &Node, plan: &Plan<'_>| {
        let decision = node.table.refund(plan, Timestamp::EPOCH, node.now);
        decision.map(|decision| decision.statuses()[0].remaining())
    };
    assert_eq!(refund(&node, &one), None, "no lease");
    let _ = node.lease(&one);
    let before = node.decided(&one).unwrap().statuses()[0].remaining();
    assert_eq!(refund(&node, &five), None, "more than was spent");
    assert_eq!(refund(&node, &one), Some(before + 1));
    let stats = node.table.stats(node.now);
    assert_eq!((stats.spent, stats.refunded), (2, 1), "totals never fall");
    node.now = at(1000, 1000);
    assert_eq!(refund(&node, &one), None, "the lease has ended");
}

#[test]
fn plan_may_have_other_costs_each_time() {
    let limit = limit().with_lease(LeaseSize::Auto);
    let subject = Subject::of(["k"]);
    let mut node = Node::new();
    let cost = |cost| plan(&subject, &limit, cost);
    for _ in 0..15 {
        assert!(node.decided(&cost(3)).is_none());
    }
    let request = node.request(&cost(3));
    assert_eq!(request.wanted().costs(), [3]);
    let granted = node.finish(&cost(3), request);
    assert_eq!(granted, 6, "an eighth of 48");
    assert!(node.decided(&cost(4)).is_none(), "more than is left");
    assert!(node.decided(&cost(3)).is_some());
    assert!(node.decided(&cost(1)).is_none());
    // The next request asks for a part of what was taken, whatever the last plan costs.
    node.now = at(1000, 1000);
    assert_eq!(node.request(&cost(1)).wanted().amounts(), [56 * 130 / 1024]);
}

/// What is left of a lease may be less than any plan costs.
#[test]
fn rest_of_a_lease_does_not_prevent_the_next_one() {
    let size = LeaseSize::Fixed(NonZeroU32::new(100).unwrap());
    let limit = Limit::token_bucket(Quota::per_minute(100_000)).unwrap().with_lease(size);
    let subject = Subject::of(["k"]);
    let plan = plan(&subject, &limit, 3);
    let node = Node::new();
    let _ = node.lease(&plan);
    for number in 0..150 {
        match node.spend(&plan) {
            LeaseOutcome::Decided(_, None) => {}
            LeaseOutcome::Decided(_, Some(request)) => assert!(node.finish(&plan, request) > 0),
            outcome => panic!("{outcome:?} of request {number}"),
        }
    }
}

#[test]
fn decision_shows_what_the_store_and_the_leases_have_left() {
    let (limit, subject) = (limit(), Subject::of(["k"]));
    let plan = plan(&subject, &limit, 1);
    let mut node = Node::new();
    assert_eq!(node.lease(&plan), 100);
    let in_store = node.store.stats(&Key::new(&subject, &limit));
    node.now = at(200, 200);
    let decision = node.decided(&plan).unwrap();
    let status = &decision.statuses()[0];
    assert_eq!(decision.source(), Source::Lease);
    assert_eq!(status.remaining(), in_store.remaining() + 98);
    assert_eq!(status.count() + status.remaining(), 1000);
    assert_eq!(status.reset_after(), in_store.reset_after() - Duration::from_millis(200));
}

#[test]
fn plan_of_two_limits_is_spent_from_both_or_none() {
    let daily = Limit::fixed_window(Quota::per_day(40)).unwrap().named("daily").unwrap();
    let daily = daily.with_lease(LeaseSize::Fixed(NonZeroU32::new(16).unwrap()));
    let (limit, subject) = (limit(), Subject::of(["k"]));
    let keys = [Key::new(&subject, &limit), Key::new(&subject, &daily)];
    let plan = Plan::new(keys.map(|key| Take::new(key, 1))).unwrap();
    let node = Node::new();
    let request = node.request(&plan);
    let reply = node.store.lease(&plan, request.wanted()).unwrap();
    // A quarter of 40 is 10 of the wanted 16, so 63 of the wanted 100.
    assert_eq!(reply.takes().iter().map(|take| take.amount).collect::<Vec<_>>(), [63, 10]);
    request.finish(Some(&reply));
    let decided = (0..20).filter(|_| node.decided(&plan).is_some()).count();
    assert_eq!(decided, 9);
}

/// Spends all quota of the store and of the lease, and notes the refusal of the store at the present time.
fn exceed(node: &Node, plan: &Plan<'_>) {
    assert_eq!(node.lease(plan), 100);
    while node.store.take(plan).is_allowed() {}
    loop {
        match node.spend(plan) {
            LeaseOutcome::Decided(_, Some(request)) => assert_eq!(node.finish(plan, request), 0),
            LeaseOutcome::Decided(_, None) => {}
            LeaseOutcome::NotLeased => break,
            outcome => panic!("{outcome:?} within the pause"),
        }
    }
    let epoch = node.table.epoch(plan, node.now);
    node.table.note_refusal(plan, &node.store.take(plan), epoch);
}

#[test]
fn exceeded_limit_is_refused_without_a_call_for_a_quarter_of_the_hold() {
    let (limit, subject) = (limit(), Subject::of(["k"]));
    let plan = plan(&subject, &limit, 1);
    let mut node = Node::new();
    exceed(&node, &plan);
    for (now, wait) in [(0, 250), (249, 1)] {
        node.now = at(now, now);
        let refusal = node.refused(&plan).unwrap();
        assert_eq!((refusal.is_allowed(), refusal.source()), (false, Source::Cache));
        assert_eq!(refusal.retry_after(), Some(Duration::from_millis(wait)));
    }
    node.now = at(250, 250);
    assert!(matches!(node.spend(&plan), LeaseOutcome::Request(_)));
}

#[test]
fn an_event_ends_a_refusal_of_a_leased_plan() {
    let (limit, subject) = (limit(), Subject::of(["k"]));
    let plan = plan(&subject, &limit, 1);
    let node = Node::new();
    exceed(&node, &plan);
    assert!(node.refused(&plan).is_some());
    node.table.end_subject(":k");
    assert!(node.refused(&plan).is_none());
}

#[test]
fn refusals_of_plans_without_a_lease_are_not_repeated() {
    let (limit, subject) = (limit(), Subject::of(["k"]));
    let plan = plan(&subject, &limit, 1);
    let node = Node::new();
    while node.store.take(&plan).is_allowed() {}
    assert!(node.refused(&plan).is_none());
    node.table.note_refusal(&plan, &node.store.take(&plan), node.table.epoch(&plan, node.now));
    assert!(node.refused(&plan).is_none());
}
