//! Units in Redis: plans over several units, listed inline limits, and leases.

use tollgate::{
    Costs, Facts, Inline, Limit, Limiter, Listing, Policy, Query, Quota, Request, Source, Store,
    Unit,
};
use tollgate_testkit::server::{Flavor, Server};
use tollgate_testkit::wait::eventually;

use crate::fixture::{block_on, builder};

fn tokens(count: u64) -> Limit {
    let limit = Limit::token_bucket(Quota::per_day(count)).unwrap();
    limit.in_unit(Unit::new("tokens").unwrap()).unwrap()
}

fn policy(limits: &str) -> Policy {
    let text = format!("version: 1\nrules: [{{ name: chat, limits: [{limits}] }}]");
    Policy::from_yaml("p.yaml", &text, Policy::builtin_limit()).unwrap()
}

fn chat(costs: Costs) -> Query<'static> {
    Query::from(Request::new(Facts::of([("client", "c1")]).unwrap()).with_costs(costs))
}

#[test]
fn units_of_one_request_are_taken_all_or_none() {
    for flavor in [Flavor::Redis, Flavor::Valkey] {
        let server = Server::start(flavor);
        let limits = "5/d, { rate: 100/d, unit: tokens }, { rate: 100/d, unit: bytes, algorithm: token_bucket }, { concurrency: 9, ttl: 1h }";
        let limiter = Limiter::new(builder(&server).build(), policy(limits));
        let take = |costs: &[(&str, u64)]| {
            let query = chat(Costs::of(costs.iter().copied()).unwrap());
            let decided = limiter.decide(tollgate::Verb::Take, &query, |outcome| {
                let statuses = outcome.decision.statuses().iter();
                let remaining: Vec<u64> = statuses.map(tollgate::Status::remaining).collect();
                (outcome.decision.is_allowed(), remaining)
            });
            block_on(decided).unwrap()
        };
        assert_eq!(take(&[("requests", 1), ("tokens", 60)]), (true, vec![4, 40, 100, 8]));
        assert!(!take(&[("requests", 1), ("tokens", 41), ("bytes", 1)]).0);
        assert_eq!(take(&[("tokens", 40), ("bytes", 7)]), (true, vec![4, 0, 93, 7]));
        assert_eq!(take(&[("requests", 2)]), (true, vec![2, 0, 93, 5]), "0 tokens pass");
        assert_eq!(take(&[]), (true, vec![2, 0, 93, 5]));
    }
}

#[test]
fn listed_inline_limits_keep_their_unit() {
    let server = Server::start(Flavor::Redis);
    let limiter = Limiter::new(builder(&server).build(), Policy::builtin());
    let limits = vec![tokens(100), Limit::token_bucket(Quota::per_day(9)).unwrap()];
    let query = Inline::new("", "k", limits, 1).unwrap();
    let query = query.with_costs(Costs::requests(1).and("tokens", 30).unwrap());
    assert!(block_on(limiter.check(query).into_future()).unwrap().is_allowed());
    let page = block_on(limiter.store().list(&Listing::all())).unwrap();
    let known = page.keys.iter().map(|key| key.known.clone().unwrap());
    let mut units: Vec<String> =
        known.map(|limit| format!("{} {}", limit.unit(), limit.count())).collect();
    units.sort();
    assert_eq!(units, ["requests 9", "tokens 100"]);
}

#[test]
fn requests_that_cost_nothing_of_a_unit_are_not_leased() {
    let server = Server::start(Flavor::Redis);
    let limits = "{ rate: 100000/h, algorithm: token_bucket, lease: auto }, { rate: 100000/h, unit: tokens, algorithm: token_bucket, lease: auto }";
    let limiter = Limiter::new(builder(&server).build(), policy(limits));
    let source = |costs: &Costs| {
        let decision = block_on(limiter.check(chat(costs.clone())).into_future()).unwrap();
        assert!(decision.is_allowed());
        decision.source()
    };
    let both = Costs::requests(1).and("tokens", 2).unwrap();
    eventually("a lease pays both units", || source(&both) == Source::Lease);
    let plain = Costs::requests(1);
    assert!((0..100).all(|_| source(&plain) == Source::Store));
}
