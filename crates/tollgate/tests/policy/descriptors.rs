//! Rules for descriptors of Envoy's rate limit service.

use tollgate::{Facts, Request};

use crate::helpers::rules;

fn request(domain: &str, entries: &[(&str, &str)]) -> Request<'static> {
    Request::new(Facts::of_descriptor(domain, entries.iter().copied(), 0).unwrap())
}

/// Returns the first rule that matches.
fn rule_of(policy: &tollgate::Policy, entries: &[(&str, &str)]) -> String {
    let request = request("edge", entries);
    let planned = policy.plan(&request);
    let names: Vec<_> = planned.matched().iter().map(|matched| matched.rule().name()).collect();
    let trace = policy.explain(&request);
    assert_eq!(names, trace.matched().collect::<Vec<_>>(), "the index and the trace agree");
    names.first().unwrap().to_string()
}

#[test]
fn patterns_stay_within_one_entry() {
    let policy = rules(
        "
- { name: exact, match: { facts: { domain: edge, descriptor: path=%2Fapi/user=bob } }, limits: [1/s] }
- { name: user, match: { facts: { descriptor: path=%2Fapi*/user=* } }, limits: [1/s] }
- { name: path, match: { facts: { descriptor: path=* } }, limits: [1/s] }
- { name: entry, match: { facts: { 'entry:path': /api/* } }, limits: [1/s] }
",
    );
    let rule = |entries| rule_of(&policy, entries);
    assert_eq!(rule(&[("path", "/api"), ("user", "bob")]), "exact");
    assert_eq!(rule(&[("path", "/api/x"), ("user", "bob")]), "user");
    assert_eq!(rule(&[("path", "/api"), ("user", "")]), "user");
    assert_eq!(rule(&[("path", "/x/user=bob")]), "path");
    assert_eq!(rule(&[("path", "/api/x"), ("other", "bob")]), "entry");
    assert_eq!(rule(&[("path", "/x"), ("other", "bob")]), "default");
}

#[test]
fn long_values_are_matched_whole_and_counted_by_digest() {
    let policy = rules(
        "- { name: a, match: { facts: { descriptor: 'k=v*w' } }, per: [descriptor, 'entry:k'], limits: [1/s] }",
    );
    let subject = |value: &str| {
        let planned = policy.plan(&request("d", &[("k", value)]));
        let subject = planned.matched()[0].subject().as_str().to_owned();
        (planned.rule().name().to_owned(), subject)
    };
    let long = |middle: &str| format!("v{}{middle}w", "x".repeat(2000));
    let (rule, one) = subject(&long("1"));
    assert_eq!(rule, "a");
    assert!(one.starts_with(":sha256%3A") && one.len() < 200, "{one}");
    assert_ne!(one, subject(&long("2")).1, "other long values have other counters");
    assert_eq!(subject(&format!("{}x", long("1"))).0, "default", "the end of the value is matched");
    let short = format!("v{}w", "x".repeat(1020));
    assert!(subject(&short).1.contains(&short), "1022 bytes are counted as they are");
}

#[test]
fn a_digest_as_value_does_not_share_the_counter_of_the_long_value() {
    let policy = rules("- { name: a, per: ['entry:k'], limits: [1/s] }");
    let subject = |value: &str| {
        let planned = policy.plan(&request("d", &[("k", value)]));
        planned.matched()[0].subject().as_str().to_owned()
    };
    let long = subject(&"x".repeat(2000));
    let digest = long.trim_start_matches(':').replace("%3A", ":");
    assert_ne!(subject(&digest), long);
}

#[test]
fn empty_entries_are_not_missing() {
    let policy = rules("- { name: a, per: ['entry:k'], missing: skip, limits: [1/s] }");
    assert_eq!(rule_of(&policy, &[("k", "")]), "a");
    assert_eq!(rule_of(&policy, &[("other", "")]), "default");
}

#[test]
fn requests_without_default_limit_match_only_rules() {
    let policy = rules("- { name: a, match: { facts: { descriptor: k=v } }, limits: [1/s] }");
    let matched = |value: &str| {
        let request = request("d", &[("k", value)]).without_default_limit();
        let trace = policy.explain(&request);
        assert!(!trace.ends_with_default());
        policy.plan(&request).matched().len()
    };
    assert_eq!((matched("v"), matched("w")), (1, 0));
    let kept = request("d", &[("k", "w")]).without_default_limit().with_cost(2).into_owned();
    assert!(!kept.uses_default_limit());
}
