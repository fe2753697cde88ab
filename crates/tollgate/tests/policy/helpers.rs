//! Shorthands to build policies and requests.

use tollgate::{Facts, Limit, Policy, Quota, Request};

/// The default limit of all test policies: 100 per minute.
pub(crate) fn default_limit() -> Limit {
    Limit::sliding_window(Quota::per_minute(100)).unwrap()
}

/// Parses a policy with these rules.
pub(crate) fn rules(rules: &str) -> Policy {
    parse(&format!("version: 1\nrules:\n{rules}"))
}

pub(crate) fn parse(text: &str) -> Policy {
    Policy::from_yaml("p.yaml", text, default_limit()).unwrap_or_else(|error| panic!("{error}"))
}

pub(crate) fn request<'a>(facts: &[(&'a str, &'a str)]) -> Request<'a> {
    Request::new(Facts::of(facts.iter().copied()).unwrap())
}

/// Returns the names of the rules that apply. Asserts that the index and the trace agree on them.
pub(crate) fn matched(policy: &Policy, facts: &[(&str, &str)]) -> Vec<String> {
    let request = request(facts);
    let planned = policy.plan(&request);
    let names: Vec<_> =
        planned.matched().iter().map(|matched| matched.rule().name().to_owned()).collect();
    let trace = policy.explain(&request);
    assert_eq!(names, trace.matched().collect::<Vec<_>>(), "{trace}");
    names
}

/// Returns key, cost and mode of every take.
pub(crate) fn takes(policy: &Policy, facts: &[(&str, &str)]) -> Vec<String> {
    let planned = policy.plan(&request(facts));
    let plan = planned.plan().unwrap();
    let take =
        |take: &tollgate::Take<'_>| format!("{} {} {:?}", take.key(), take.cost(), take.mode());
    plan.takes().iter().map(take).collect()
}
