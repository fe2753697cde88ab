//! Only a few of many rules are tried.

use std::fmt::Write as _;

use crate::policy::Policy;
use crate::{Facts, Limit, Request};

const RULES: usize = 10_000;

/// A policy of [`RULES`] rules; `matching` returns the `match` of each.
fn policy(matching: impl Fn(usize) -> String) -> Policy {
    let mut text = "version: 1\nrules:\n".to_owned();
    for n in 0..RULES {
        writeln!(text, "- {{name: r{n}, match: {{{}}}, limits: [10/min]}}", matching(n)).unwrap();
    }
    Policy::from_yaml("p.yaml", &text, Limit::block()).unwrap()
}

/// Returns the number of rules tried for a request that must match `rule`.
fn tried(policy: &Policy, rule: usize, facts: &[(&str, &str)]) -> usize {
    let request = Request::new(Facts::of(facts.iter().copied()).unwrap());
    assert_eq!(policy.plan(&request).rule().name(), format!("r{rule}"));
    let normalized = policy.normalized_facts(request.facts());
    policy.index.candidates(&normalized).count()
}

#[test]
fn tries_one_rule_for_distinct_values() {
    let (clients, paths) =
        (policy(|n| format!("client: c{n}")), policy(|n| format!("path: /a/{n}")));
    let nets = policy(|n| format!("ip: 10.{}.{}.0/24", n / 250, n % 250));
    for n in (0..RULES).step_by(97) {
        assert_eq!(tried(&clients, n, &[("client", &format!("c{n}"))]), 1);
        assert_eq!(tried(&paths, n, &[("path", &format!("/a/{n}"))]), 1);
        let ip = format!("10.{}.{}.7", n / 250, n % 250);
        assert_eq!(tried(&nets, n, &[("ip", &ip)]), 1);
    }
}

#[test]
fn tries_one_rule_for_distinct_patterns() {
    let prefixes = policy(|n| format!("user: \"u{n:05}-*\""));
    let suffixes = policy(|n| format!("host: \"*.t{n:05}.example\""));
    let trees = policy(|n| format!("path: /t/{n}/**"));
    let middles = policy(|n| format!("path: \"/t/{{id}}/r{n}/*\""));
    for n in (0..RULES).step_by(97) {
        assert_eq!(tried(&prefixes, n, &[("user", &format!("u{n:05}-x"))]), 1);
        assert_eq!(tried(&suffixes, n, &[("host", &format!("a.t{n:05}.example"))]), 1);
        assert_eq!(tried(&trees, n, &[("path", &format!("/t/{n}/a/b"))]), 1);
        assert_eq!(tried(&middles, n, &[("path", &format!("/t/7/r{n}/x"))]), 1);
    }
}

#[test]
fn tries_one_rule_for_distinct_descriptors() {
    let keys = policy(|n| format!("facts: {{ domain: d, descriptor: \"k{n}=*/user=*\" }}"));
    let values = policy(|n| format!("facts: {{ domain: d, descriptor: \"k=v{n}/user=a*\" }}"));
    for n in (0..RULES).step_by(97) {
        let descriptor = format!("k{n}=v/user=a");
        assert_eq!(tried(&keys, n, &[("domain", "d"), ("descriptor", &descriptor)]), 1);
        let descriptor = format!("k=v{n}/user=ab");
        assert_eq!(tried(&values, n, &[("domain", "d"), ("descriptor", &descriptor)]), 1);
    }
}

#[test]
fn rules_are_indexed_by_their_rarest_condition() {
    let policy =
        policy(|n| format!("method: GET, path: /api/**, tier: [free, paid], client: [a{n}, b{n}]"));
    for n in (0..RULES).step_by(97) {
        let client = format!("b{n}");
        let facts = [("method", "GET"), ("path", "/api/x"), ("tier", "free"), ("client", &client)];
        assert_eq!(tried(&policy, n, &facts), 1);
    }
}

#[test]
fn tries_few_rules_with_nested_networks_and_paths() {
    let policy = policy(|n| match n % 4 {
        0 => format!("ip: 10.{}.{}.0/24", n / 1000, n % 250),
        1 => "ip: 10.0.0.0/8, user: unknown".to_owned(),
        2 => format!("path: /x/{n}/**"),
        _ => format!("facts: {{f{n}: v}}"),
    });
    assert!(tried(&policy, 0, &[("ip", "10.0.0.1"), ("path", "/x/2/y"), ("f3", "v")]) <= 4);
}
