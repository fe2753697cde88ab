//! Validation of facts; errors name the fact.

use tollgate::{Facts, FactsErrorKind, Request};

#[test]
fn errors_name_the_invalid_fact() {
    let long_value = "v".repeat(1025);
    let long_name = "n".repeat(65);
    for (name, value, kind) in [
        ("", "v", FactsErrorKind::Name),
        ("two words", "v", FactsErrorKind::Name),
        ("naïve", "v", FactsErrorKind::Name),
        ("line\nbreak", "v", FactsErrorKind::Name),
        (&long_name, "v", FactsErrorKind::Name),
        ("client", "", FactsErrorKind::Value),
        ("client", &long_value, FactsErrorKind::Value),
    ] {
        let error = Facts::of([(name, value)]).unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        assert!(error.to_string().starts_with("facts."), "{error}");
        assert!(!error.to_string().contains(['\n', 'ï']), "{error}");
    }
}

#[test]
fn rejects_more_than_32_facts_and_duplicates() {
    let pairs = |count: usize| (0..count).map(|n| (format!("f{n}"), vec![0, 255]));
    assert_eq!(Facts::of(pairs(32)).unwrap().iter().count(), 32);
    assert_eq!(Facts::of(pairs(33)).unwrap_err().kind(), FactsErrorKind::TooMany);
    let duplicate = Facts::of(pairs(3).chain(pairs(1))).unwrap_err();
    assert_eq!(duplicate.kind(), FactsErrorKind::Duplicate);
}

#[test]
fn values_may_contain_any_bytes() {
    let facts = Facts::of([("client", &b"\0\xff%"[..])]).unwrap();
    assert_eq!(facts.get("client"), Some(&b"\0\xff%"[..]));
    assert_eq!(facts.get("user"), None);
}

#[test]
fn costs_are_clamped_to_2_pow_53() {
    let cost = |cost| Request::new(Facts::new()).with_cost(cost).cost();
    assert_eq!((cost(0), cost((1 << 53) - 1)), (0, (1 << 53) - 1));
    assert_eq!((cost(1 << 53), cost(u64::MAX)), (1 << 53, 1 << 53));
}

#[test]
fn header_facts_are_case_insensitive() {
    let mut facts = Facts::new();
    facts.insert("Header:X-Plan", "gold").unwrap();
    assert_eq!(facts.get("header:x-plan"), Some(&b"gold"[..]));
    let error = facts.insert("header:X-PLAN", "silver").unwrap_err();
    assert_eq!(error.kind(), FactsErrorKind::Duplicate);
}
