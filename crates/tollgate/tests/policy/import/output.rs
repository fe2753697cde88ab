//! The imported policy as a file.

use tollgate::policy::ImportFormat;

use super::import;
use crate::helpers::parse;

const MESSAGING: &str = "
domain: messaging
descriptors:
  # Only 5 marketing messages a day to one number.
  - key: message_type
    value: marketing
    descriptors:
      - key: to_number
        rate_limit: { unit: DAY, requests_per_unit: 5, name: marketing }
  - key: to_number
    rate_limit: { unit: day, requests_per_unit: 100 }
  - key: path
    value: /files/*
    share_threshold: true
    descriptors:
      - key: user
        shadow_mode: true
        rate_limit: { unit: minute, requests_per_unit: 3 }
  - key: path
    value: /health
  - key: path
    descriptors:
      - key: user
        rate_limit: { unit: hour, requests_per_unit: 0 }
";
const INTERNAL: &str =
    "domain: internal\ndescriptors: [{ key: ldap, rate_limit: { unlimited: true } }]\n";

const POLICY: &str = "\
# Imported from envoyproxy/ratelimit:
# - messaging.yaml
# - internal.yaml
version: 1
defaults: { limit: unlimited }
rules:
  - name: messaging.message_type_marketing.to_number
    match: { facts: { domain: messaging, descriptor: \"message_type=marketing/to_number=*\" } }
    per: [descriptor]
    limits: [{ rate: 5/d, align: day, name: marketing }]
  - name: messaging.path_-files--.user
    match: { facts: { domain: messaging, descriptor: \"path=%2Ffiles%2F*/user=*\" } }
    per: [\"entry:user\"]
    mode: shadow
    limits: [{ rate: 3/min, align: minute }]
  - name: messaging.to_number
    match: { facts: { domain: messaging, descriptor: \"to_number=*\" } }
    per: [descriptor]
    limits: [{ rate: 100/d, align: day }]
  - name: messaging.path.user
    match: { facts: { domain: messaging, descriptor: \"path=*/user=*\" } }
    unless: { facts: { descriptor: [\"path=%2Fhealth/**\"] } }
    per: [descriptor]
    limits: [0]
  - name: internal.ldap
    match: { facts: { domain: internal, descriptor: \"ldap=*\" } }
    unlimited: true
";

#[test]
fn envoy_trees_become_readable_rules() {
    let files = [("messaging.yaml", MESSAGING), ("internal.yaml", INTERNAL)];
    let imported = import(ImportFormat::Envoy, &files);
    assert_eq!(imported.yaml, POLICY);
    assert_eq!(imported.warnings, [""; 0]);
    assert_eq!(parse(&imported.yaml).warnings(), [""; 0]);
}

/// Both values of `path` have limits for each `user`, but `bob` has none under /a.
const COVERED: &str = "
domain: edge
descriptors:
  - key: path
    value: /a
    descriptors:
      - { key: user, value: bob }
      - { key: user, rate_limit: { unit: day, requests_per_unit: 1 } }
  - key: path
    value: /b
    descriptors:
      - { key: user, rate_limit: { unit: day, requests_per_unit: 2 } }
  - key: path
    descriptors:
      - { key: user, rate_limit: { unit: day, requests_per_unit: 3 } }
";

#[test]
fn exceptions_are_only_for_descriptors_without_a_limit() {
    let imported = import(ImportFormat::Envoy, &[("edge.yaml", COVERED)]).yaml;
    let unless: Vec<_> = imported.lines().filter(|line| line.contains("unless")).collect();
    assert_eq!(
        unless,
        [
            "    unless: { facts: { descriptor: [path=%2Fa/user=bob] } }",
            "    unless: { facts: { descriptor: [\"path=%2Fa/**\"] } }",
        ],
        "{imported}"
    );
}

const LIMITS: &str = "---
-
  namespace: shop
  max_value: 1000
  seconds: 60
  conditions:
  variables:
-
  namespace: shop
  max_value: 5
  seconds: 10
  name: posts of a user
  conditions:
    - \"descriptors[0]['req.method'] == 'POST'\"
    - \"descriptors[0].tier != 'gold'\"
  variables:
    - user_id
";

const SHOP: &str = "\
# Imported from Limitador:
# - limits.yaml
version: 1
defaults: { limit: unlimited }
rules:
  - name: shop.limit
    match: { facts: { domain: shop, descriptor_index: \"0\" } }
    per: []
    missing: skip
    continue: true
    algorithm: fixed_window
    limits: [1000/60s]
  - name: shop.posts-of-a-user
    match: { facts: { domain: shop, descriptor_index: \"0\", \"entry:req.method\": POST, \"entry:tier\": \"*\" } }
    unless: { facts: { \"entry:tier\": [gold] } }
    per: [\"entry:user_id\"]
    missing: skip
    continue: true
    algorithm: fixed_window
    limits: [5/10s]
";

#[test]
fn limitador_limits_become_readable_rules() {
    let imported = import(ImportFormat::Limitador, &[("limits.yaml", LIMITS)]);
    assert_eq!(imported.yaml, SHOP);
    assert_eq!(imported.warnings, [""; 0]);
    assert_eq!(parse(&imported.yaml).warnings(), [""; 0]);
}

#[test]
fn names_are_valid_and_unique() {
    let long = "k".repeat(100);
    let config = format!(
        "domain: d d\ndescriptors:
  - {{ key: {long}, rate_limit: {{ unit: day, requests_per_unit: 1 }} }}
  - {{ key: {long}, value: x, rate_limit: {{ unit: day, requests_per_unit: 1 }} }}
  - {{ key: 'a b', rate_limit: {{ unit: day, requests_per_unit: 1 }} }}
  - {{ key: 'a-b', rate_limit: {{ unit: day, requests_per_unit: 1 }} }}
"
    );
    let policy = parse(&import(ImportFormat::Envoy, &[("c.yaml", &config)]).yaml);
    let names: Vec<_> = policy.rules().iter().map(tollgate::policy::Rule::name).collect();
    let (first, second) = (format!("d-d.{}", "k".repeat(60)), format!("d-d.{}-2", "k".repeat(58)));
    assert_eq!(names, [&first, &second, "d-d.a-b", "d-d.a-b-2"]);
}

#[test]
fn file_names_and_texts_cannot_change_the_policy() {
    let config = "domain: \"a\\nb: c\\\"\\\\ \u{1F600}*\"\ndescriptors:\n  - key: \"k\\u0007\"\n    value: \"true\"\n    rate_limit: { unit: day, requests_per_unit: 1 }\n";
    let imported = import(ImportFormat::Envoy, &[("a\nrules: []", config)]);
    let policy = parse(&imported.yaml);
    let facts = tollgate::Facts::of_descriptor("a\nb: c\"\\ \u{1F600}*", [("k\u{7}", "true")], 0);
    let planned = policy.plan(&tollgate::Request::new(facts.unwrap()));
    assert_eq!(planned.rule().name(), policy.rules()[0].name(), "{}", imported.yaml);
}
