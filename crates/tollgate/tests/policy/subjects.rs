//! No two subjects share a counter, and no key in clear becomes one.

use std::collections::HashMap;

use proptest::prelude::*;
use tollgate::{Facts, Request, Subject};

use crate::helpers::{request, rules};

fn key(per: &str, facts: &[(&str, &str)]) -> String {
    let policy = rules(&format!("- {{ name: a, per: {per}, limits: [1/s] }}"));
    let request = request(facts);
    policy.plan(&request).matched()[0].key().into_owned()
}

#[test]
fn a_key_is_called_as_people_call_it() {
    assert_eq!(key("[user]", &[("user", "a b/c")]), "a b/c");
    assert_eq!(key("[user]", &[("user", "%-")]), "%-");
    assert_eq!(key("[user, ip]", &[("user", "a b"), ("ip", "::1")]), "a%20b:%3A%3A1");
    assert_eq!(key("[user]", &[]), "*anonymous*");
    assert_eq!(key("[]", &[("user", "u")]), "*");
}

#[test]
fn one_thing_in_two_spellings_is_one_subject() {
    for (per, one, other) in [
        ("ip", "192.0.2.7", "::ffff:c000:207"),
        ("ip", "2001:db8::1", "2001:0DB8:0::0001"),
        ("host", "a.example", "A.EXAMPLE:80"),
        ("method", "get", "GET"),
        ("path", "/a?b", "/a#c"),
    ] {
        assert_eq!(key(per, &[(per, one)]), key(per, &[(per, other)]), "{per}");
    }
}

#[test]
fn an_api_key_never_reaches_a_subject() {
    let key = key("[api_key, tier]", &[("api_key", "hunter2"), ("tier", "t")]);
    assert!(key.starts_with("sha256%3A") && !key.contains("hunter2"), "{key}");
}

fn fact() -> impl Strategy<Value = Option<Vec<u8>>> {
    // Few different bytes, the dangerous ones among them, so that subjects come close.
    prop::option::of(prop::collection::vec(prop::sample::select(b"%-:{}/2Aa\0\xff".to_vec()), 0..4))
}

proptest! {
    #[test]
    fn subjects_are_read_back(
        tenant in prop::collection::vec(any::<u8>(), 0..4),
        facts in prop::collection::vec(fact(), 0..4),
    ) {
        let subject = Subject::of_known(&tenant, facts.iter().map(Option::as_ref));
        let parts = Subject::parse(subject.as_str()).unwrap();
        prop_assert_eq!((parts.tenant, parts.facts), (tenant, facts));
    }

    #[test]
    fn texts_that_are_no_subject_are_told(text in "[%:a2A-]{0,8}") {
        if let Some(parts) = Subject::parse(&text) {
            let again = Subject::of_known(&parts.tenant, parts.facts.iter().map(Option::as_ref));
            prop_assert_eq!(again.as_str(), text);
        }
    }

    #[test]
    fn different_requests_are_different_subjects(requests in prop::collection::vec((fact(), fact()), 2..8)) {
        let policy = rules("- { name: a, per: [x, y], limits: [1/s] }");
        let mut seen = HashMap::new();
        for (x, y) in requests {
            let mut facts = Facts::new();
            let known = |value: Option<Vec<u8>>| value.filter(|value| !value.is_empty());
            let pair = (known(x), known(y));
            for (name, value) in [("x", &pair.0), ("y", &pair.1)] {
                if let Some(value) = value {
                    facts.insert(name, value.clone()).unwrap();
                }
            }
            let planned = policy.plan(&Request::new(facts));
            let subject = planned.matched()[0].subject().clone();
            let earlier = seen.entry(subject).or_insert_with(|| pair.clone());
            prop_assert_eq!(&*earlier, &pair);
        }
    }
}
