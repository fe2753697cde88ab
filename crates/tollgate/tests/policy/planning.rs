//! Rules are tried in order, the first that matches decides, and the plan takes from its limits.

use tollgate::policy::{Distributed, Missing, OnStoreLoss, RuleMode};
use tollgate::{Algorithm, Limit, MemoryStore, PlanErrorKind, Policy, Verdict};

use crate::helpers::{matched, parse, request, rules, takes};

const EXAMPLE: &str = include_str!("../../../../examples/policy.yaml");

#[test]
fn nothing_configured_is_a_hundred_a_minute_for_each_client() {
    let policy = Policy::builtin();
    assert_eq!(takes(&policy, &[("client", "c1")]), ["{:c1}:default/60s 1 Enforce"]);
    assert_eq!(policy.default_rule().limits()[0].algorithm(), Algorithm::SlidingWindow);
    assert_eq!(policy.rules().len(), 0);
}

#[test]
fn a_given_default_is_that_of_no_rule() {
    let policy = Policy::with_default(Limit::block().in_rule("elsewhere").unwrap());
    assert_eq!(takes(&policy, &[("client", "c1")]), ["{:c1}:default/block 1 Enforce"]);
}

#[test]
fn the_example_plans_what_its_comments_say() {
    let policy = parse(EXAMPLE);
    assert_eq!(policy.warnings(), [""; 0]);
    let of = |facts: &[(&str, &str)]| matched(&policy, facts).join(" ");
    // The digests of "test" and "free".
    assert_eq!(of(&[("api_key", "test")]), "internal-jobs");
    assert!(policy.plan(&request(&[("api_key", "test")])).is_unlimited());
    assert_eq!(of(&[("client", "c")]), "whole-service");
    assert_eq!(of(&[("ip", "192.0.2.9")]), "whole-service banned");
    assert_eq!(of(&[("method", "post"), ("path", "/login?x=1")]), "whole-service login");
    assert_eq!(of(&[("path", "/api/external/a/b")]), "whole-service external-api");
    assert_eq!(
        takes(&policy, &[("method", "POST"), ("path", "/reports/7/export"), ("user", "u")]),
        ["{}:whole-service/1s 1 Enforce", "{:u}:exports/monthly 5 Enforce"]
    );
    assert_eq!(
        takes(&policy, &[("method", "GET"), ("path", "/search"), ("tier", "free"), ("user", "u")]),
        [
            "{}:whole-service/1s 1 Enforce",
            "{:u}:search-free/search 1 Shadow { group: 2 }",
            "{:u}:search-free/next.60s 1 Shadow { group: 3 }"
        ]
    );
}
