//! Planning a request allocates nothing: the thread reuses the memory of the subject.

use allocation_counter::measure;
use tollgate::{Facts, Request};

use crate::helpers::parse;

#[test]
fn planning_allocates_nothing() {
    let policy = parse(include_str!("../../../../examples/policy.yaml"));
    let rules = parse(
        "{version: 1, rules: [{name: a, match: {path: '/a/{id}', method: get, ip: 10.0.0.0/8}, limits: [1/s, 2/min]}]}",
    );
    let facts = || {
        let pairs =
            [("client", "client-1"), ("path", "/a/7?x"), ("method", "GET"), ("ip", "10.0.0.1")];
        Facts::of(pairs).unwrap()
    };
    for (policy, rules) in [(&policy, 1), (&rules, 1)] {
        let plan = || {
            let request = Request::new(facts());
            let planned = policy.plan(&request);
            assert_eq!(planned.matched().len(), rules);
            assert!(!planned.plan().unwrap().takes().is_empty());
        };
        // The first subject of a thread allocates its memory.
        plan();
        let measured = measure(plan);
        assert_eq!(measured.count_total, 0, "{measured:?}");
    }
}
