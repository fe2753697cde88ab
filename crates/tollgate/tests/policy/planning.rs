//! Planning: the order of rules, inheritance, missing facts, shadow groups, costs and warnings.

use tollgate::policy::{Distributed, OnMissingFact, OnStoreLoss, RuleMode};
use tollgate::{Algorithm, Limit, MemoryStore, PlanErrorKind, Policy, Verdict};

use crate::helpers::{matched, parse, request, rules, takes};

const EXAMPLE: &str = include_str!("../../../../examples/policy.yaml");

#[test]
fn builtin_policy_allows_100_per_minute_per_client() {
    let policy = Policy::builtin();
    assert_eq!(takes(&policy, &[("client", "c1")]), ["{:c1}:default/60s 1 Enforce"]);
    assert_eq!(policy.default_rule().limits()[0].algorithm(), Algorithm::SlidingWindow);
    assert_eq!((policy.rules().len(), policy.version()), (0, "builtin"));
}

#[test]
fn given_default_limit_moves_to_the_default_rule() {
    let policy = Policy::with_default(Limit::block().in_rule("elsewhere").unwrap());
    assert_eq!(takes(&policy, &[("client", "c1")]), ["{:c1}:default/block 1 Enforce"]);
}

#[test]
fn example_policy_plans_as_commented() {
    let policy = parse(EXAMPLE);
    assert_eq!(policy.warnings(), [""; 0]);
    let of = |facts: &[(&str, &str)]| matched(&policy, facts).join(" ");
    // The API keys are "test" and "free".
    assert_eq!(of(&[("api_key", "test")]), "internal-jobs");
    assert!(policy.plan(&request(&[("api_key", "test")])).is_unlimited());
    assert_eq!(of(&[("client", "c")]), "whole-service");
    assert_eq!(of(&[("ip", "192.0.2.9")]), "whole-service banned");
    assert_eq!(of(&[("method", "post"), ("path", "/login?x=1")]), "whole-service login");
    assert_eq!(of(&[("path", "/api/external/a/b")]), "whole-service external-api");
    assert_eq!(
        takes(&policy, &[("method", "POST"), ("path", "/reports/7/export"), ("user", "u")]),
        ["{}:whole-service/1s 1 Enforce", "{:u}:exports/monthly 5 Enforce"]
    );
    assert_eq!(
        takes(
            &policy,
            &[("method", "GET"), ("path", "/search"), ("api_key", "free"), ("user", "u")]
        ),
        [
            "{}:whole-service/1s 1 Enforce",
            "{:u}:search-free/search 1 Shadow { group: 2 }",
            "{:u}:search-free/next.60s 1 Shadow { group: 3 }"
        ]
    );
}

#[test]
fn first_match_decides_unless_it_continues() {
    let policy = rules(
        "
- { name: all, limits: [1/s], continue: true }
- { name: a, match: { client: a }, limits: [2/s] }
- { name: ab, match: { client: [a, b] }, limits: [3/s] }
- { name: free, match: { client: c }, unlimited: true }
",
    );
    assert_eq!(matched(&policy, &[("client", "a")]), ["all", "a"]);
    assert_eq!(matched(&policy, &[("client", "b")]), ["all", "ab"]);
    // The takes of rules before an unlimited rule are kept; the default applies only without a match.
    assert_eq!(takes(&policy, &[("client", "c")]), ["{:c}:all/1s 1 Enforce"]);
    assert_eq!(takes(&policy, &[("client", "d")]), ["{:d}:all/1s 1 Enforce"]);
    let request = request(&[("client", "c")]);
    let planned = policy.plan(&request);
    assert_eq!((planned.rule().name(), planned.is_unlimited()), ("free", false));
}

#[test]
fn default_rule_applies_without_a_match() {
    let policy = parse("version: 1\ndefaults: { limit: 7/h, per: user }\nrules: []");
    assert_eq!(takes(&policy, &[("user", "u")]), ["{:u}:default/3600s 1 Enforce"]);
    let policy = parse("version: 1\ndefaults: { limit: unlimited, missing: deny }");
    let request = request(&[("user", "u")]);
    let planned = policy.plan(&request);
    assert!(planned.is_unlimited() && planned.plan().unwrap().takes().is_empty());
    assert_eq!(planned.rule().name(), "default");
}

#[test]
fn rules_inherit_and_override_the_defaults() {
    let policy = parse(
        "
version: 1
defaults: { algorithm: token_bucket, on_store_loss: deny, missing: skip, per: [user], distributed: off }
rules:
- { name: inherits, limits: [10/min] }
- name: overrides
  limits: [10/min, { rate: 20/h, algorithm: fixed_window }]
  algorithm: sliding_counter
  on_store_loss: allow
  missing: share
  per: [client, ip]
  distributed: shadow
  mode: shadow
",
    );
    let [inherits, overrides] = policy.rules() else { panic!() };
    assert_eq!(inherits.limits()[0].algorithm(), Algorithm::TokenBucket);
    assert_eq!((inherits.mode(), inherits.missing()), (RuleMode::Enforce, OnMissingFact::Skip));
    let kept = (inherits.on_store_loss(), inherits.distributed());
    assert_eq!(kept, (OnStoreLoss::Deny, Distributed::Off));
    assert_eq!(inherits.per()[0].as_str(), "user");

    let algorithms = [Algorithm::SlidingCounter, Algorithm::FixedWindow];
    assert_eq!(overrides.limits().iter().map(Limit::algorithm).collect::<Vec<_>>(), algorithms);
    assert_eq!((overrides.mode(), overrides.missing()), (RuleMode::Shadow, OnMissingFact::Share));
    let kept = (overrides.on_store_loss(), overrides.distributed());
    assert_eq!(kept, (OnStoreLoss::Allow, Distributed::Shadow));
    assert_eq!(overrides.per().len(), 2);
    assert_eq!((overrides.index(), policy.default_rule().index()), (1, 2));
}

#[test]
fn missing_facts_are_shared_skipped_or_denied() {
    let policy = rules(
        "
- { name: skips, match: { path: /skip }, per: [user], limits: [1/s], missing: skip }
- { name: denies, match: { path: /deny }, per: [user], limits: [1/s], missing: deny, next: { limits: [1/s] } }
- { name: shares, per: [user, ip], limits: [1/s] }
",
    );
    assert_eq!(matched(&policy, &[("path", "/skip")]), ["shares"]);
    assert_eq!(matched(&policy, &[("path", "/skip"), ("user", "u")]), ["skips"]);
    assert_eq!(takes(&policy, &[("path", "/deny")]), ["{:%-}:denies/missing 1 Enforce"]);
    assert_eq!(takes(&policy, &[("path", "/deny"), ("user", "u")]).len(), 2);
    assert_eq!(takes(&policy, &[("ip", "::1")]), ["{:%-:%3A%3A}:shares/1s 1 Enforce"]);

    let store = MemoryStore::new();
    let request = request(&[("path", "/deny")]);
    let planned = policy.plan(&request);
    assert_eq!(store.take(&planned.plan().unwrap()).verdict(), Verdict::Never);
    assert!(policy.limit("denies", "missing", Algorithm::Block).is_some());
}

#[test]
fn default_rule_with_missing_skip_leaves_no_limits() {
    let policy = parse("version: 1\ndefaults: { missing: skip }");
    let request = request(&[("user", "u")]);
    let planned = policy.plan(&request);
    assert!(planned.matched().is_empty() && planned.is_unlimited());
    assert_eq!(planned.rule().name(), "default");
    assert!(!policy.explain(&request).ends_with_default());
}

#[test]
fn shadow_rules_and_trial_limits_are_separate_groups() {
    let policy = rules(
        "
- { name: a, limits: [1/s, 2/min], mode: shadow, continue: true }
- { name: b, limits: [3/s], next: { limits: [1/s, 1/s] } }
",
    );
    assert_eq!(
        takes(&policy, &[("client", "c")]),
        [
            "{:c}:a/1s 1 Shadow { group: 0 }",
            "{:c}:a/60s 1 Shadow { group: 0 }",
            "{:c}:b/1s 1 Enforce",
            "{:c}:b/next.1s 1 Shadow { group: 3 }",
            "{:c}:b/next.1s#2 1 Shadow { group: 3 }",
        ]
    );
    assert!(policy.limit("b", "next.1s#2", Algorithm::SlidingWindow).is_some());
    assert!(policy.limit("b", "next.1s", Algorithm::TokenBucket).is_none());
    assert!(policy.limit("c", "1s", Algorithm::SlidingWindow).is_none());
}

#[test]
fn unlimited_rule_with_trial_limits_never_refuses() {
    let policy = rules("- { name: a, unlimited: true, next: { limits: [1/h] } }");
    let request = request(&[("client", "c")]);
    let planned = policy.plan(&request);
    let store = MemoryStore::new();
    for _ in 0..3 {
        assert!(store.take(&planned.plan().unwrap()).is_allowed());
    }
    assert!(planned.is_unlimited());
}

#[test]
fn unlimited_rule_ignores_missing_facts() {
    let policy = parse(
        "{version: 1, defaults: {missing: deny}, rules: [{name: a, match: {user: u}, unlimited: true}]}",
    );
    assert_eq!(takes(&policy, &[("user", "u")]), [""; 0]);
    assert_eq!(takes(&policy, &[("user", "v")]), ["{:%-}:default/missing 1 Enforce"]);
}

#[test]
fn costs_multiply_without_overflow() {
    let policy = rules("- { name: a, limits: [10/min], cost: 9007199254740991 }");
    let cost = |cost| {
        let request = request(&[("client", "c")]).with_cost(cost);
        policy.plan(&request).matched()[0].cost()
    };
    assert_eq!(cost(0), 0);
    assert_eq!(cost(1), (1 << 53) - 1);
    assert_eq!(cost(2), 1 << 53);
    assert_eq!(cost(u64::MAX), 1 << 53);
}

#[test]
fn unnamed_limits_get_unique_names() {
    let policy = rules("- { name: a, limits: [1/min, 2/60s, 0, { rate: 3/min, name: 60s }] }");
    let names: Vec<_> = policy.rules()[0].limits().iter().map(Limit::name).collect();
    assert_eq!(names, ["60s#2", "60s#3", "block", "60s"]);
}

#[test]
fn too_many_takes_cause_a_warning_and_an_error() {
    let nine = "[1/s, 2/s, 3/s, 4/s, 5/s, 6/s, 7/s, 8/s, 9/s]";
    let policy = rules(&format!(
        "- {{ name: a, limits: {nine}, continue: true }}\n- {{ name: b, limits: {nine} }}"
    ));
    assert!(policy.warnings()[0].contains("18 takes"), "{:?}", policy.warnings());
    let request = request(&[("client", "c")]);
    let planned = policy.plan(&request);
    let error = planned.plan().unwrap_err();
    assert_eq!(error.kind(), PlanErrorKind::TooMany);
    assert!(error.to_string().contains("a, b"), "{error}");
}

#[test]
fn warns_about_unused_tiers_and_unreachable_rules() {
    let digest = "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";
    let policy = parse(&format!(
        "
version: 1
tiers: {{ used: [], unused: [{digest}] }}
rules:
- {{ name: a, match: {{ tier: 'us*' }}, limits: [1/s] }}
- {{ name: b, limits: [1/s] }}
- {{ name: c, limits: [1/s] }}
"
    ));
    let [tier, unreachable] = policy.warnings() else { panic!("{:?}", policy.warnings()) };
    assert!(tier.contains("unused"), "{tier}");
    assert!(unreachable.contains("(b)") && unreachable.contains("rule c and"), "{unreachable}");
}

#[test]
fn counts_survive_a_policy_change() {
    let store = MemoryStore::new();
    let remaining = |limits: &str| {
        let policy = rules(&format!("- {{ name: a, limits: [{limits}] }}"));
        let request = request(&[("client", "c")]);
        let planned = policy.plan(&request);
        store.take(&planned.plan().unwrap()).remaining()
    };
    assert_eq!(remaining("10/min"), Some(9));
    assert_eq!(remaining("20/min"), Some(18));
    // An unnamed limit with another window is another limit.
    assert_eq!(remaining("20/h"), Some(19));
}

#[test]
fn version_is_a_digest_of_the_text() {
    let (first, same, changed) =
        (parse("version: 1"), parse("version: 1"), parse("version: 1 # new"));
    assert_eq!(first.version(), same.version());
    assert_ne!(first.version(), changed.version());
    assert_eq!(first.version().len(), 12);
}

#[test]
fn warns_about_too_many_facts() {
    let rules = |headers: usize| {
        let headers: Vec<String> = (0..headers).map(|number| format!("x-h{number}: a")).collect();
        let headers = headers.join(", ");
        parse(&format!(
            "version: 1\nrules: [{{ name: a, match: {{ headers: {{ {headers} }} }}, limits: [1/s] }}]"
        ))
    };
    // The client and the tenant count as well.
    assert_eq!(rules(30).warnings(), [""; 0]);
    assert!(rules(31).warnings()[0].contains("33 facts"), "{:?}", rules(31).warnings());
}

/// A size of leases that has no effect is reported with its reason, but not where leases cannot be expected.
#[test]
fn leases_without_effect_are_warned_about() {
    let warnings = |defaults: &str, rule: &str| {
        let text =
            format!("version: 1\ndefaults: {{ {defaults} }}\nrules:\n  - {{ name: a, {rule} }}\n");
        let policy = Policy::from_yaml("test", &text, Policy::builtin_limit()).unwrap();
        policy.warnings().join("\n")
    };
    let too_small = "rule a, limit 60s: the limit is too small for leases of 100; the store decides every request";
    assert_eq!(warnings("limit: 1000/min", "limits: [{ rate: 50/min, lease: 100 }]"), too_small);
    let short = warnings("limit: 1000/min", "limits: [{ rate: 100000/s, lease: 10 }]");
    assert!(
        short.contains("the window is too short, or the limit too small, for leases"),
        "{short}"
    );
    let default = warnings("limit: 50/min, lease: 100", "limits: [1000/min]");
    assert!(default.starts_with("rule default, limit "), "{default}");
    for rule in ["limits: [{ concurrency: 50, ttl: 10s }]", "limits: [0/min]"] {
        assert_eq!(warnings("limit: 1000/min, lease: 100", rule), "", "{rule}");
    }
}

#[test]
fn header_facts_are_counted_whatever_their_case() {
    for name in ["header:x-org", "header:X-Org", "Header:X-Org"] {
        let policy = parse(&format!(
            "version: 1\nrules: [{{ name: a, per: [\"{name}\"], limits: [1/s], missing: skip }}]"
        ));
        assert_eq!(policy.rules()[0].per()[0].as_str(), "header:x-org");
    }
}
