//! Reservations and their settlement.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::time::Duration;

use tollgate::reservation::{
    Draft, FinalCosts, LimitState, Record, ReservationToken, Reserved, Settled, TakenAmount,
    UnitOutcome,
};
use tollgate::{
    Costs, Key, Limit, Mode, Plan, Status, Store, StoreErrorKind, Subject, Take, Timestamp, Unit,
};

use super::{Fixture, MS, S, at, bucket, permit_id, take, ten_a_minute};
use crate::answer::{Answer, Operation, VerdictKind};
use crate::spec::{Kind, LimitSpec};

/// Algorithms that count amounts.
const COUNTING: [Kind; 5] = [
    Kind::TokenBucket,
    Kind::SlidingWindow,
    Kind::SlidingCounter,
    Kind::FixedWindow,
    Kind::CalendarWindow,
];

/// Microseconds of a time to live.
const TTL: u64 = 60 * S;

/// Returns a token that is the same for the same owner and number.
fn token(owner: &str, number: u64) -> ReservationToken {
    let part = |salt: u64| {
        let mut hasher = DefaultHasher::new();
        (owner, number, salt).hash(&mut hasher);
        hasher.finish()
    };
    let text = format!("r0-{:016x}{:016x}{:016x}{:016x}", part(0), part(1), part(2), part(3));
    text.parse().expect("valid token text")
}

fn draft(token: ReservationToken, costs: Costs, ttl_us: u64) -> Draft {
    let ttl = Duration::from_micros(ttl_us);
    Draft { token, tenant: Box::default(), ttl, costs, factors: Default::default() }
}

fn plan<'a>(keys: &[Key<'a>], cost: u64) -> Plan<'a> {
    Plan::new(keys.iter().map(|key| Take::new(*key, cost))).expect("limits differ")
}

/// Applies an operation on a reservation. Returns the figures of each limit after it.
pub(super) async fn apply(
    fixture: &impl Fixture,
    name: &str,
    limits: &[&Limit],
    operation: Operation,
) -> Vec<Answer> {
    let subject = Subject::of([name]);
    let keys: Vec<Key<'_>> = limits.iter().map(|limit| Key::new(&subject, limit)).collect();
    let (store, peeked) = (fixture.store(), plan(&keys, 0));
    let owner = format!("{name} {}", limits[0].identity());
    let token_of =
        |number: u64| token(&owner, number).with_hint(store.reservation_hint(&plan(&keys, 0)));
    match operation {
        Operation::Reserve { cost, reservation, ttl_us } => {
            let plan = plan(&keys, cost).with_permit(permit_id(reservation));
            let draft = draft(token_of(reservation), Costs::requests(cost), ttl_us);
            let reserved = store.reserve(&plan, &draft).await.expect("store is available");
            if let Reserved::Decided(decision, record) = reserved {
                assert_eq!(record.is_some(), decision.is_allowed());
                return decision.statuses().iter().map(Answer::from).collect();
            }
        }
        Operation::Settle { reservation, amount } => {
            let finals = FinalCosts::of(Costs::requests(amount));
            let settled = store.settle(&token_of(reservation), None, &finals).await;
            if let Some(settled) = settled.expect("store is available") {
                return settlement_answers(&settled, amount);
            }
        }
        Operation::Extend { reservation } => {
            let token = token_of(reservation);
            let _ = store.renew_reservation(&token, None).await.expect("store is available");
        }
        _ => unreachable!("not an operation on a reservation"),
    }
    let peeked = store.peek(&peeked).await.expect("store is available");
    peeked.statuses().iter().map(Answer::from).collect()
}

/// Returns the figures of each limit, with what the settlement changed. Slots are released, not given back.
fn settlement_answers(settled: &Settled, amount: u64) -> Vec<Answer> {
    let UnitOutcome { charged, refunded, uncollected, .. } = &settled.units[0];
    assert!(settled.is_repeated || charged + uncollected == amount, "{settled:?}");
    let answer = |state: &LimitState| {
        let figures = Answer::from(&Status::new(&state.limit, Mode::Enforce, state.reply));
        let counts = !state.limit.algorithm().holds_slots();
        Answer {
            given_back: if counts { *refunded } else { 0 },
            uncollected: if counts { *uncollected } else { 0 },
            repeated: settled.is_repeated,
            ..figures
        }
    };
    settled.limits.iter().map(answer).collect()
}

/// Returns a subject of its own for each limit.
fn subject_of(limit: &Limit) -> String {
    limit.identity()
}

async fn reserve(fixture: &impl Fixture, limit: &Limit, number: u64, cost: u64) -> Answer {
    let operation = Operation::Reserve { cost, reservation: number, ttl_us: TTL };
    apply(fixture, &subject_of(limit), &[limit], operation).await[0]
}

async fn settle(fixture: &impl Fixture, limit: &Limit, number: u64, amount: u64) -> Answer {
    let operation = Operation::Settle { reservation: number, amount };
    apply(fixture, &subject_of(limit), &[limit], operation).await[0]
}

/// A settlement with a lower amount makes the difference available at once.
pub async fn a_settlement_gives_back_what_was_not_used(fixture: &impl Fixture) {
    at(fixture, 0);
    for limit in COUNTING.map(ten_a_minute) {
        assert_eq!(reserve(fixture, &limit, 1, 8).await.remaining, 2, "{limit}");
        let settled = settle(fixture, &limit, 1, 3).await;
        assert_eq!((settled.remaining, settled.given_back), (7, 5), "{limit}");
        assert_eq!((settled.uncollected, settled.debt), (0, 0), "{limit}");
    }
}

/// What was used beyond the estimate is charged, up to one further limit; the rest is not collected.
pub async fn excess_becomes_a_debt_of_at_most_one_limit(fixture: &impl Fixture) {
    at(fixture, 0);
    for limit in COUNTING.map(ten_a_minute) {
        assert!(reserve(fixture, &limit, 1, 4).await.is_allowed());
        let settled = settle(fixture, &limit, 1, 35).await;
        let figures = (settled.count, settled.remaining, settled.debt, settled.uncollected);
        assert_eq!(figures, (10, 0, 10, 15), "{limit}");
        let refused = take(fixture, &subject_of(&limit), &limit, 1).await;
        assert_eq!((refused.verdict, refused.debt), (VerdictKind::Deny, 10), "{limit}");
    }
}

/// The excess of two neighbouring windows together is not more than that of one.
pub async fn a_debt_of_two_windows_is_at_most_one_limit(fixture: &impl Fixture) {
    for limit in COUNTING.map(ten_a_minute) {
        at(fixture, 0);
        assert!(reserve(fixture, &limit, 1, 4).await.is_allowed());
        assert!(reserve(fixture, &limit, 2, 4).await.is_allowed());
        at(fixture, 60 * S - MS);
        let _ = settle(fixture, &limit, 1, 100).await;
        at(fixture, 60 * S);
        let settled = settle(fixture, &limit, 2, 100).await;
        assert!(settled.debt <= 10, "{limit}: {settled:?}");
    }
}

/// A repeated settlement changes nothing and returns the first outcome.
pub async fn only_the_first_settlement_counts(fixture: &impl Fixture) {
    at(fixture, 0);
    for limit in COUNTING.map(ten_a_minute) {
        assert!(reserve(fixture, &limit, 1, 8).await.is_allowed());
        let first = settle(fixture, &limit, 1, 3).await;
        for amount in [0, 3, 8, 100] {
            let again = settle(fixture, &limit, 1, amount).await;
            assert_eq!(again, Answer { repeated: true, ..first }, "{limit}");
        }
        let known = reserve(fixture, &limit, 1, 8).await;
        assert_eq!((known.verdict, known.remaining), (VerdictKind::Allow, 7), "{limit}");
    }
}

/// The amount of a take that has left its window is not given back to later ones.
pub async fn what_has_left_its_window_is_not_given_back(fixture: &impl Fixture) {
    for kind in &COUNTING[1..] {
        let limit = ten_a_minute(*kind);
        at(fixture, 0);
        assert!(reserve(fixture, &limit, 1, 8).await.is_allowed());
        at(fixture, 120 * S);
        assert!(take(fixture, &subject_of(&limit), &limit, 6).await.is_allowed());
        let settled = settle(fixture, &limit, 1, 0).await;
        assert_eq!((settled.given_back, settled.remaining), (0, 4), "{limit}");
    }
}

/// With 100 tokens and 10/s: what refilled since the take is not given back a second time.
pub async fn a_bucket_gives_back_no_refill(fixture: &impl Fixture) {
    let limit = bucket(100, 10);
    at(fixture, 0);
    assert!(reserve(fixture, &limit, 1, 50).await.is_allowed());
    at(fixture, 4_900 * MS);
    assert!(take(fixture, &subject_of(&limit), &limit, 99).await.is_allowed());
    let settled = settle(fixture, &limit, 1, 0).await;
    assert_eq!((settled.given_back, settled.remaining), (1, 1));
}

/// A refused reservation can be retried under its number, and cannot be settled.
pub async fn a_refused_reservation_takes_nothing_and_is_unknown(fixture: &impl Fixture) {
    at(fixture, 0);
    for limit in COUNTING.map(ten_a_minute) {
        let name = &subject_of(&limit);
        assert!(take(fixture, name, &limit, 7).await.is_allowed());
        let refused = reserve(fixture, &limit, 1, 4).await;
        assert_eq!((refused.verdict, refused.remaining), (VerdictKind::Deny, 3), "{limit}");
        assert_eq!(settle(fixture, &limit, 1, 0).await.given_back, 0, "{limit}");
        assert_eq!(reserve(fixture, &limit, 1, 3).await.remaining, 0, "{limit}");
        assert_eq!(settle(fixture, &limit, 1, 0).await.given_back, 3, "{limit}");
    }
}

/// Reserves costs under limits of one subject, and returns the record.
async fn reserve_costs(
    fixture: &impl Fixture,
    limits: &[Limit],
    costs: &Costs,
    tenant: &[u8],
) -> Option<Record> {
    let subject = Subject::of(["plan"]);
    let cost = |limit: &Limit| match limit.ttl() {
        Some(_) => 1,
        None => costs.get(limit.unit()),
    };
    let takes = limits.iter().map(|limit| Take::new(Key::new(&subject, limit), cost(limit)));
    let plan = Plan::new(takes).expect("limits differ").with_permit(permit_id(77));
    let token = ReservationToken::random();
    let token = token.with_hint(fixture.store().reservation_hint(&plan));
    let draft = Draft { tenant: tenant.into(), ..draft(token, costs.clone(), TTL) };
    match fixture.store().reserve(&plan, &draft).await.expect("store is available") {
        Reserved::Decided(_, record) => record,
        Reserved::Known(record) => panic!("a random token is known: {record:?}"),
    }
}

async fn settle_token(
    fixture: &impl Fixture,
    token: &ReservationToken,
    tenant: Option<&[u8]>,
    finals: &FinalCosts,
) -> Option<Settled> {
    fixture.store().settle(token, tenant, finals).await.expect("store is available")
}

/// Limits of requests, tokens and slots.
fn units() -> [Limit; 3] {
    let tokens = LimitSpec::new(Kind::FixedWindow, 100, 60 * S).build().expect("valid limit");
    let tokens = tokens.in_unit(Unit::new("tokens").expect("a valid unit"));
    let tokens = tokens.and_then(|limit| limit.named("tokens")).expect("a valid name");
    let slots = Limit::concurrency(2, Duration::from_secs(30)).expect("valid limit");
    [ten_a_minute(Kind::TokenBucket), tokens, slots]
}

fn costs(requests: u64, tokens: u64) -> Costs {
    Costs::requests(requests).and("tokens", tokens).expect("a valid unit")
}

async fn remaining(fixture: &impl Fixture, limits: &[Limit]) -> Vec<u64> {
    let subject = Subject::of(["plan"]);
    let takes = limits.iter().map(|limit| Take::new(Key::new(&subject, limit), 0));
    let plan = Plan::new(takes).expect("limits differ");
    let peeked = fixture.store().peek(&plan).await.expect("store is available");
    peeked.statuses().iter().map(Status::remaining).collect()
}

/// A token with another secret, or of another tenant, settles and renews nothing.
pub async fn a_wrong_secret_or_tenant_is_unknown(fixture: &impl Fixture) {
    let limits = units();
    at(fixture, 0);
    let record = reserve_costs(fixture, &limits, &costs(2, 40), b"acme").await;
    let token = record.expect("there is room").token();
    let forged = token.with_secret(token.secret() ^ 1);
    let finals = FinalCosts::cancelled();
    for (token, tenant) in
        [(forged, None), (forged, Some(&b"acme"[..])), (token, Some(b"other")), (token, Some(b""))]
    {
        assert_eq!(settle_token(fixture, &token, tenant, &finals).await, None);
        let renewed = fixture.store().renew_reservation(&token, tenant).await;
        assert_eq!(renewed.expect("store is available"), None);
    }
    assert_eq!(remaining(fixture, &limits).await, [8, 60, 1]);
    assert!(settle_token(fixture, &token, Some(b"acme"), &finals).await.is_some());
    assert_eq!(remaining(fixture, &limits).await, [10, 100, 2]);
}

/// A plan that one limit refuses takes nothing from the others.
pub async fn all_limits_of_a_plan_are_reserved_or_none(fixture: &impl Fixture) {
    let limits = units();
    at(fixture, 0);
    for refused in [costs(11, 1), costs(1, 101)] {
        assert_eq!(reserve_costs(fixture, &limits, &refused, b"").await, None);
        assert_eq!(remaining(fixture, &limits).await, [10, 100, 2]);
    }
    let record = reserve_costs(fixture, &limits, &costs(1, 60), b"").await;
    let token = record.expect("there is room").token();
    assert_eq!(remaining(fixture, &limits).await, [9, 40, 1]);
    assert_eq!(reserve_costs(fixture, &limits, &costs(1, 60), b"").await, None);
    let used = FinalCosts::of(Costs::of([("tokens", 10)]).expect("a valid unit"));
    let settled = settle_token(fixture, &token, None, &used).await.expect("it is known");
    let amounts: Vec<_> =
        settled.units.iter().map(|unit| (unit.charged, unit.refunded, unit.uncollected)).collect();
    assert_eq!(amounts, [(1, 0, 0), (10, 50, 0)], "requests keep their estimate");
    assert_eq!(remaining(fixture, &limits).await, [9, 90, 2]);
}

/// An unsettled reservation loses its slots at exactly its time to live, and stays charged.
pub async fn slots_are_released_by_the_settlement_and_expire_with_the_ttl(fixture: &impl Fixture) {
    let slots = Limit::concurrency(2, Duration::from_secs(30)).expect("valid limit");
    at(fixture, 0);
    let hold = |number, ttl_us| Operation::Reserve { cost: 1, reservation: number, ttl_us };
    for (number, ttl_us, remaining) in [(1, 5 * S, 1), (2, 100 * S, 0)] {
        let reserved = apply(fixture, "k", &[&slots], hold(number, ttl_us)).await[0];
        assert_eq!((reserved.is_allowed(), reserved.remaining), (true, remaining));
    }
    at(fixture, 5 * S - 1);
    let refused = apply(fixture, "k", &[&slots], hold(3, TTL)).await[0];
    assert_eq!((refused.verdict, refused.retry_after_us), (VerdictKind::Deny, Some(1)));
    at(fixture, 5 * S);
    assert!(apply(fixture, "k", &[&slots], hold(3, TTL)).await[0].is_allowed());
    // The first one is settled after it has expired, which releases no slot of another.
    for (number, remaining) in [(1, 0), (2, 1), (2, 1), (3, 2)] {
        let settle = Operation::Settle { reservation: number, amount: 1 };
        let settled = apply(fixture, "k", &[&slots], settle).await[0];
        assert_eq!(settled.remaining, remaining, "reservation {number}");
    }
}

/// A renewal extends the reservation by its time to live, and its slots; a settled or expired one cannot be renewed.
pub async fn a_renewal_extends_the_reservation_and_its_slots(fixture: &impl Fixture) {
    let limits = units();
    at(fixture, 0);
    let record = reserve_costs(fixture, &limits, &costs(1, 40), b"").await.expect("there is room");
    let token = record.token();
    assert_eq!(record.expires_at(), Timestamp::from_micros(30 * S), "the ttl of the slots");
    at(fixture, 20 * S);
    let renew = || fixture.store().renew_reservation(&token, None);
    let renewed = renew().await.expect("store is available");
    assert_eq!(renewed, Some(Timestamp::from_micros(50 * S)));
    at(fixture, 50 * S - 1);
    assert_eq!(remaining(fixture, &limits).await[2], 1);
    at(fixture, 50 * S);
    assert_eq!(remaining(fixture, &limits).await[2], 2);
    assert_eq!(renew().await.expect("store is available"), None, "the slot is lost");
    assert!(settle_token(fixture, &token, None, &FinalCosts::cancelled()).await.is_some());
    assert_eq!(renew().await.expect("store is available"), None, "it is settled");
}

/// A cancellation returns the amounts of every unit.
pub async fn a_cancelled_reservation_returns_every_unit(fixture: &impl Fixture) {
    let limits = units();
    at(fixture, 0);
    let record = reserve_costs(fixture, &limits, &costs(3, 40), b"").await.expect("there is room");
    let cancelled = FinalCosts::cancelled();
    let settled = settle_token(fixture, &record.token(), None, &cancelled).await;
    let settled = settled.expect("it is known");
    assert!(settled.units.iter().all(|unit| unit.charged == 0), "{settled:?}");
    assert_eq!(remaining(fixture, &limits).await, [10, 100, 2]);
}

/// A record that a node granted in an outage can be settled in the store that has counted its takes meanwhile, beside other
/// takes of the same time.
pub async fn an_adopted_reservation_is_settled_here(fixture: &impl Fixture) {
    let subject = Subject::of(["plan"]);
    for kind in [Kind::SlidingWindow, Kind::SlidingCounter] {
        let limit = LimitSpec::new(kind, 100, 60 * S).build().expect("valid limit");
        let cost =
            |cost| Plan::new([Take::new(Key::new(&subject, &limit), cost)]).expect("one limit");
        at(fixture, 0);
        let granted = cost(40);
        let token = ReservationToken::random();
        let token = token.with_hint(fixture.store().reservation_hint(&granted));
        let draft = Draft { tenant: (*b"acme").into(), ..draft(token, Costs::requests(40), TTL) };
        let taken = |_: usize, _: &Take<'_>| Some(TakenAmount::default());
        let record = Record::new(draft, &granted, Timestamp::from_micros(0), taken);
        let age = Duration::from_secs(3);
        at(fixture, 3 * S);
        let _ = fixture.store().take(&cost(1)).await.expect("store is available");
        for debit in [cost(10), granted] {
            let _ = fixture.store().debit(&debit, age).await.expect("store is available");
        }
        for _ in 0..2 {
            match fixture.store().adopt_reservation(&record, age).await {
                // A store in front of another one that adopts.
                Err(error) if error.kind() == StoreErrorKind::Unsupported => return,
                adopted => adopted.expect("store is available"),
            }
        }
        let used = FinalCosts::of(Costs::requests(15));
        assert_eq!(settle_token(fixture, &token, Some(b"other"), &used).await, None);
        for is_repeated in [false, true] {
            let settled = settle_token(fixture, &token, Some(b"acme"), &used).await;
            assert_eq!(settled.expect("it was adopted").is_repeated, is_repeated);
            let left = remaining(fixture, std::slice::from_ref(&limit)).await;
            assert_eq!(left, [74], "{limit}: 25 of 40 are given back");
        }
    }
}
