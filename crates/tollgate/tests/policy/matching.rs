//! The values that each condition matches.

use tollgate::policy::RuleOutcome;

use crate::helpers::{matched, parse, request, rules};

/// Whether a rule with this `match` matches these facts.
fn holds(matching: &str, facts: &[(&str, &str)]) -> bool {
    let policy = rules(&format!("- {{ name: a, match: {{ {matching} }}, limits: [1/s] }}"));
    matched(&policy, facts) == ["a"]
}

#[test]
fn methods_and_hosts_ignore_case_and_port() {
    for method in ["GET", "get", "Get"] {
        assert!(holds("method: [post, gEt]", &[("method", method)]));
    }
    assert!(!holds("method: GET", &[("method", "GETS")]));
    for host in ["a.example", "A.Example:8080", "a.example."] {
        assert!(holds("host: 'a.EXAMPLE'", &[("host", host)]), "{host}");
        assert!(holds("host: '*.example'", &[("host", host)]), "{host}");
    }
    assert!(holds("host: '[::1]'", &[("host", "[::1]:443")]));
    assert!(!holds("host: a.example", &[("host", "b.a.example")]));
}

#[test]
fn paths_match_without_query() {
    for path in ["/a", "/a?x=/b", "/a#/b", "/a?"] {
        assert!(holds("path: /a", &[("path", path)]), "{path}");
        assert!(holds("path: /*", &[("path", path)]), "{path}");
    }
    assert!(!holds("path: /a/b", &[("path", "/a?/b")]));
}

#[test]
fn addresses_match_in_any_notation() {
    for ip in ["192.0.2.7", "::ffff:192.0.2.7", "::ffff:c000:207", "0:0:0:0:0:FFFF:C000:0207"] {
        assert!(holds("ip: 192.0.2.7", &[("ip", ip)]), "{ip}");
        assert!(holds("ip: [10.0.0.0/8, 192.0.2.0/24]", &[("ip", ip)]), "{ip}");
        assert!(holds("ip: '::ffff:192.0.2.0/120'", &[("ip", ip)]), "{ip}");
        assert!(holds("ip: 0.0.0.0/0", &[("ip", ip)]), "{ip}");
        assert!(!holds("ip: '::/0'", &[("ip", ip)]), "{ip}");
        assert!(!holds("ip: 192.0.3.0/24", &[("ip", ip)]), "{ip}");
    }
    assert!(holds("ip: '2001:db8::/32'", &[("ip", "2001:0DB8::1")]));
    assert!(!holds("ip: 0.0.0.0/0", &[("ip", "not an address")]));
    assert!(!holds("ip: 0.0.0.0/0", &[]));
}

#[test]
fn ipv6_conditions_match_the_full_address() {
    for (matching, inside, outside) in [
        ("ip: '::1'", "::1", "::2"),
        ("ip: '2001:db8:1:2::1'", "2001:DB8:1:2:0::1", "2001:db8:1:2::2"),
        ("ip: '2001:db8:1:2::1/128'", "2001:db8:1:2::1", "2001:db8:1:2::"),
        ("ip: '2001:db8:1:2:3::/80'", "2001:db8:1:2:3:ffff::9", "2001:db8:1:2:4::9"),
        ("ip: '2001:db8:1:2::/64'", "2001:db8:1:2:3::9", "2001:db8:1:3::9"),
        ("facts: { ip: '::1' }", "::1", "::2"),
    ] {
        assert!(holds(matching, &[("ip", inside)]), "{matching}");
        assert!(!holds(matching, &[("ip", outside)]), "{matching}");
    }
    let policy = rules("- { name: a, match: { ip: '2001:db8::1' }, limits: [1/s] }");
    assert_eq!(
        policy.explain(&request(&[("ip", "2001:DB8::2")])).to_string(),
        "a: ip is \"2001:db8::2\", expected \"2001:db8::1\"\ndefault: matched\n"
    );
}

#[test]
fn headers_and_other_facts_match_by_name() {
    assert!(holds("headers: { X-Plan: 'gold*' }", &[("header:x-plan", "golden")]));
    assert!(!holds("headers: { X-Plan: gold }", &[("header:x-plan", "Gold")]));
    for name in ["header:X-Plan", "Header:x-plan", "HEADER:X-PLAN"] {
        assert!(holds(&format!("facts: {{ '{name}': gold }}"), &[("header:x-plan", "gold")]));
        assert!(holds("headers: { x-plan: gold }", &[(name, "gold")]));
    }
    assert!(holds("facts: { region: [eu, us] }", &[("region", "us")]));
    assert!(!holds("facts: { region: eu }", &[("zone", "eu")]));
    // `path` has the same meaning under `facts` as at the top level.
    assert!(holds("facts: { path: /a/** }", &[("path", "/a/b")]));
    assert!(holds("user: 42, client: true", &[("user", "42"), ("client", "true")]));
}

#[test]
fn all_conditions_must_match_with_any_value() {
    let matching = "method: [GET, HEAD], path: [/a, /b/*], client: c*";
    assert!(holds(matching, &[("method", "HEAD"), ("path", "/b/x"), ("client", "c9")]));
    assert!(!holds(matching, &[("method", "HEAD"), ("path", "/b/x"), ("client", "d")]));
    assert!(!holds(matching, &[("method", "HEAD"), ("path", "/b/x")]));
    let long: Vec<_> = (0..1000).map(|n| format!("u{n}")).collect();
    let long = format!("user: [{}, 'v*']", long.join(", "));
    assert!(holds(&long, &[("user", "u999")]) && holds(&long, &[("user", "v")]));
    assert!(!holds(&long, &[("user", "u1000")]));
}

const TIERS: &str = "
version: 1
tenant: acme
tiers:
  gold: [sha256:9F86D081884C7D659A2FEAA0C55AD015A3BF4F1B2B0B822CD15D6C15B0F00A08]
rules:
- { name: key, match: { api_key: sha256:ad95d5fa651ba86d8923fe1238d24a4f1988a752acfe426ac72ac7c04471bc17 }, limits: [1/s] }
- { name: gold, match: { tier: gold }, per: [api_key], limits: [1/s] }
- { name: acme, match: { tenant: acme }, limits: [1/s] }
";

#[test]
fn api_keys_match_by_digest_and_determine_the_tier() {
    let policy = parse(TIERS);
    assert_eq!(matched(&policy, &[("api_key", "free")]), ["key"]);
    assert_eq!(matched(&policy, &[("api_key", "test"), ("tier", "lead")]), ["gold"]);
    let request = request(&[("api_key", "test")]);
    let key = policy.plan(&request).matched()[0].key().into_owned();
    assert!(key.starts_with("sha256:9f86d0"), "{key}");
    // The digest itself is not accepted as a key: it is readable in the policy file.
    let digest = "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";
    assert_eq!(matched(&policy, &[("api_key", digest)]), ["acme"]);
    assert_eq!(matched(&policy, &[("api_key", "other"), ("tier", "gold")]), ["gold"]);
}

#[test]
fn request_tenant_takes_precedence_over_policy_tenant() {
    let policy = parse(TIERS);
    assert_eq!(matched(&policy, &[("client", "c")]), ["acme"]);
    assert_eq!(matched(&policy, &[("client", "c"), ("tenant", "umbrella")]), ["default"]);
    let request = request(&[("client", "c"), ("tenant", "umbrella")]);
    assert_eq!(policy.plan(&request).matched()[0].subject().as_str(), "umbrella:c");
}

#[test]
fn trace_reports_the_failed_condition() {
    let policy = rules(
        "
- { name: a, match: { method: GET, path: [/a, /b] }, limits: [1/s] }
- { name: b, per: [user], missing: skip, limits: [1/s] }
- { name: c, match: { user: u }, limits: [1/s] }
",
    );
    let trace = policy.explain(&request(&[("method", "GET"), ("path", "/c")]));
    let outcomes: Vec<_> = trace.tried().iter().map(|tried| tried.outcome.clone()).collect();
    assert_eq!(
        outcomes[0],
        RuleOutcome::Failed {
            condition: "path".to_owned(),
            expected: vec!["/a".to_owned(), "/b".to_owned()],
            found: Some("/c".to_owned()),
        }
    );
    assert_eq!(outcomes[1], RuleOutcome::MissingFact { fact: "user".to_owned() });
    assert!(trace.ends_with_default());
    assert_eq!(
        trace.to_string(),
        "a: path is \"/c\", expected \"/a\" or \"/b\"\n\
         b: user is missing, and the rule has missing: skip\n\
         c: user is missing, expected \"u\"\ndefault: matched\n"
    );
}

#[test]
fn trace_prefers_a_different_value_over_a_missing_fact() {
    let policy = rules("- { name: a, match: { tier: internal, path: /a }, limits: [1/s] }");
    let reason = |path| policy.explain(&request(&[("path", path)])).tried()[0].outcome.to_string();
    assert_eq!(reason("/b"), "path is \"/b\", expected \"/a\"");
    assert_eq!(reason("/a"), "tier is missing, expected \"internal\"");
}

#[test]
fn unless_excludes_requests() {
    let policy = rules(
        "
- { name: a, match: { path: /api/** }, unless: { path: [/api/health, /api/internal/**], user: root }, limits: [1/s] }
- { name: b, unless: { headers: { x-plan: gold* } }, limits: [1/s] }
",
    );
    let path = |path| matched(&policy, &[("path", path)]);
    assert_eq!(path("/api/search"), ["a"]);
    assert_eq!(path("/api/health"), ["b"]);
    assert_eq!(path("/api/internal/x"), ["b"]);
    assert_eq!(matched(&policy, &[("path", "/api/x"), ("user", "root")]), ["b"], "one is enough");
    assert_eq!(matched(&policy, &[("path", "/api/x"), ("user", "u")]), ["a"]);
    assert_eq!(matched(&policy, &[("header:x-plan", "golden")]), ["default"]);
    assert_eq!(matched(&policy, &[]), ["b"], "a condition on an unknown fact does not hold");
    let trace = policy.explain(&request(&[("path", "/api/health"), ("header:x-plan", "gold")]));
    assert_eq!(
        trace.to_string(),
        "a: path is \"/api/health\", which the rule excludes with unless\n\
         b: headers.x-plan is \"gold\", which the rule excludes with unless\ndefault: matched\n"
    );
    let facts: Vec<_> =
        policy.facts_used().iter().map(tollgate::policy::FactName::as_str).collect();
    assert_eq!(facts, ["path", "user", "client", "tenant", "header:x-plan"]);
    assert!(policy.warnings().is_empty(), "a rule with unless does not match every request");
}
