//! Compares planning with 1 rule and with 10 000 rules. Both should take about the same time.

use std::fmt::Write as _;
use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use tollgate::{Facts, Policy, Request};
use tollgate_bench::Outcome;

const MANY: usize = 10_000;
const REQUESTS: usize = 1000;

/// A benchmark name, the match condition of rule `n`, and the facts of a request that matches rule
/// `n`.
type Kind = (&'static str, fn(usize) -> String, fn(usize) -> [(&'static str, String); 3]);

const KINDS: [Kind; 4] = [
    (
        "path",
        |n| format!("path: \"/api/{n}/**\""),
        |n| facts("c1", format!("/api/{n}/x"), "10.0.0.1"),
    ),
    ("client", |n| format!("client: c{n}"), |n| facts(&format!("c{n}"), "/x".into(), "10.0.0.1")),
    (
        "prefix",
        |n| format!("client: \"c{n:05}-*\""),
        |n| facts(&format!("c{n:05}-x"), "/x".into(), "10.0.0.1"),
    ),
    (
        "network",
        |n| format!("ip: 10.{}.{}.0/24", n / 250, n % 250),
        |n| facts("c1", "/x".into(), &format!("10.{}.{}.7", n / 250, n % 250)),
    ),
];

fn facts(client: &str, path: String, ip: &str) -> [(&'static str, String); 3] {
    [("client", client.to_owned()), ("path", path), ("ip", ip.to_owned())]
}

fn policy(rules: usize, matching: fn(usize) -> String) -> Outcome<Policy> {
    let mut text = "version: 1\nrules:\n".to_owned();
    for n in (0..MANY).rev().take(rules) {
        writeln!(text, "- {{name: r{n}, match: {{{}}}, limits: [10/min]}}", matching(n))?;
    }
    Ok(Policy::from_yaml("policy.yaml", &text, tollgate::Limit::block())?)
}

fn compare(criterion: &mut Criterion) -> Outcome<()> {
    for (name, matching, facts) in KINDS {
        let mut group = criterion.benchmark_group(format!("plan/{name}"));
        for rules in [1, MANY] {
            let policy = policy(rules, matching)?;
            // Cycle through requests that are spread over all rules, so that neither are in the CPU
            // cache.
            let nth = |n: usize| MANY - 1 - n * rules / REQUESTS;
            let facts: Vec<_> = (0..REQUESTS).map(|n| facts(nth(n))).collect();
            let requests: Vec<_> = facts
                .into_iter()
                .map(|facts| Facts::of(facts).map(Request::new))
                .collect::<Result<_, _>>()?;
            let mut turn = requests.iter().cycle();
            group.bench_function(format!("{rules} rules"), |bencher| {
                bencher.iter(|| {
                    turn.next().map(|request| black_box(policy.plan(request)).is_unlimited())
                });
            });
        }
    }
    Ok(())
}

#[expect(clippy::panic, reason = "criterion groups cannot return errors")]
fn all(criterion: &mut Criterion) {
    if let Err(error) = compare(criterion) {
        panic!("{error}");
    }
}

criterion_group!(planning, all);
criterion_main!(planning);
