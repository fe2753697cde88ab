//! However many rules there are, few are tried.

use std::fmt::Write as _;

use crate::policy::Policy;
use crate::{Facts, Limit, Request};

const RULES: usize = 10_000;

/// A policy of many rules, each with what `matching` gives it.
fn policy(matching: impl Fn(usize) -> String) -> Policy {
    let mut text = "version: 1\nrules:\n".to_owned();
    for n in 0..RULES {
        writeln!(text, "- {{name: r{n}, match: {{{}}}, limits: [10/min]}}", matching(n)).unwrap();
    }
    Policy::from_yaml("p.yaml", &text, Limit::block()).unwrap()
}

/// How many rules are tried for the request of this rule; it must be found.
fn tried(policy: &Policy, rule: usize, facts: &[(&str, &str)]) -> usize {
    let request = Request::new(Facts::of(facts.iter().copied()).unwrap());
    assert_eq!(policy.plan(&request).rule().name(), format!("r{rule}"));
    let view = policy.view(&request);
    policy.index.candidates(&view).count()
}

#[test]
fn of_distinct_values_one_is_tried() {
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
fn of_distinct_patterns_one_is_tried() {
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

/// What all rules share does not help; what each has for itself does.
#[test]
fn a_rule_is_filed_under_what_is_rare() {
    let policy =
        policy(|n| format!("method: GET, path: /api/**, tier: [free, paid], client: [a{n}, b{n}]"));
    for n in (0..RULES).step_by(97) {
        let client = format!("b{n}");
        let facts = [("method", "GET"), ("path", "/api/x"), ("tier", "free"), ("client", &client)];
        assert_eq!(tried(&policy, n, &facts), 1);
    }
}

#[test]
fn nested_networks_and_paths_are_tried_from_the_first() {
    let policy = policy(|n| match n % 4 {
        0 => format!("ip: 10.{}.{}.0/24", n / 1000, n % 250),
        1 => "ip: 10.0.0.0/8, user: nobody".to_owned(),
        2 => format!("path: /x/{n}/**"),
        _ => format!("facts: {{f{n}: v}}"),
    });
    assert!(tried(&policy, 0, &[("ip", "10.0.0.1"), ("path", "/x/2/y"), ("f3", "v")]) <= 4);
}
