//! Reservations on a real Redis: the same results as in memory.

use std::sync::Arc;
use std::time::Duration;

use tollgate::reservation::{FinalCosts, ReservationToken, Settled};
use tollgate::{Costs, Inline, Limit, Limiter, Policy, Query, Quota, ReserveError, Unit};
use tollgate_redis::RedisStore;
use tollgate_testkit::server::Flavor;

use crate::fixture::{block_on, builder, shared};

type Test = Limiter<RedisStore>;

fn tokens(limit: Limit) -> Limit {
    limit.in_unit(Unit::new("tokens").unwrap()).unwrap()
}

/// Limits that refill too slowly to matter.
fn each_algorithm() -> Vec<Limit> {
    let quota = || Quota::per_day(600);
    [
        Limit::token_bucket(quota()),
        Limit::sliding_window(quota()),
        Limit::sliding_counter(quota()),
        Limit::fixed_window(quota()),
        Limit::calendar_window(600, tollgate::algorithm::CalendarUnit::Year, "UTC"),
    ]
    .map(|limit| tokens(limit.unwrap()))
    .to_vec()
}

fn query(key: &str, limits: Vec<Limit>, amount: u64) -> Query<'static> {
    let inline = Inline::new("", key, limits, 1).unwrap();
    Query::from(inline.with_costs(Costs::of([("tokens", amount)]).unwrap()))
}

async fn reserve(limiter: &Test, key: &str, limit: &Limit, amount: u64) -> ReservationToken {
    limiter.reserve(query(key, vec![limit.clone()], amount)).await.unwrap().detach()
}

async fn settle(limiter: &Test, token: &ReservationToken, amount: u64) -> Settled {
    let finals = FinalCosts::of(Costs::of([("tokens", amount)]).unwrap());
    limiter.settle(token, None, &finals).await.unwrap().unwrap()
}

async fn remaining(limiter: &Test, key: &str, limit: &Limit) -> u64 {
    limiter.peek(query(key, vec![limit.clone()], 1)).await.unwrap().remaining().unwrap()
}

fn amounts(settled: &Settled) -> [u64; 3] {
    let unit = settled.units.iter().find(|unit| unit.unit.as_str() == "tokens").unwrap();
    [unit.charged, unit.refunded, unit.uncollected]
}

fn limiter(flavor: Flavor) -> Test {
    let prefix = crate::fixture::prefix();
    Limiter::new(builder(shared(flavor)).prefix(&prefix).unwrap().build(), Policy::builtin())
}

#[test]
fn settlements_give_back_and_collect_under_each_algorithm() {
    block_on(settle_each_algorithm(limiter(Flavor::Redis)));
}

async fn settle_each_algorithm(limiter: Test) {
    for limit in each_algorithm() {
        let token = reserve(&limiter, "k", &limit, 400).await;
        assert_eq!(remaining(&limiter, "k", &limit).await, 200, "{limit}");
        let first = settle(&limiter, &token, 100).await;
        assert_eq!(amounts(&first), [100, 300, 0], "{limit}");
        assert_eq!(first.limits[0].reply.remaining(), 500, "{limit}");
        let again = settle(&limiter, &token, 7).await;
        assert!(again.is_repeated, "{limit}");
        assert_eq!(again.units, first.units, "{limit}");
        assert_eq!(remaining(&limiter, "k", &limit).await, 500, "{limit}");

        let token = reserve(&limiter, "k", &limit, 100).await;
        let settled = settle(&limiter, &token, 5_000).await;
        assert_eq!(amounts(&settled), [1_100, 0, 3_900], "{limit}");
        assert_eq!(settled.limits[0].reply.debt(), 600, "{limit}");
        let refused = limiter.check(query("k", vec![limit.clone()], 1)).await.unwrap();
        assert!(refused.retry_after().is_some(), "{limit}");
        let deciding = refused.deciding().unwrap();
        assert_eq!(
            (deciding.count(), deciding.remaining(), deciding.debt()),
            (600, 0, 600),
            "{limit}"
        );
    }
}

/// Many streams that use less than they reserved never use more than the limit together.
#[test]
fn concurrent_streams_never_oversell() {
    block_on(async {
        // Two processes, as two stores with one prefix.
        let prefix = crate::fixture::prefix();
        let store = || builder(shared(Flavor::Redis)).prefix(&prefix).unwrap().build();
        let limiters = [0, 1].map(|_| Arc::new(Limiter::new(store(), Policy::builtin())));
        let limit = tokens(Limit::fixed_window(Quota::per_day(10_000)).unwrap());
        let streams = (0..1_000u64).map(|number| {
            let limiter = Arc::clone(&limiters[usize::try_from(number % 2).unwrap()]);
            let limit = limit.clone();
            tokio::spawn(async move {
                let estimate = 40 + number % 50;
                let call = limiter.reserve(query("k", vec![limit], estimate));
                let Ok(reservation) = call.await else { return 0 };
                let used = estimate / 4 + number % 7;
                let settled =
                    reservation.settle(Costs::of([("tokens", used)]).unwrap()).await.unwrap();
                assert_eq!(amounts(&settled)[0], used);
                used
            })
        });
        let mut charged = 0;
        for stream in streams.collect::<Vec<_>>() {
            charged += stream.await.unwrap();
        }
        assert!(charged <= 10_000, "{charged}");
        assert_eq!(remaining(&limiters[0], "k", &limit).await, 10_000 - charged);
    });
}

#[test]
fn a_settlement_counts_once_when_several_nodes_settle_at_once() {
    block_on(async {
        let prefix = crate::fixture::prefix();
        let store = || builder(shared(Flavor::Redis)).prefix(&prefix).unwrap().build();
        let limiters = [0, 1].map(|_| Arc::new(Limiter::new(store(), Policy::builtin())));
        for limit in each_algorithm() {
            let token = reserve(&limiters[0], "k", &limit, 400).await;
            let settlements = (0..10u64).map(|number| {
                let limiter = Arc::clone(&limiters[usize::try_from(number % 2).unwrap()]);
                tokio::spawn(async move { settle(&limiter, &token, 10 * number).await })
            });
            let mut first = Vec::new();
            let mut all = Vec::new();
            for settlement in settlements.collect::<Vec<_>>() {
                let settled = settlement.await.unwrap();
                first.extend((!settled.is_repeated).then(|| settled.units.clone()));
                all.push(settled.units);
            }
            assert_eq!(first.len(), 1, "{limit}");
            assert!(all.iter().all(|units| *units == first[0]), "{limit}");
            let charged = first[0][0].charged;
            assert_eq!(remaining(&limiters[1], "k", &limit).await, 600 - charged, "{limit}");
        }
    });
}

#[test]
fn ids_tokens_and_tenants_are_checked() {
    block_on(async {
        let limiter = limiter(Flavor::Redis);
        let limit = &each_algorithm()[0];
        let call = |amount| limiter.reserve(query("k", vec![limit.clone()], amount)).id("order 1");
        let token = call(100).await.unwrap().detach();
        assert_eq!(call(100).await.unwrap().detach(), token);
        assert!(matches!(call(99).await, Err(ReserveError::IdConflict)));
        assert_eq!(remaining(&limiter, "k", limit).await, 500);
        let cancelled = FinalCosts::cancelled();
        let forged = token.with_secret(token.secret() ^ 1);
        assert_eq!(limiter.settle(&forged, None, &cancelled).await.unwrap(), None);
        assert_eq!(limiter.settle(&token, Some(b"acme"), &cancelled).await.unwrap(), None);
        let unknown = ReservationToken::random();
        assert_eq!(limiter.settle(&unknown, None, &cancelled).await.unwrap(), None);
        assert!(limiter.settle(&token, Some(b""), &cancelled).await.unwrap().is_some());
        assert_eq!(remaining(&limiter, "k", limit).await, 600);
    });
}

#[test]
fn slots_return_with_the_settlement_and_are_extended_by_a_renewal() {
    block_on(async {
        let limiter = limiter(Flavor::Redis);
        let hour = Duration::from_secs(3600);
        let limits = || {
            let slots = Limit::concurrency(1, hour).unwrap();
            vec![slots, tokens(Limit::fixed_window(Quota::per_day(600)).unwrap())]
        };
        let reserve = || limiter.reserve(query("k", limits(), 10)).ttl(Duration::from_secs(600));
        let mut reservation = reserve().await.unwrap();
        assert!(matches!(reserve().await, Err(ReserveError::Refused(_))));
        let before = reservation.expires_at();
        assert!(reservation.renew().await.unwrap().is_some_and(|renewed| renewed >= before));
        let token = reservation.detach();
        let _ = settle(&limiter, &token, 3).await;
        assert_eq!(limiter.renew_reservation(&token, None).await.unwrap(), None);
        assert!(reserve().await.is_ok());
    });
}

#[test]
fn records_and_sums_expire() {
    block_on(async {
        let prefix = crate::fixture::prefix();
        let limiter = Limiter::new(
            builder(shared(Flavor::Redis)).prefix(&prefix).unwrap().build(),
            Policy::builtin(),
        );
        for limit in each_algorithm() {
            let token = reserve(&limiter, "k", &limit, 100).await;
            let _ = settle(&limiter, &token, 40).await;
        }
        let mut raw = shared(Flavor::Redis).raw();
        let keys = raw.call(&["KEYS", &format!("{prefix}*")]).array().to_vec();
        // The counters, their records, and the sum of the token bucket.
        assert!(keys.len() > 10, "{keys:?}");
        for key in keys.iter().map(|key| key.text()) {
            assert!(raw.call(&["PTTL", key]).int() > 0, "{key} expires");
        }
    });
}

#[test]
fn reservations_work_on_a_cluster_from_any_node() {
    block_on(async {
        let url = crate::fixture::shared_cluster(Flavor::Redis).url();
        let prefix = crate::fixture::prefix();
        let store = || crate::fixture::builder_at(&url).prefix(&prefix).unwrap().build();
        let limiters = [0, 1].map(|_| Limiter::new(store(), Policy::builtin()));
        for key in 0..50 {
            let key = format!("key {key}");
            for limit in each_algorithm() {
                let token = reserve(&limiters[0], &key, &limit, 400).await;
                assert_eq!(amounts(&settle(&limiters[1], &token, 100).await), [100, 300, 0]);
                assert_eq!(remaining(&limiters[0], &key, &limit).await, 500);
            }
        }
    });
}
