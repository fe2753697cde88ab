//! Reservations during an outage: granted here and settled there, and the reverse.

use std::pin::pin;
use std::task::{Context, Waker};

use smallvec::SmallVec;
use tollgate::reservation::{Draft, FinalCosts, ReservationToken, Reserved, Settled};
use tollgate::{Costs, Distributed, PermitId};

use super::*;

fn draft(amount: u64) -> Draft {
    Draft {
        token: ReservationToken::random(),
        tenant: Box::default(),
        ttl: Duration::from_secs(60),
        costs: Costs::requests(amount),
        factors: SmallVec::new(),
    }
}

fn reserve(store: &impl Store, plan: &Plan<'_>, draft: &Draft) -> Option<ReservationToken> {
    match block_on(store.reserve(plan, draft)).unwrap() {
        Reserved::Decided(_, record) => record.map(|record| record.token()),
        Reserved::Known(record) => Some(record.token()),
    }
}

fn settle(store: &impl Store, token: &ReservationToken, amount: u64) -> Option<Settled> {
    let finals = FinalCosts::of(Costs::requests(amount));
    block_on(store.settle(token, None, &finals)).unwrap()
}

fn cost<'a>(subject: &'a Subject, limit: &'a Limit, amount: u64) -> Plan<'a> {
    Plan::new([Take::new(Key::new(subject, limit), amount)]).unwrap()
}

#[test]
fn reserved_in_the_store_and_settled_in_an_outage() {
    for limit in every_algorithm(100) {
        let (fleet, subject) = (Fleet::of(2), Subject::of(["k"]));
        let token = reserve(&fleet.nodes[0], &cost(&subject, &limit, 80), &draft(80)).unwrap();
        fleet.lose();
        let settled = settle(&fleet.nodes[1], &token, 30).unwrap();
        assert!(settled.is_degraded && !settled.is_repeated, "{limit}");
        assert_eq!(settled.units[0].charged, 30, "{limit}");
        assert!(settle(&fleet.nodes[1], &token, 0).unwrap().is_repeated, "{limit}");
        assert_eq!(fleet.counted(&limit), 80, "{limit}");
        fleet.restore();
        assert_eq!(fleet.counted(&limit), 30, "{limit}: replayed");
        fleet.restore();
        let again = settle(&fleet.nodes[0], &token, 70).unwrap();
        assert!(again.is_repeated && !again.is_degraded, "{limit}");
        assert_eq!(fleet.counted(&limit), 30, "{limit}: replayed once");
    }
}

#[test]
fn granted_in_an_outage_and_settled_on_its_node() {
    for limit in every_algorithm(100) {
        let (fleet, subject) = (Fleet::of(2), Subject::of(["k"]));
        fleet.lose();
        let node = &fleet.nodes[0];
        assert_eq!(reserve(node, &cost(&subject, &limit, 60), &draft(60)), None, "above the share");
        let token = reserve(node, &cost(&subject, &limit, 40), &draft(40)).unwrap();
        let settled = settle(node, &token, 10).unwrap();
        assert!(settled.is_degraded, "{limit}");
        assert_eq!((settled.units[0].charged, settled.units[0].refunded), (10, 30), "{limit}");
        assert!(settle(node, &token, 0).unwrap().is_repeated, "{limit}");
        fleet.restore();
        assert_eq!(fleet.counted(&limit), 10, "{limit}");
    }
}

#[test]
fn granted_in_an_outage_and_settled_elsewhere_afterwards() {
    for limit in every_algorithm(100) {
        let (fleet, subject) = (Fleet::of(2), Subject::of(["k"]));
        fleet.lose();
        let token = reserve(&fleet.nodes[0], &cost(&subject, &limit, 40), &draft(40)).unwrap();
        fleet.restore();
        assert_eq!(fleet.counted(&limit), 40, "{limit}");
        let settled = settle(&fleet.nodes[1], &token, 55).unwrap();
        assert!(!settled.is_degraded, "{limit}");
        assert_eq!(settled.units[0].charged, 55, "{limit}");
        assert_eq!(fleet.counted(&limit), 55, "{limit}");
        assert!(settle(&fleet.nodes[0], &token, 0).unwrap().is_repeated, "{limit}");
    }
}

#[test]
fn a_settlement_whose_reply_is_lost_counts_once() {
    let (fleet, subject) = (Fleet::of(1), Subject::of(["k"]));
    let limit = Limit::fixed_window(Quota::per_minute(100)).unwrap();
    let token = reserve(&fleet.nodes[0], &cost(&subject, &limit, 80), &draft(80)).unwrap();
    fleet.shared.fail_after(0, StoreFault::ReplyLost);
    assert!(settle(&fleet.nodes[0], &token, 30).unwrap().is_degraded);
    assert_eq!(fleet.counted(&limit), 30);
    fleet.restore();
    assert_eq!(fleet.counted(&limit), 30);
}

#[test]
fn overload_is_an_error_and_an_id_is_known_in_an_outage() {
    let (fleet, subject) = (Fleet::of(1), Subject::of(["k"]));
    let limit = Limit::fixed_window(Quota::per_minute(100)).unwrap();
    let plan = cost(&subject, &limit, 20);
    fleet.shared.set(StoreFault::Overloaded);
    assert!(block_on(fleet.nodes[0].reserve(&plan, &draft(20))).is_err());
    fleet.lose();
    let draft = draft(20);
    let token = reserve(&fleet.nodes[0], &plan, &draft);
    assert!(token.is_some());
    assert_eq!(reserve(&fleet.nodes[0], &plan, &draft), token);
    fleet.restore();
    assert_eq!(fleet.counted(&limit), 20);
}

#[test]
fn slots_of_an_outage_are_released_by_the_settlement() {
    let (fleet, subject) = (Fleet::of(1), Subject::of(["k"]));
    let limit = Limit::concurrency(1, Duration::from_secs(60)).unwrap();
    fleet.lose();
    let plan = || cost(&subject, &limit, 1).with_permit(PermitId::random());
    let token = reserve(&fleet.nodes[0], &plan(), &draft(1)).unwrap();
    assert_eq!(reserve(&fleet.nodes[0], &plan(), &draft(1)), None);
    let renewed = block_on(fleet.nodes[0].renew_reservation(&token, None)).unwrap();
    assert!(renewed.is_some());
    let _ = settle(&fleet.nodes[0], &token, 1).unwrap();
    assert!(reserve(&fleet.nodes[0], &plan(), &draft(1)).is_some());
}

#[test]
fn limits_of_this_node_alone_are_reserved_and_settled_here() {
    let (fleet, subject) = (Fleet::of(2), Subject::of(["k"]));
    let limits = every_algorithm(100);
    let off = Distribution { distributed: Distributed::Off, ..Distribution::default() };
    for shared in [false, true] {
        let (own, other) = (&limits[0], &limits[3]);
        let mut takes = vec![Take::new(Key::new(&subject, own), 40).with_distribution(off)];
        takes.extend(shared.then(|| Take::new(Key::new(&subject, other), 40)));
        let plan = Plan::new(takes).unwrap();
        let token = reserve(&fleet.nodes[0], &plan, &draft(40)).unwrap();
        assert!(settle(&fleet.nodes[1], &token, 1).is_none(), "unknown elsewhere");
        let settled = settle(&fleet.nodes[0], &token, 15).unwrap();
        assert_eq!((settled.units[0].charged, settled.units[0].refunded), (15, 25));
        let in_node = fleet.nodes[0].local().stats(&Key::new(&subject, own)).count();
        assert_eq!(in_node, if shared { 30 } else { 15 });
        assert_eq!(fleet.counted(other), if shared { 15 } else { 0 });
    }
}

#[test]
fn a_settlement_elsewhere_waits_for_the_record_of_the_outage() {
    let (fleet, subject) = (Fleet::of(2), Subject::of(["k"]));
    let limit = Limit::fixed_window(Quota::per_hour(100)).unwrap();
    fleet.lose();
    let token = reserve(&fleet.nodes[0], &cost(&subject, &limit, 40), &draft(40)).unwrap();
    assert!(settle(&fleet.nodes[1], &token, 30).unwrap().is_degraded);
    assert!(settle(&fleet.nodes[1], &token, 5).unwrap().units[0].charged == 30, "the first counts");
    // An outage of any length.
    fleet.wait(300);
    fleet.shared.set(StoreFault::None);
    // The store does not know the reservation yet.
    block_on(fleet.nodes[1].maintain());
    block_on(fleet.nodes[0].maintain());
    assert_eq!(fleet.counted(&limit), 40);
    block_on(fleet.nodes[1].maintain());
    assert_eq!(fleet.counted(&limit), 30);
    assert!(settle(&fleet.nodes[0], &token, 0).unwrap().is_repeated);
}

#[test]
fn a_settlement_of_an_unknown_reservation_is_given_up_after_two_minutes() {
    let (fleet, unknown) = (Fleet::of(1), ReservationToken::random());
    fleet.lose();
    assert!(settle(&fleet.nodes[0], &unknown, 30).unwrap().is_degraded);
    fleet.wait(300);
    for _ in 0..119 {
        fleet.restore();
        fleet.wait(1);
    }
    assert!(settle(&fleet.nodes[0], &unknown, 30).unwrap().is_repeated, "it is kept");
    fleet.restore();
    assert_eq!(settle(&fleet.nodes[0], &unknown, 30), None);
}

#[test]
fn a_settlement_while_the_store_receives_the_record_counts_once() {
    let (fleet, subject) = (Fleet::of(1), Subject::of(["k"]));
    let limit = Limit::fixed_window(Quota::per_minute(100)).unwrap();
    let node = &fleet.nodes[0];
    fleet.lose();
    let token = reserve(node, &cost(&subject, &limit, 40), &draft(40)).unwrap();
    // The probe and the debit succeed, the record is not received.
    fleet.shared.fail_after(2, StoreFault::Unreachable);
    block_on(node.maintain());
    assert_eq!(fleet.counted(&limit), 40);
    fleet.shared.set(StoreFault::Suspended);
    let mut maintain = pin!(node.maintain());
    let mut context = Context::from_waker(Waker::noop());
    assert!(maintain.as_mut().poll(&mut context).is_pending());
    assert!(settle(node, &token, 30).unwrap().is_degraded);
    fleet.shared.set(StoreFault::None);
    assert!(maintain.as_mut().poll(&mut context).is_ready());
    assert_eq!(fleet.counted(&limit), 30);
    assert!(settle(node, &token, 0).unwrap().is_repeated);
    fleet.restore();
    assert_eq!(fleet.counted(&limit), 30);
}
