//! Policy files: a policy that plans, or errors at positions within the file.

use std::fs;

use tollgate::Policy;
use tollgate::policy::PolicyError;
use tollgate_testkit::fuzz::Target;

use crate::errors::invalid_files;
use crate::helpers::{default_limit, request};

const WORDS: [&str; 44] = [
    "version: 1\n",
    "rules:\n",
    "- name: a\n",
    "  limits: [10/min]\n",
    "match:",
    "per:",
    "path:",
    "methods:",
    "ip: 10.0.0.0/8",
    "facts:",
    "tiers:",
    "defaults:",
    "limiters:",
    "next:",
    "mode: shadow",
    "cost:",
    "burst:",
    "ttl:",
    "count:",
    "rate:",
    "algorithm: fixed_window",
    "concurrency",
    "align: month",
    "tz: Europe/Zurich",
    "distributed: off",
    "on_store_loss: deny",
    "missing: skip",
    "header:",
    "unit: tokens",
    "prices:",
    "tenant:",
    "/{id}/*",
    "\"",
    "'",
    "- ",
    "\n  ",
    "\n",
    "{ ",
    " }",
    "|\n",
    "&a ",
    "*a",
    "!!int ",
    "\u{feff}",
];

#[test]
fn fuzz_policy_yaml() {
    let files = invalid_files().into_iter().map(|file| fs::read(file).unwrap());
    let target = Target::new("policy_yaml", 1500).dictionary(&WORDS).seeds(files);
    let example = include_bytes!("../../../../../examples/policy.yaml");
    let mut counts = [0, 0];
    let summary = target.seeds([&example[..]]).run(|input| {
        let text = String::from_utf8_lossy(input);
        let result = read(&text);
        counts[usize::from(result.is_ok())] += 1;
        if !text.contains('\r') {
            let unix = outcome(&result);
            assert_eq!(outcome(&read(&text.replace('\n', "\r\n"))), unix, "with other line ends");
        }
        match &result {
            Ok(policy) => plan(policy),
            Err(error) => check_error(error, &text),
        }
        outcome(&result)
    });
    assert!(summary.outcomes > 100, "{summary:?}");
    assert!(counts.iter().all(|count| *count > 5), "refused and accepted: {counts:?}");
}

fn read(text: &str) -> Result<Policy, PolicyError> {
    Policy::from_yaml("p.yaml", text, default_limit())
}

/// Returns the names of the rules, or fields and lines of the errors.
fn outcome(result: &Result<Policy, PolicyError>) -> Result<usize, Vec<(String, usize)>> {
    match result {
        Ok(policy) => Ok(policy.rules().len()),
        Err(error) => {
            Err(error.errors().map(|error| (error.field().to_owned(), error.line())).collect())
        }
    }
}

fn check_error(error: &PolicyError, text: &str) {
    // The error of a truncated file can be on the line after the last one.
    // YAML has three kinds of line ends.
    let lines = text.replace("\r\n", "\n").replace('\r', "\n").lines().count() + 1;
    for error in error.errors() {
        assert!((1..=lines).contains(&error.line()), "{error}");
        assert!(error.column() >= 1 && !error.message().is_empty(), "{error}");
    }
    let message = error.to_string();
    assert!(!message.chars().any(|char| char.is_control() && char != '\n'), "{message:?}");
    assert!(message.len() < 16 * 1024, "{} bytes", message.len());
}

/// Plans requests; the index and the trace must agree on the rules.
fn plan(policy: &Policy) {
    for facts in [
        &[("client", "c"), ("path", "/a/7"), ("method", "GET")][..],
        &[("ip", "10.1.2.3"), ("path", "/"), ("tier", "free"), ("user", "u")],
    ] {
        let request = request(facts);
        let planned = policy.plan(&request);
        let names: Vec<_> = planned.matched().iter().map(|matched| matched.rule().name()).collect();
        assert_eq!(names, policy.explain(&request).matched().collect::<Vec<_>>());
    }
}
