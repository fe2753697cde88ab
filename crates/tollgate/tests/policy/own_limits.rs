//! Requests with a limit of their own.

use tollgate::algorithm::CalendarUnit;
use tollgate::{Limit, Request};

use crate::helpers::{request, rules};

fn with_limit<'a>(facts: &[(&'a str, &'a str)]) -> Request<'a> {
    let limit = Limit::calendar_window(7, CalendarUnit::Hour, "UTC").unwrap();
    request(facts).without_default_limit().with_limit(limit)
}

/// Returns key, cost and mode of every take.
fn takes(policy: &tollgate::Policy, request: &Request<'_>) -> Vec<String> {
    let planned = policy.plan(request);
    let plan = planned.plan().unwrap();
    let take =
        |take: &tollgate::Take<'_>| format!("{} {} {:?}", take.key(), take.cost(), take.mode());
    plan.takes().iter().map(take).collect()
}

#[test]
fn replaces_the_limits_of_the_last_matching_rule() {
    let policy = rules(
        "
- { name: everyone, per: [], limits: [9/s], continue: true }
- { name: paths, match: { path: /a }, per: [user], limits: [1/s, 2/min], cost: 3 }
- { name: free, match: { path: /free }, per: [user], unlimited: true }
- { name: trial, match: { path: /trial }, per: [user], mode: shadow, limits: [1/s] }
",
    );
    let user = |path| takes(&policy, &with_limit(&[("user", "u"), ("path", path)]));
    assert_eq!(user("/a"), ["{:u}:paths/3600s 3 Enforce"]);
    assert_eq!(user("/free"), ["{:u}:free/3600s 1 Enforce"]);
    assert_eq!(user("/trial"), ["{:u}:trial/3600s 1 Shadow { group: 0 }"]);
    assert_eq!(user("/other"), ["{}:everyone/3600s 1 Enforce"], "a rule with continue is one too");
}

#[test]
fn is_inline_without_a_matching_rule() {
    let policy = rules("- { name: paths, match: { path: /a }, limits: [1/s] }");
    let facts = [("domain", "edge"), ("descriptor", "user=u"), ("descriptor_index", "1")];
    let inline = with_limit(&facts);
    assert_eq!(takes(&policy, &inline), ["{:edge:user=u}:inline/3600s 1 Enforce"]);
    let planned = policy.plan(&inline);
    assert_eq!((planned.rule().name(), planned.is_unlimited()), ("inline", false));
    assert!(policy.rule("inline").is_none(), "it is no rule of the policy");
    let kept = inline.with_cost(4).into_owned();
    assert_eq!(takes(&policy, &kept), ["{:edge:user=u}:inline/3600s 4 Enforce"]);
}

#[test]
fn keeps_the_refusal_of_a_missing_fact() {
    let policy = rules("- { name: users, per: [user], limits: [1/s], missing: deny }");
    let planned = policy.plan(&with_limit(&[("path", "/a")]));
    assert_eq!(planned.matched()[0].limits()[0].name(), "missing");
}
