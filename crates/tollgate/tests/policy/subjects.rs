//! Subjects: different subjects never share a counter, and plaintext API keys never appear in them.

use std::collections::HashMap;

use proptest::prelude::*;
use tollgate::policy::secret_digest;
use tollgate::{Facts, MemoryStore, Request, Subject};

use crate::helpers::{matched, request, rules, takes};

fn key(per: &str, facts: &[(&str, &str)]) -> String {
    let policy = rules(&format!("- {{ name: a, per: {per}, limits: [1/s] }}"));
    let request = request(facts);
    policy.plan(&request).matched()[0].key().into_owned()
}

#[test]
fn keys_are_shown_in_readable_form() {
    assert_eq!(key("[user]", &[("user", "a b/c")]), "a b/c");
    assert_eq!(key("[user]", &[("user", "%-")]), "%-");
    assert_eq!(key("[user, ip]", &[("user", "a b"), ("ip", "::1")]), "a%20b:%3A%3A");
    assert_eq!(key("[user]", &[]), "*anonymous*");
    assert_eq!(key("[]", &[("user", "u")]), "*");
}

#[test]
fn headers_with_secrets_are_digests() {
    let digest = "sha256:1ec1c26b50d5d3c58d9583181af8076655fe00756bf7285940ba3670f99fcba0";
    for header in ["Authorization", "cookie", "proxy-authorization", "X-Api-Key"] {
        let name = format!("header:{header}");
        let per = format!("['{name}']");
        assert_eq!(key(&per, &[(&name, "s3cret")]), digest, "{name}");
        assert_ne!(key(&per, &[(&name, digest)]), digest, "{name}: the digest is not the secret");
        // The middleware and forward auth give the digest.
        let facts = Facts::of([(name.clone(), secret_digest(b"s3cret"))]).unwrap().into_owned();
        let policy = rules(&format!("- {{ name: a, per: {per}, limits: [1/s] }}"));
        let request = Request::new(facts);
        assert_eq!(policy.plan(&request).matched()[0].key(), digest, "{name}");
    }
    let policy = rules(&format!(
        "
- {{ name: known, match: {{ headers: {{ X-Api-Key: {digest} }} }}, limits: [1/s] }}
- {{ name: some, match: {{ headers: {{ x-api-key: '*' }} }}, limits: [1/s] }}
"
    ));
    assert_eq!(matched(&policy, &[("header:x-api-key", "s3cret")]), ["known"]);
    assert_eq!(matched(&policy, &[("header:X-API-Key", "other")]), ["some"]);
    assert_eq!(matched(&policy, &[]), ["default"]);
    assert_eq!(key("['header:x-plan']", &[("header:x-plan", "gold")]), "gold");
}

#[test]
fn equivalent_values_share_a_subject() {
    for (per, left, right) in [
        ("ip", "192.0.2.7", "::ffff:c000:207"),
        ("ip", "2001:db8:0:1::1", "2001:0DB8:0:0001::0001"),
        ("host", "a.example", "A.EXAMPLE:80"),
        ("method", "get", "GET"),
        ("path", "/a?b", "/a#c"),
    ] {
        assert_eq!(key(per, &[(per, left)]), key(per, &[(per, right)]), "{per}");
    }
}

#[test]
fn ipv6_addresses_count_by_their_64_bit_network() {
    for (ip, counted) in [
        ("2001:db8:1:2::1", "2001:db8:1:2::"),
        ("2001:DB8:1:2:ffff:ffff:ffff:ffff", "2001:db8:1:2::"),
        ("2001:db8:1:2::", "2001:db8:1:2::"),
        ("2001:db8:1:3::1", "2001:db8:1:3::"),
        ("::1", "::"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("192.0.2.7", "192.0.2.7"),
        ("no:address", "no:address"),
        ("fe80::1%eth0", "fe80::1%eth0"),
    ] {
        assert_eq!(key("[ip]", &[("ip", ip)]), counted, "{ip}");
    }
}

#[test]
fn rule_for_one_address_excludes_the_rest_of_its_network() {
    let policy = rules(
        "
- { name: host, match: { ip: '2001:db8:1:2::1' }, per: [ip], limits: [1/s] }
- { name: rest, per: [ip], limits: [1/s] }
",
    );
    let from = |ip| takes(&policy, &[("ip", ip)]);
    assert_eq!(matched(&policy, &[("ip", "2001:db8:1:2::1")]), ["host"]);
    assert_eq!(from("2001:db8:1:2::2"), from("2001:db8:1:2:9::3"));
    assert_eq!(from("2001:db8:1:2::2"), ["{:2001%3Adb8%3A1%3A2%3A%3A}:rest/1s 1 Enforce"]);
    assert_ne!(from("2001:db8:1:2::2"), from("2001:db8:1:3::2"));
}

#[test]
fn addresses_of_one_network_share_a_counter() {
    let policy = rules("- { name: a, per: [ip], limits: [2/min] }");
    let store = MemoryStore::new();
    let is_allowed = |ip| {
        let request = request(&[("ip", ip)]);
        let planned = policy.plan(&request);
        store.take(&planned.plan().unwrap()).is_allowed()
    };
    assert!(is_allowed("2001:db8:1:2::1") && is_allowed("2001:db8:1:2:a::2"));
    assert!(!is_allowed("2001:db8:1:2:b::3"));
    assert!(is_allowed("2001:db8:1:3::1"));
}

#[test]
fn plaintext_api_keys_never_appear_in_subjects() {
    let key = key("[api_key, tier]", &[("api_key", "hunter2"), ("tier", "t")]);
    assert!(key.starts_with("sha256%3A") && !key.contains("hunter2"), "{key}");
}

fn fact() -> impl Strategy<Value = Option<Vec<u8>>> {
    // Few different bytes, including the escaped ones, so that subjects are similar.
    prop::option::of(prop::collection::vec(prop::sample::select(b"%-:{}/2Aa\0\xff".to_vec()), 0..4))
}

proptest! {
    #[test]
    fn subjects_round_trip(
        tenant in prop::collection::vec(any::<u8>(), 0..4),
        facts in prop::collection::vec(fact(), 0..4),
    ) {
        let subject = Subject::from_optional(&tenant, facts.iter().map(Option::as_ref));
        let parts = Subject::parse(subject.as_str()).unwrap();
        prop_assert_eq!((parts.tenant, parts.facts), (tenant, facts));
    }

    #[test]
    fn parse_accepts_only_canonical_texts(text in "[%:a2A-]{0,8}") {
        if let Some(parts) = Subject::parse(&text) {
            let again = Subject::from_optional(&parts.tenant, parts.facts.iter().map(Option::as_ref));
            prop_assert_eq!(again.as_str(), text);
        }
    }

    #[test]
    fn different_requests_have_different_subjects(requests in prop::collection::vec((fact(), fact()), 2..8)) {
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
