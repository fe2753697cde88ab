//! Leases: a node spends quota that it took in advance, without calls, and the fleet stays within the limit.

use std::num::NonZeroU32;
use std::time::{Duration, Instant};

use tollgate::lease::WantedLease;
use tollgate::{
    Decision, Key, LeaseSize, Limit, Plan, Quota, Source, Store, Subject, Take, Timestamp,
};
use tollgate_redis::{RedisStore, Scripting};
use tollgate_testkit::conformance::Fixture;
use tollgate_testkit::server::{Flavor, Server};
use tollgate_testkit::wait::eventually;

use crate::fixture::{
    Timed, block_on, builder, builder_at, limits_of_each_algorithm, plan, script_calls,
    shared_cluster,
};

/// Limits of each algorithm with leases, with windows of a century. Concurrency limits are never leased.
fn leased_limits(count: u64) -> Vec<Limit> {
    let limits = limits_of_each_algorithm(count).into_iter();
    let limits = limits.filter(|limit| limit.ttl().is_none());
    limits.map(|limit| limit.with_lease(LeaseSize::Auto)).collect()
}

pub(crate) fn hourly(count: u64) -> Limit {
    let limit = Limit::token_bucket(Quota::per_hour(count)).unwrap().named("hourly").unwrap();
    limit.with_lease(LeaseSize::Auto)
}

pub(crate) fn take<'a>(store: &RedisStore, subject: &'a Subject, limit: &'a Limit) -> Decision<'a> {
    block_on(store.take(&plan(subject, limit, 1))).unwrap()
}

/// Takes until a lease decides. Returns the number of admissions.
pub(crate) fn take_until_leased(store: &RedisStore, subject: &Subject, limit: &Limit) -> u64 {
    let mut admitted = 0;
    eventually("a lease decides", || {
        let decision = take(store, subject, limit);
        admitted += u64::from(decision.is_allowed());
        decision.source() == Source::Lease
    });
    admitted
}

#[test]
fn hot_key_is_decided_without_calls_and_exactly() {
    let server = Server::start(Flavor::Redis);
    let (store, mut raw) = (builder(&server).build(), server.raw());
    let subject = Subject::of(["hot"]);
    for limit in leased_limits(50_000) {
        let mut admitted = take_until_leased(&store, &subject, &limit);
        let before = script_calls(&mut raw);
        let (mut leased, started) = (0_u64, Instant::now());
        for _ in 0..20_000 {
            let decision = take(&store, &subject, &limit);
            assert!(decision.is_allowed(), "{}", limit.algorithm());
            leased += u64::from(decision.source() == Source::Lease);
            admitted += 1;
        }
        let calls = script_calls(&mut raw) - before;
        // A busy machine may take longer than a lease lasts: then each lease serves fewer decisions.
        let max_calls = 200 + 40 * (started.elapsed().as_secs() + 1);
        assert!(calls <= max_calls, "{}: {calls} calls", limit.algorithm());
        assert!(leased > 10_000, "{}: {leased} leased", limit.algorithm());
        while take(&store, &subject, &limit).is_allowed() {
            admitted += 1;
        }
        assert!(admitted <= 50_000, "{}: {admitted}", limit.algorithm());
        let stats = store.lease_stats();
        assert!(stats.spent + stats.dropped <= stats.granted + stats.refunded, "{stats:?}");
    }
}

/// What was left in Redis at the last grant and what is left in the lease remains: until a decision is made without the
/// lease, that is the limit less all admissions.
#[test]
fn leased_figures_are_exact_on_one_node() {
    let server = Server::start(Flavor::Redis);
    let store = builder(&server).build();
    let size = LeaseSize::Fixed(NonZeroU32::new(100).unwrap());
    let limit = leased_limits(10_000).remove(3).with_lease(size);
    let mut compared = 0;
    for nth in 0..50 {
        let subject = Subject::of([format!("figures{nth}")]);
        for admitted in 1..60 {
            let decision = take(&store, &subject, &limit);
            let is_leased = decision.source() == Source::Lease;
            // The first decisions show the demand. A slow machine may lose a lease to its end.
            if admitted > 17 && !is_leased || store.lease_stats().dropped > 0 {
                break;
            }
            assert_eq!(decision.remaining(), Some(10_000 - admitted), "after {admitted}");
            compared += u64::from(is_leased);
        }
    }
    eventually("figures are compared", || compared > 0);
}

#[test]
fn cold_keys_cost_one_call_each() {
    let server = Server::start(Flavor::Redis);
    let (store, mut raw) = (builder(&server).build(), server.raw());
    let limit = hourly(1000);
    take_until_leased(&store, &Subject::of(["hot"]), &limit);
    eventually("no request is in flight", || store.lease_stats().grants > 0);
    let before = script_calls(&mut raw);
    for nth in 0..500 {
        let subject = Subject::of([format!("cold{nth}")]);
        assert_eq!(take(&store, &subject, &limit).source(), Source::Store);
    }
    let calls = script_calls(&mut raw) - before;
    assert!((499..=502).contains(&calls), "{calls} calls");
}

#[test]
fn several_nodes_stay_within_each_limit() {
    let server = Server::start(Flavor::Redis);
    let stores: Vec<RedisStore> = (0..4).map(|_| builder(&server).build()).collect();
    let subject = Subject::of(["shared"]);
    for limit in leased_limits(20_000) {
        let mut admitted = 0;
        for nth in 0..60_000_usize {
            // Demand moves between the nodes.
            let store = &stores[nth / 500 % stores.len()];
            admitted += u64::from(take(store, &subject, &limit).is_allowed());
        }
        let dropped: u64 = stores.iter().map(|store| store.lease_stats().dropped).sum();
        let held: u64 = stores.iter().map(|store| store.lease_stats().granted).sum();
        assert!(admitted <= 20_000, "{}: {admitted}", limit.algorithm());
        assert!(held > 0 && admitted + dropped >= 19_000, "{}: {admitted}", limit.algorithm());
        stores.iter().for_each(|store| block_on(store.reset(&Key::new(&subject, &limit))).unwrap());
    }
}

#[test]
fn plan_of_two_limits_leases_both_or_none() {
    let server = Server::start(Flavor::Redis);
    let store = builder(&server).build();
    let subject = Subject::of(["two"]);
    let limits = [hourly(5000), Limit::fixed_window(Quota::per_day(3000)).unwrap()];
    let [hour, day] = limits.map(|limit| limit.with_lease(LeaseSize::Auto));
    let both = || {
        let takes = [&hour, &day].map(|limit| Take::new(Key::new(&subject, limit), 1));
        block_on(store.take(&Plan::new(takes).unwrap())).unwrap().is_allowed()
    };
    let admitted = (0..10_000).filter(|_| both()).count();
    assert!(admitted <= 3000, "{admitted}");
    let stats = store.lease_stats();
    assert!(stats.decisions > 1000, "{stats:?}");
    assert!(admitted as u64 + stats.dropped >= 3000, "{admitted} {stats:?}");
    // A plan with one limit that is not leased is not leased.
    let exact = Limit::token_bucket(Quota::per_day(1000)).unwrap();
    let takes = [&hour, &exact].map(|limit| Take::new(Key::new(&subject, limit), 1));
    let mixed = Plan::new(takes).unwrap();
    for _ in 0..100 {
        assert_ne!(block_on(store.take(&mixed)).unwrap().source(), Source::Lease);
    }
}

/// The lease pays back what it paid, so nothing is stranded on other nodes.
#[test]
fn refund_returns_to_the_lease() {
    let server = Server::start(Flavor::Redis);
    let (store, mut raw) = (builder(&server).build(), server.raw());
    let (subject, limit) = (Subject::of(["refunded"]), hourly(100_000));
    take_until_leased(&store, &subject, &limit);
    let mut refunded = 0;
    eventually("refunds are leased", || {
        let taken = take(&store, &subject, &limit);
        let before = script_calls(&mut raw);
        let decision = block_on(store.refund(&plan(&subject, &limit, 1))).unwrap();
        if decision.source() == Source::Lease {
            assert_eq!(decision.remaining(), taken.remaining().map(|remaining| remaining + 1));
            assert!(script_calls(&mut raw) - before <= 1, "at most a background request");
            refunded += 1;
        }
        refunded == 10
    });
}

#[test]
fn fixed_size_and_disabled_leases() {
    let server = Server::start(Flavor::Redis);
    let store = builder(&server).build();
    let subject = Subject::of(["sized"]);
    let size = LeaseSize::Fixed(NonZeroU32::new(100).unwrap());
    let limit = hourly(100_000).with_lease(size);
    take_until_leased(&store, &subject, &limit);
    let stats = store.lease_stats();
    assert_eq!(stats.granted, 100 * stats.grants);
    let disabled = builder(&server).max_leases(0).build();
    for _ in 0..100 {
        assert_eq!(take(&disabled, &subject, &limit).source(), Source::Store);
    }
}

/// A node spends its lease at the end, after another node has taken all that the store has. What the bucket refilled
/// meanwhile must not count twice: at most burst + rate × time.
#[test]
fn refill_is_not_counted_twice() {
    for flavor in Flavor::ALL {
        let timed = Timed::new(flavor, Scripting::Auto);
        let (store, start) = (timed.store(), Timestamp::from_micros(1_700_000_000_000_000));
        let bucket = Limit::token_bucket(Quota::per_second(1000).burst(8000)).unwrap();
        let limit = bucket.clone().with_lease(LeaseSize::Auto);
        let subject = Subject::of(["refill"]);
        timed.set_now(start);
        let wanted = WantedLease::new([(1, 1500)], limit.lease_hold().unwrap());
        let reply = block_on(store.lease(&plan(&subject, &limit, 1), &wanted)).unwrap().unwrap();
        let leased = reply.takes()[0].amount;
        assert_eq!(leased, 1500);
        timed.set_now(start + Duration::from_millis(999));
        let mut admitted = leased;
        for cost in [100, 1] {
            while block_on(store.take(&plan(&subject, &bucket, cost))).unwrap().is_allowed() {
                admitted += cost;
            }
        }
        assert!(admitted <= 8000, "{flavor}: {admitted} of 8000 at one time");
    }
}

#[test]
fn keys_of_one_slot_are_leased_on_a_cluster() {
    let store = builder_at(&shared_cluster(Flavor::Redis).url()).prefix("leases:").unwrap().build();
    let (subject, limit) = (Subject::of(["clustered"]), hourly(10_000));
    let mut admitted = take_until_leased(&store, &subject, &limit);
    while take(&store, &subject, &limit).is_allowed() {
        admitted += 1;
    }
    let elapsed = block_on(store.stats(&Key::new(&subject, &limit))).unwrap();
    assert!(admitted <= 10_050, "{admitted} {elapsed:?}");
    assert!(store.lease_stats().decisions > 5000);
    assert!(Timestamp::EPOCH < block_on(store.peek(&plan(&subject, &limit, 1))).unwrap().at());
}
