//! Units: which amount each limit takes, and how overrides keep or change the unit.

use std::time::Duration;

use tollgate::{
    Costs, Limit, Limiter, MemoryStore, Override, OverrideLimit, Overrides, Policy, Query, Subject,
    Unit, Verb,
};
use tollgate_testkit::runtime::block_on;

use super::helpers::{request, rules, takes};

const MINUTE: Duration = Duration::from_secs(60);

const CHAT: &str = "
- { name: chat, cost: 3, limits: [100/min, { rate: 90000/min, unit: tokens }, { concurrency: 5 }] }
";

fn unit(name: &str) -> Unit {
    Unit::new(name).unwrap()
}

fn costs(policy: &Policy, costs: Costs) -> Vec<u64> {
    let request = request(&[("client", "c1")]).with_costs(costs);
    let planned = policy.plan(&request);
    planned.plan().unwrap().takes().iter().map(tollgate::Take::cost).collect()
}

#[test]
fn the_cost_of_a_rule_multiplies_requests_only() {
    let policy = rules(CHAT);
    let both = Costs::requests(2).and("tokens", 1800).unwrap();
    assert_eq!(costs(&policy, both), [6, 1800, 6]);
    assert_eq!(costs(&policy, Costs::of([("tokens", 1800)]).unwrap()), [0, 1800, 1]);
    assert_eq!(costs(&policy, Costs::of([("bytes", 9)]).unwrap()), [0, 0, 1], "not counted");
    assert_eq!(costs(&policy, Costs::requests(1)), [3, 0, 3]);
    assert_eq!(costs(&policy, Costs::requests(0)), [0, 0, 0]);
}

#[test]
fn the_unit_does_not_change_the_name_of_a_limit() {
    let names = ["{:c1}:chat/60s 3 Enforce", "{:c1}:chat/60s#2 0 Enforce"];
    assert_eq!(takes(&rules(CHAT), &[("client", "c1")])[..2], names);
}

#[test]
fn units_of_one_request_are_taken_all_or_none() {
    let limiter = Limiter::new(MemoryStore::new(), rules(CHAT));
    let take = |requests, tokens| {
        let costs = Costs::requests(requests).and("tokens", tokens).unwrap();
        let query = Query::from(request(&[("client", "c1")])).with_costs(costs);
        block_on(limiter.decide(Verb::Take, &query, |outcome| {
            let statuses = outcome.decision.statuses().iter();
            let remaining: Vec<u64> = statuses.map(tollgate::Status::remaining).collect();
            (outcome.decision.is_allowed(), remaining)
        }))
        .unwrap()
    };
    assert_eq!(take(1, 80_000), (true, vec![97, 10_000, 2]));
    assert_eq!(take(0, 10_001), (false, vec![97, 10_000, 2]));
    assert_eq!(take(0, 10_000), (true, vec![97, 0, 1]));
    assert_eq!(take(0, 0), (true, vec![97, 0, 1]), "an exhausted unit allows a cost of 0");
}

#[test]
fn a_policy_with_one_limit_in_another_unit_decides_by_that_unit() {
    let limiter = Limiter::new(
        MemoryStore::new(),
        rules("- { name: a, limits: [{ rate: 10/min, unit: tokens }] }"),
    );
    let has_single_limit =
        limiter.with_active_policy(|policy| limiter.single_limit(policy).is_some());
    assert!(!has_single_limit, "its cost is the number of requests");
    let query = Query::from(request(&[("client", "c1")]));
    let remaining = |query: &Query<'_>| {
        block_on(limiter.decide(Verb::Take, query, |outcome| outcome.decision.remaining())).unwrap()
    };
    assert_eq!(remaining(&query), Some(10));
    assert_eq!(remaining(&query.with_costs(Costs::of([("tokens", 4)]).unwrap())), Some(6));
}

/// Returns name, unit and count of the limits of rule `chat` for a client with these limits as override.
fn overridden(policy: &str, limits: Vec<OverrideLimit>) -> Vec<String> {
    let limiter = Limiter::new(MemoryStore::new(), rules(policy));
    let client = Subject::of(["c1"]);
    limiter.set_overrides(&Overrides::default().with(&client, Override::new(limits).unwrap()));
    let query = Query::from(request(&[("client", "c1")]));
    let result = limiter.decide(Verb::Peek, &query, |outcome| {
        let limits = outcome.decision.statuses().iter().map(tollgate::Status::limit);
        let text = |limit: &Limit| format!("{} {} {}", limit.name(), limit.count(), limit.unit());
        limits.map(text).collect()
    });
    block_on(result).unwrap()
}

#[test]
fn an_override_inherits_the_unit_of_the_limit_that_it_replaces() {
    let rule = "- { name: chat, limits: [{ rate: 90000/min, unit: tokens }] }";
    let entry = || OverrideLimit::new(95_000, MINUTE);
    assert_eq!(overridden(rule, vec![entry()]), ["60s 95000 tokens"]);
    assert_eq!(overridden(rule, vec![entry().named("60s")]), ["60s 95000 tokens"]);
    let aligned = "- { name: chat, limits: [{ rate: 90000/d, align: day, unit: tokens }] }";
    let day = OverrideLimit::new(95_000, MINUTE * 1440);
    assert_eq!(overridden(aligned, vec![day]), ["86400s 95000 tokens"]);
}

#[test]
fn an_override_of_a_window_in_two_units_replaces_the_limit_of_its_unit() {
    let rule = "- { name: chat, limits: [{ rate: 90000/min, unit: tokens }, 100/min] }";
    let entry = || OverrideLimit::new(500, MINUTE);
    let requests = ["60s#2 500 requests", "60s 90000 tokens"];
    assert_eq!(overridden(rule, vec![entry()]), requests, "requests first");
    assert_eq!(overridden(rule, vec![entry().in_unit(Unit::requests())]), requests);
    let tokens = ["60s 500 tokens", "60s#2 100 requests"];
    assert_eq!(overridden(rule, vec![entry().in_unit(unit("tokens"))]), tokens);
}

#[test]
fn an_override_in_another_unit_is_an_additional_limit_unless_it_names_the_limit() {
    let rule = "- { name: chat, limits: [100/min] }";
    let entry = |name| OverrideLimit::new(500, MINUTE).in_unit(unit(name));
    assert_eq!(
        overridden(rule, vec![entry("tokens"), entry("bytes")]),
        ["60s#2 500 tokens", "60s#3 500 bytes", "60s 100 requests"]
    );
    assert_eq!(overridden(rule, vec![entry("tokens").named("60s")]), ["60s 500 tokens"]);
}
