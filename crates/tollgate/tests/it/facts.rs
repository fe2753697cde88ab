//! Validation of facts; errors name the fact.

use tollgate::{Facts, FactsError, FactsErrorKind, MAX_DESCRIPTOR_LENGTH, Request};

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

#[test]
fn descriptor_facts_hold_all_entries() {
    let entries = [("path", "/a b"), ("user", ""), ("path", "second"), ("ключ", "é")];
    let facts = Facts::of_descriptor("edge proxy", entries, 3).unwrap();
    let value = |name: &str| facts.get(name).map(|value| String::from_utf8_lossy(value));
    assert_eq!(value("domain").unwrap(), "edge proxy");
    assert_eq!(value("descriptor_index").unwrap(), "3");
    assert_eq!(
        value("descriptor").unwrap(),
        "path=%2Fa%20b/user=/path=second/%D0%BA%D0%BB%D1%8E%D1%87=%C3%A9"
    );
    assert_eq!(value("entry:path").unwrap(), "/a b", "the first entry wins");
    assert_eq!(value("entry:user").unwrap(), "", "an empty value is not a missing one");
    assert_eq!(value("entry:%D0%BA%D0%BB%D1%8E%D1%87").unwrap(), "é");
    assert_eq!(facts.iter().count(), 6);
}

#[test]
fn descriptors_with_other_entries_have_other_facts() {
    let descriptor = |entries: &[(&str, &str)]| {
        let facts = Facts::of_descriptor("d", entries.iter().copied(), 0).unwrap();
        facts.get("descriptor").unwrap().to_vec()
    };
    let different = [
        descriptor(&[("a", "b"), ("c", "d")]),
        descriptor(&[("a", "b/c=d")]),
        descriptor(&[("a=b/c", "d")]),
        descriptor(&[("a=b", "c=d")]),
        descriptor(&[("a", "b=c=d")]),
        descriptor(&[("a", "b%2Fc=d")]),
        descriptor(&[("a", ""), ("b", "c=d")]),
        descriptor(&[("", "a"), ("b", "c")]),
    ];
    for (position, one) in different.iter().enumerate() {
        assert!(!different[position + 1..].contains(one), "{}", String::from_utf8_lossy(one));
    }
}

#[test]
fn long_keys_have_no_fact_of_their_own() {
    let (fits, long) = ("k".repeat(58), "k".repeat(59));
    let facts = Facts::of_descriptor("d", [(&fits, "1"), (&long, "2")], 0).unwrap();
    assert_eq!(facts.get(&format!("entry:{fits}")), Some(&b"1"[..]));
    assert_eq!(facts.iter().count(), 4);
    assert!(facts.get("descriptor").unwrap().ends_with(format!("/{long}=2").as_bytes()));
}

#[test]
fn descriptors_are_bounded() {
    let keys = |count: usize| (0..count).map(|n| (format!("k{n}"), "v"));
    assert_eq!(Facts::of_descriptor("d", keys(29), 0).unwrap().iter().count(), 32);
    let message = |result: Result<Facts<'_>, FactsError>| {
        let error = result.unwrap_err();
        (error.kind(), error.to_string())
    };
    assert_eq!(
        message(Facts::of_descriptor("d", keys(30), 0)),
        (FactsErrorKind::TooMany, "facts.descriptor: a request can have at most 32 facts".into())
    );
    let value = "v".repeat(MAX_DESCRIPTOR_LENGTH - 2);
    assert!(Facts::of_descriptor("d", [("k", &value)], 0).is_ok());
    assert_eq!(
        message(Facts::of_descriptor("dd", [("k", &value)], 0)),
        (
            FactsErrorKind::Value,
            "facts.descriptor: the descriptor is longer than the maximum of 65536 bytes".into()
        )
    );
    assert_eq!(
        message(Facts::of_descriptor("d", [("", ""); 0], 0)),
        (
            FactsErrorKind::Value,
            "facts.descriptor: a descriptor must have at least one entry".into()
        )
    );
    assert_eq!(message(Facts::of_descriptor("", [("k", "v")], 0)).0, FactsErrorKind::Value);
}
