//! Reservations in the memory store: what they take, and what their settlement gives back.

use std::future::IntoFuture;
use std::time::Duration;

use tollgate::reservation::{FinalCosts, Settled};
use tollgate::{
    Costs, Inline, Limit, Limiter, ManualClock, MemoryStore, Policy, Query, Quota,
    ReservationTerms, ReserveError, Timestamp, Unit,
};
use tollgate_testkit::runtime::block_on;

type Test = Limiter<MemoryStore<ManualClock>>;

fn limiter() -> (Test, ManualClock) {
    let clock = ManualClock::new();
    let store = MemoryStore::builder().clock(clock.clone()).build();
    (Limiter::new(store, Policy::builtin()), clock)
}

fn tokens(limit: Limit) -> Limit {
    limit.in_unit(Unit::new("tokens").unwrap()).unwrap()
}

fn bucket() -> Limit {
    tokens(Limit::token_bucket(Quota::per_minute(600)).unwrap())
}

fn query(limits: Vec<Limit>, amount: u64) -> Query<'static> {
    let inline = Inline::new("", "k", limits, 1).unwrap();
    Query::from(inline.with_costs(Costs::of([("tokens", amount)]).unwrap()))
}

fn remaining(limiter: &Test, limits: Vec<Limit>) -> u64 {
    block_on(limiter.peek(query(limits, 1)).into_future()).unwrap().remaining().unwrap()
}

fn of(amount: u64) -> FinalCosts {
    FinalCosts::of(Costs::of([("tokens", amount)]).unwrap())
}

fn amounts(settled: &Settled) -> [u64; 3] {
    let unit = settled.units.iter().find(|unit| unit.unit.as_str() == "tokens").unwrap();
    [unit.charged, unit.refunded, unit.uncollected]
}

fn reserve(
    limiter: &Test,
    limits: Vec<Limit>,
    amount: u64,
) -> tollgate::reservation::ReservationToken {
    block_on(limiter.reserve(query(limits, amount)).into_future()).unwrap().detach()
}

fn settle(limiter: &Test, token: &tollgate::reservation::ReservationToken, amount: u64) -> Settled {
    block_on(limiter.settle(token, None, &of(amount))).unwrap().unwrap()
}

fn each_algorithm() -> Vec<Limit> {
    let quota = || Quota::per_minute(600);
    let day = tollgate::algorithm::CalendarUnit::Day;
    [
        Limit::token_bucket(quota()),
        Limit::sliding_window(quota()),
        Limit::sliding_counter(quota()),
        Limit::fixed_window(quota()),
        Limit::calendar_window(600, day, "UTC"),
    ]
    .map(|limit| tokens(limit.unwrap()))
    .to_vec()
}

#[test]
fn unused_quota_is_returned_under_each_algorithm() {
    for limit in each_algorithm() {
        let (limiter, _) = limiter();
        let token = reserve(&limiter, vec![limit.clone()], 400);
        assert_eq!(remaining(&limiter, vec![limit.clone()]), 200, "{limit}");
        assert_eq!(amounts(&settle(&limiter, &token, 100)), [100, 300, 0], "{limit}");
        assert_eq!(remaining(&limiter, vec![limit.clone()]), 500, "{limit}");
    }
}

#[test]
fn usage_above_the_estimate_becomes_a_debt_of_at_most_one_limit() {
    for limit in each_algorithm() {
        let (limiter, _) = limiter();
        let token = reserve(&limiter, vec![limit.clone()], 400);
        let settled = settle(&limiter, &token, 2_000);
        assert_eq!(amounts(&settled), [1_200, 0, 800], "{limit}");
        let reply = settled.limits[0].reply;
        assert_eq!((reply.remaining(), reply.debt()), (0, 600), "{limit}");
        let refused = block_on(limiter.check(query(vec![limit.clone()], 1)).into_future()).unwrap();
        assert!(!refused.is_allowed() && refused.retry_after().is_some(), "{limit}");
        assert_eq!(refused.deciding().unwrap().debt(), 600, "{limit}");
        assert_eq!(refused.deciding().unwrap().count(), 600, "{limit}");
        let free = block_on(limiter.check(query(vec![limit.clone()], 0)).into_future()).unwrap();
        assert!(free.is_allowed(), "{limit}: a cost of 0 passes");
    }
}

/// Excess in two neighbouring windows adds up in the estimate of a sliding counter.
#[test]
fn a_debt_of_two_windows_is_at_most_one_limit() {
    for limit in each_algorithm() {
        let (limiter, clock) = limiter();
        let tokens = [0, 1].map(|_| reserve(&limiter, vec![limit.clone()], 100));
        clock.set(Timestamp::from_micros(59_999_999));
        let _ = settle(&limiter, &tokens[0], 2_000);
        clock.set(Timestamp::from_micros(60_000_000));
        let settled = settle(&limiter, &tokens[1], 2_000);
        let debt = settled.limits[0].reply.debt();
        assert!(debt <= 600, "{limit}: {debt}");
        let [charged, refunded, uncollected] = amounts(&settled);
        assert_eq!((refunded, charged + uncollected), (0, 2_000), "{limit}");
    }
}

#[test]
fn a_refund_repays_a_debt() {
    for limit in each_algorithm() {
        for (refund, left) in [(700, 100), (1_200, 600), (u64::MAX, 600)] {
            let (limiter, _) = limiter();
            let token = reserve(&limiter, vec![limit.clone()], 400);
            let _ = settle(&limiter, &token, 1_200);
            let query = query(vec![limit.clone()], refund);
            let refunded = block_on(limiter.refund(query).into_future()).unwrap();
            assert_eq!(refunded.remaining(), Some(left), "{limit}: {refund}");
        }
    }
}

#[test]
fn the_time_of_a_debt_is_exact() {
    for limit in each_algorithm() {
        let (limiter, clock) = limiter();
        let token = reserve(&limiter, vec![limit.clone()], 400);
        let _ = settle(&limiter, &token, 900);
        let check =
            || block_on(limiter.check(query(vec![limit.clone()], 1)).into_future()).unwrap();
        let wait = check().retry_after().unwrap();
        clock.advance(wait - Duration::from_micros(1));
        assert!(!check().is_allowed(), "{limit}: 1 µs before {wait:?}");
        clock.advance(Duration::from_micros(1));
        assert!(check().is_allowed(), "{limit} after {wait:?}");
    }
}

#[test]
fn only_the_first_settlement_counts() {
    let (limiter, _) = limiter();
    let token = reserve(&limiter, vec![bucket()], 400);
    let first = settle(&limiter, &token, 100);
    for _ in 0..10 {
        let again = settle(&limiter, &token, 0);
        assert!(again.is_repeated && !first.is_repeated);
        assert_eq!(again.units, first.units);
    }
    assert_eq!(remaining(&limiter, vec![bucket()]), 500);
}

#[test]
fn a_window_that_has_passed_gets_nothing_back() {
    let limits = each_algorithm();
    for limit in &limits[..4] {
        let (limiter, clock) = limiter();
        // At the beginning of a window, so that a sliding counter has no part of it left after two.
        let token = reserve(&limiter, vec![limit.clone()], 400);
        clock.advance(Duration::from_secs(120));
        let take = block_on(limiter.check(query(vec![limit.clone()], 600)).into_future()).unwrap();
        assert!(take.is_allowed(), "{limit}");
        let settled = block_on(limiter.settle(&token, None, &of(0))).unwrap();
        // The record has ended, or nothing is given back.
        assert!(settled.is_none_or(|settled| amounts(&settled) == [0, 0, 0]), "{limit}");
        assert_eq!(remaining(&limiter, vec![limit.clone()]), 0, "{limit}");
    }
}

/// A bucket that refilled while a reservation was open must not get the refilled part again.
#[test]
fn refilled_quota_is_not_given_back() {
    let (limiter, clock) = limiter();
    let first = reserve(&limiter, vec![bucket()], 300);
    let second = reserve(&limiter, vec![bucket()], 300);
    // The first settlement empties what the second one would need to be covered.
    assert_eq!(amounts(&settle(&limiter, &first, 0)), [0, 300, 0]);
    // 10 tokens/s: all but 1 of the 300 that still count have refilled.
    clock.advance(Duration::from_millis(29_900));
    assert_eq!(remaining(&limiter, vec![bucket()]), 599);
    let take = block_on(limiter.check(query(vec![bucket()], 599)).into_future()).unwrap();
    assert!(take.is_allowed());
    assert_eq!(amounts(&settle(&limiter, &second, 0)), [0, 1, 0]);
    assert_eq!(remaining(&limiter, vec![bucket()]), 1);
}

#[test]
fn an_id_is_reserved_once_and_only_with_its_costs() {
    let (limiter, _) = limiter();
    let terms = ReservationTerms::default().id("order-1").unwrap();
    let reserve = |amount: u64, key: &str| {
        let inline = Inline::new("", key, vec![bucket()], 1).unwrap();
        let query = Query::from(inline.with_costs(Costs::of([("tokens", amount)]).unwrap()));
        block_on(limiter.reserve_with(&query, &terms, |outcome| {
            (outcome.record.map(tollgate::reservation::Record::token), outcome.is_repeated)
        }))
    };
    let (first, repeated) = reserve(100, "k").unwrap();
    assert!(!repeated);
    assert_eq!(reserve(100, "k").unwrap(), (first, true));
    assert_eq!(remaining(&limiter, vec![bucket()]), 500);
    assert!(matches!(reserve(101, "k"), Err(ReserveError::IdConflict)));
    let (other, repeated) = reserve(100, "k2").unwrap();
    assert!(other != first && !repeated);
}

#[test]
fn a_refused_reservation_is_not_remembered() {
    let (limiter, clock) = limiter();
    let _ = block_on(limiter.check(query(vec![bucket()], 600)).into_future()).unwrap();
    let try_reserve = || {
        let call = limiter.reserve(query(vec![bucket()], 600)).id("a");
        block_on(call.into_future()).map(tollgate::Reservation::detach)
    };
    assert!(matches!(try_reserve(), Err(ReserveError::Refused(_))));
    clock.advance(Duration::from_secs(60));
    assert!(try_reserve().is_ok());
}

#[test]
fn a_token_of_another_tenant_or_secret_is_unknown() {
    let (limiter, _) = limiter();
    let inline = Inline::new("acme", "k", vec![bucket()], 1).unwrap();
    let query = Query::from(inline.with_costs(Costs::of([("tokens", 9)]).unwrap()));
    let token = block_on(limiter.reserve(query).into_future()).unwrap().detach();
    let settle = |token, tenant: Option<&str>| {
        block_on(limiter.settle(&token, tenant.map(str::as_bytes), &of(1))).unwrap()
    };
    assert_eq!(settle(token.with_secret(token.secret() ^ 1), None), None);
    assert_eq!(settle(token, Some("other")), None);
    assert_eq!(settle(token, Some("")), None);
    assert_eq!(amounts(&settle(token, Some("acme")).unwrap()), [1, 8, 0]);
}

#[test]
fn slots_are_held_until_the_reservation_is_settled_or_expires() {
    let (limiter, clock) = limiter();
    let slots = || Limit::concurrency(1, Duration::from_secs(60)).unwrap();
    let both = || vec![bucket(), slots()];
    let try_reserve = |ttl: u64| {
        let call = limiter.reserve(query(both(), 10)).ttl(Duration::from_secs(ttl));
        block_on(call.into_future()).map(tollgate::Reservation::detach)
    };
    let first = try_reserve(10).unwrap();
    assert!(try_reserve(10).is_err());
    clock.advance(Duration::from_secs(9));
    let renewed = block_on(limiter.renew_reservation(&first, None)).unwrap();
    assert_eq!(renewed, Some(clock_now(&clock) + Duration::from_secs(10)));
    clock.advance(Duration::from_micros(9_999_999));
    assert!(try_reserve(10).is_err(), "held until it expires");
    clock.advance(Duration::from_micros(1));
    let second = try_reserve(3600).unwrap();
    // The first one can still be settled; its slot is not the second one's.
    assert_eq!(amounts(&settle(&limiter, &first, 4))[0], 4);
    assert!(try_reserve(10).is_err(), "the slot of the second reservation is held");
    let _ = settle(&limiter, &second, 1);
    assert!(try_reserve(10).is_ok(), "released by the settlement");
}

fn clock_now(clock: &ManualClock) -> Timestamp {
    tollgate::Clock::now(clock)
}

#[test]
fn a_settled_reservation_cannot_be_renewed_and_a_dropped_one_stays_charged() {
    let (limiter, _) = limiter();
    drop(block_on(limiter.reserve(query(vec![bucket()], 400)).into_future()).unwrap());
    assert_eq!(remaining(&limiter, vec![bucket()]), 200);
    let token = reserve(&limiter, vec![bucket()], 100);
    let _ = settle(&limiter, &token, 100);
    assert_eq!(block_on(limiter.renew_reservation(&token, None)).unwrap(), None);
}

#[test]
fn rules_multiply_requests_of_a_settlement_too() {
    let text = "version: 1\nrules: [{ name: api, per: [client], cost: 3, limits: [{ rate: 100/min, \
                algorithm: token_bucket }, { rate: 1000/min, unit: tokens, algorithm: token_bucket }] }]";
    let policy = Policy::from_yaml("p", text, Policy::builtin_limit()).unwrap();
    let limiter = Limiter::new(MemoryStore::builder().clock(ManualClock::new()).build(), policy);
    let facts = tollgate::Facts::of([("client", "c1")]).unwrap();
    let costs = Costs::requests(10).and("tokens", 200).unwrap();
    let reservation = block_on(limiter.reserve(&facts).costs(costs).into_future()).unwrap();
    let used = Costs::requests(2).and("tokens", 50).unwrap();
    let settled = block_on(reservation.settle(used)).unwrap();
    let units = settled.units.iter().map(|unit| (unit.unit.as_str(), unit.charged, unit.refunded));
    assert_eq!(units.collect::<Vec<_>>(), [("requests", 2, 8), ("tokens", 50, 150)]);
    let remaining: Vec<u64> = settled.limits.iter().map(|limit| limit.reply.remaining()).collect();
    assert_eq!(remaining, [94, 950]);
}

#[test]
fn cancelled_reservations_return_everything() {
    let (limiter, _) = limiter();
    let reservation = block_on(limiter.reserve(query(vec![bucket()], 400)).into_future()).unwrap();
    let settled = block_on(reservation.cancel()).unwrap();
    assert_eq!(amounts(&settled), [0, 400, 0]);
    assert_eq!(remaining(&limiter, vec![bucket()]), 600);
}

#[test]
fn terms_out_of_range_are_errors() {
    let terms = ReservationTerms::default;
    assert!(matches!(terms().ttl(Duration::ZERO), Err(ReserveError::Ttl)));
    assert!(matches!(terms().ttl(Duration::from_secs(86_401)), Err(ReserveError::Ttl)));
    assert!(terms().ttl(Duration::from_secs(86_400)).is_ok());
    assert!(matches!(terms().id(&"a".repeat(65)), Err(ReserveError::Id)));
    assert!(terms().id(&"a".repeat(64)).is_ok());
}

/// A larger count would not be exact, and a snapshot with it would not load.
#[test]
fn a_debt_stays_within_the_exact_numbers() {
    let most = (1 << 53) - 1;
    let (limiter, _) = limiter();
    let limit = tokens(Limit::fixed_window(Quota::per_minute(most)).unwrap());
    for _ in 0..3 {
        let token = reserve(&limiter, vec![limit.clone()], 0);
        let reply = settle(&limiter, &token, most).limits[0].reply;
        assert!(reply.debt() <= 1, "{reply:?}");
    }
    let mut bytes = Vec::new();
    limiter.store().save(&mut bytes).unwrap();
    let copy = MemoryStore::builder().clock(ManualClock::new()).build();
    assert_eq!(copy.restore(&bytes).unwrap(), 1);
}

#[test]
fn units_that_were_not_reserved_never_displace_the_others() {
    let units = |prefix: &str, count: u64| -> Vec<(String, u64)> {
        (0..count).map(|number| (format!("{prefix}{number}"), 5)).collect()
    };
    let estimate = Costs::of(units("u", 15)).unwrap();
    let mut used = units("v", 3);
    used.push(("u0".to_owned(), 1));
    let finals = FinalCosts::of(Costs::of(used).unwrap()).of_estimate(&estimate);
    assert_eq!(finals.get(&Unit::new("u0").unwrap()), 1);
    assert_eq!(finals.iter().count(), 15);
}
