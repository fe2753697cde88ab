//! GET /metrics: complete from the start, exact, well formed, without keys.

use std::thread;

use serde_json::json;

use crate::admin_client::start_with_admin;
use crate::metrics_text::Scrape;
use crate::service::{Scratch, Service, eventually};

const ALLOWED: &str = r#"ratelimiter_requests_checked_total{result="allowed"}"#;
const BLOCKED: &str = r#"ratelimiter_requests_checked_total{result="blocked"}"#;
const LOCAL: &str = r#"rate_limit_rejections_total{reason="local_exhausted"}"#;
const DISTRIBUTED: &str = r#"rate_limit_rejections_total{reason="distributed_exhausted"}"#;
const BACKEND: &str = r#"rate_limit_rejections_total{reason="backend_error"}"#;
const GLOBAL: &str = r#"rate_limit_tokens_remaining{scope="global"}"#;
const ROUTE: &str = r#"rate_limit_tokens_remaining{scope="route"}"#;
const DURATIONS: &str = "ratelimiter_check_duration_seconds_count";

const POLICY: &str = "\
version: 1
rules:
  - { name: jobs, match: { tier: internal }, unlimited: true }
  - name: watched
    match: { path: /watched }
    per: [client]
    limits: [{ rate: 2/h, name: a }, { rate: 2/d, name: b }]
    mode: shadow
  - name: tried
    match: { path: /tried }
    per: [client]
    limits: [100/h]
    next: { limits: [1/h] }
  - { name: strict, match: { path: /strict }, per: [client], limits: [2/h] }
";

fn would_refuse(rule: &str, trial: &str) -> String {
    format!(r#"tollgate_would_refuse_total{{rule="{rule}",trial="{trial}"}}"#)
}

fn with_policy(text: &str) -> (Scratch, Service) {
    let scratch = Scratch::new();
    let path = scratch.write("policy.yaml", text);
    let service = Service::start(&["--policy", &path]);
    (scratch, service)
}

fn check(service: &Service, path: &str, count: usize) {
    let mut client = service.client();
    let body = json!({"facts": {"client": "c", "path": path}}).to_string();
    for _ in 0..count {
        assert_eq!(client.post("/check", &body).status, 200);
    }
}

#[test]
fn all_series_start_at_zero() {
    let (_scratch, service) = with_policy(POLICY);
    let scrape = Scrape::of(&service);
    let mut expected: Vec<String> = [
        ALLOWED,
        BLOCKED,
        LOCAL,
        DISTRIBUTED,
        BACKEND,
        DURATIONS,
        "ratelimiter_check_duration_seconds_sum",
        "rate_limit_backend_errors_total",
        r#"tollgate_policy_reloads_total{result="ok"}"#,
        r#"tollgate_policy_reloads_total{result="error"}"#,
        "tollgate_state_save_errors_total",
        "tollgate_memory_keys",
        "tollgate_memory_untracked_total",
        r#"tollgate_requests_total{frontend="http"}"#,
        r#"tollgate_requests_total{frontend="resp"}"#,
        r#"tollgate_requests_total{frontend="grpc"}"#,
        r#"tollgate_connections{frontend="resp"}"#,
        r#"tollgate_connections{frontend="grpc"}"#,
    ]
    .map(str::to_owned)
    .into();
    for rule in ["jobs", "watched", "tried", "strict", "default"] {
        expected.extend(["shadow", "next"].map(|trial| would_refuse(rule, trial)));
    }
    for series in expected {
        assert_eq!(scrape.value(&series), 0.0, "{series}");
    }
    for gauge in [GLOBAL, ROUTE] {
        assert!(!scrape.has(gauge), "a gauge is absent until there is a value");
    }
    assert_eq!(scrape.value("tollgate_memory_keys_max"), 1_000_000.0);
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(scrape.value(&format!(r#"tollgate_build_info{{version="{version}"}}"#)), 1.0);
}

#[test]
fn counts_each_check_exactly_once() {
    let service = Service::start(&[]);
    let mut client = service.client();
    for _ in 0..3 {
        client.post("/check", r#"{"key":"k"}"#);
    }
    client.post("/check", r#"{"key":"k","cost":98}"#);
    client.post("/check", r#"{"key":"k","cost":101}"#);
    let one = json!({"key": "b", "limits": [{"limit": 1, "window_ms": 3_600_000}]});
    let batch = json!({"requests": [one, one, {"key": ""}, 7, {"key": "c"}]});
    assert_eq!(client.post("/check/batch", batch.to_string()).status, 200);
    let scrape = Scrape::of(&service);
    assert_eq!(scrape.value(ALLOWED), 5.0, "three single checks and two of the batch");
    assert_eq!(scrape.value(BLOCKED), 3.0, "deny, never, and one of the batch");
    assert_eq!((scrape.value(LOCAL), scrape.value(DISTRIBUTED)), (3.0, 0.0));
    assert_eq!(scrape.value(BACKEND), 0.0);
    assert_eq!(scrape.value(DURATIONS), 8.0);
    assert!(scrape.value("ratelimiter_check_duration_seconds_sum") > 0.0);
    assert_eq!(scrape.value("tollgate_memory_keys"), 3.0);
}

#[test]
fn peeks_refunds_and_errors_are_not_counted() {
    let service = Service::start(&[]);
    let mut client = service.client();
    for path in ["/peek", "/refund", "/explain"] {
        assert_eq!(client.post(path, r#"{"key":"k"}"#).status, 200);
        assert_eq!(client.post(path, r#"{"key":"k","cost":101}"#).status, 200);
    }
    for body in ["", "{", r#"{"key":""}"#, r#"{"key":"k","cost":-1}"#] {
        for path in ["/check", "/peek", "/explain", "/check/batch", "/release"] {
            assert_eq!(client.post(path, body).status, 400, "{path} {body}");
        }
    }
    assert_eq!(client.get("/check").status, 405);
    assert_eq!(client.post("/check", "x".repeat(70_000)).status, 413);
    let scrape = Scrape::of(&service);
    let nonzero: Vec<_> = scrape.series().iter().filter(|(_, value)| **value != 0.0).collect();
    // Gauges of the node and its process, and requests with any result.
    let gauges = [
        "tollgate_memory_keys_max",
        "tollgate_build_info",
        "tollgate_policy_info",
        "tollgate_ready",
        "tollgate_connections",
        "tollgate_requests_total",
        "tollgate_http_request",
        "process_",
    ];
    for (series, value) in nonzero {
        assert!(gauges.iter().any(|name| series.starts_with(name)), "{series} is {value}");
    }
}

#[test]
fn counts_all_concurrent_checks() {
    let service = Service::start(&[]);
    thread::scope(|threads| {
        for _ in 0..4 {
            threads.spawn(|| {
                let mut client = service.client();
                for _ in 0..500 {
                    client.post("/check", r#"{"key":"hot"}"#);
                }
            });
        }
    });
    let scrape = Scrape::of(&service);
    assert_eq!((scrape.value(ALLOWED), scrape.value(BLOCKED)), (100.0, 1900.0));
    assert_eq!((scrape.value(LOCAL), scrape.value(DURATIONS)), (1900.0, 2000.0));
}

#[test]
fn remaining_gauges_show_the_last_decision() {
    let (_scratch, service) = with_policy(POLICY);
    service.check("c");
    assert_eq!(Scrape::of(&service).value(GLOBAL), 99.0);
    check(&service, "/strict", 1);
    let scrape = Scrape::of(&service);
    assert_eq!((scrape.value(GLOBAL), scrape.value(ROUTE)), (99.0, 1.0));
    check(&service, "/strict", 2);
    assert_eq!(Scrape::of(&service).value(ROUTE), 0.0, "a refusal is a decision too");
    service.post("/check", r#"{"facts":{"tier":"internal"}}"#);
    service.post("/peek", r#"{"key":"other","cost":50}"#);
    let scrape = Scrape::of(&service);
    let values = (scrape.value(GLOBAL), scrape.value(ROUTE));
    assert_eq!(values, (99.0, 0.0), "an unlimited check and a peek change no gauge");
}

#[test]
fn counts_refusals_of_shadow_rules() {
    let (_scratch, service) = with_policy(POLICY);
    check(&service, "/watched", 5);
    let scrape = Scrape::of(&service);
    assert_eq!((scrape.value(ALLOWED), scrape.value(BLOCKED)), (5.0, 0.0));
    let would = scrape.value(&would_refuse("watched", "shadow"));
    assert_eq!(would, 3.0, "once per check, although two limits would refuse");
    assert_eq!(scrape.value(&would_refuse("watched", "next")), 0.0);
    assert_eq!(scrape.value(&would_refuse("default", "shadow")), 0.0);
    assert_eq!(scrape.value(LOCAL), 0.0, "no check was refused");
}

#[test]
fn counts_refusals_of_trial_limits() {
    let (_scratch, service) = with_policy(POLICY);
    check(&service, "/tried", 4);
    let scrape = Scrape::of(&service);
    assert_eq!(scrape.value(&would_refuse("tried", "next")), 3.0);
    assert_eq!(scrape.value(&would_refuse("tried", "shadow")), 0.0);
    assert_eq!((scrape.value(ALLOWED), scrape.value(BLOCKED)), (4.0, 0.0));
    assert_eq!(scrape.value(ROUTE), 96.0, "the remaining quota of the current limit");
    let body = r#"{"facts":{"client":"c","path":"/tried"}}"#;
    for path in ["/peek", "/explain"] {
        service.post(path, body);
    }
    assert_eq!(Scrape::of(&service).value(&would_refuse("tried", "next")), 3.0);
}

#[test]
fn enforced_refusals_are_not_counted_as_trial() {
    let (_scratch, service) = with_policy(POLICY);
    check(&service, "/strict", 5);
    let scrape = Scrape::of(&service);
    assert_eq!((scrape.value(ALLOWED), scrape.value(BLOCKED)), (2.0, 3.0));
    for trial in ["shadow", "next"] {
        assert_eq!(scrape.value(&would_refuse("strict", trial)), 0.0);
    }
}

#[test]
fn reload_keeps_counts_of_rules_and_drops_removed_rules() {
    let (scratch, service) = with_policy(POLICY);
    check(&service, "/watched", 5);
    let new = POLICY.replace("name: strict", "name: severe");
    scratch.write("policy.yaml", &new);
    eventually("the new rule", || Scrape::of(&service).has(&would_refuse("severe", "shadow")));
    let scrape = Scrape::of(&service);
    assert_eq!(scrape.value(&would_refuse("watched", "shadow")), 3.0);
    assert!(!scrape.has(&would_refuse("strict", "shadow")), "no series for a removed rule");
}

#[test]
fn labels_never_contain_a_key() {
    let (_scratch, service) = with_policy(POLICY);
    let mut client = service.client();
    let hostile = ["needle", "needle\"} 1\n", "needle\\", "needle{a=\"b\"}"];
    for key in hostile {
        client.post("/check", json!({ "key": key }).to_string());
        client.post("/check", json!({"key": "k", "tenant": key}).to_string());
        let facts = json!({"client": key, "path": "/watched", "user": key});
        client.post("/check", json!({ "facts": facts }).to_string());
        let limits = json!([{"name": "needle", "limit": 1, "window_ms": 1000}]);
        client.post("/check", json!({"key": key, "limits": limits}).to_string());
    }
    assert!(!service.get("/metrics").body.contains("needle"));
    let scrape = Scrape::of(&service);
    let known = [
        "result", "reason", "scope", "rule", "trial", "by", "le", "version", "token", "frontend",
        "route", "status", "unit", "part",
    ];
    for (label, value) in scrape.labels() {
        assert!(known.contains(&label.as_str()), "{label}={value}");
    }
}

#[test]
fn metric_names_match_the_contract() {
    let service = Service::start(&[]);
    let scrape = Scrape::of(&service);
    let names: Vec<&str> = scrape.names().collect();
    for name in [
        "ratelimiter_requests_checked_total",
        "ratelimiter_check_duration_seconds",
        "rate_limit_rejections_total",
        "rate_limit_tokens_remaining",
        "rate_limit_backend_errors_total",
        "tollgate_build_info",
        "tollgate_rule_checks_total",
        "process_cpu_seconds_total",
        "process_resident_memory_bytes",
        "process_open_fds",
        "process_max_fds",
        "process_start_time_seconds",
    ] {
        assert!(names.contains(&name), "{name} is missing in {names:?}");
    }
    let known = ["ratelimiter_", "rate_limit_", "tollgate_", "process_"];
    assert!(
        names.iter().all(|name| known.iter().any(|prefix| name.starts_with(prefix))),
        "{names:?}"
    );
}

#[test]
fn http_requests_are_counted_by_route_and_status() {
    let service = start_with_admin(&["--trusted-proxies", "127.0.0.1"]);
    let mut client = service.client();
    client.post("/check", r#"{"key":"k"}"#);
    client.post("/check", r#"{"key":"k"}"#);
    client.post("/check", "nonsense");
    client.post("/check/batch", r#"{"requests":[]}"#);
    for path in ["/api/nodes", "/auth", "/client-1234", "/admin/external/clients/c-1234/limits"] {
        client.get(path);
    }
    let scrape = Scrape::of(&service);
    let count = |route: &str, status: &str| {
        let labels = format!("{{route=\"{route}\",status=\"{status}\"}}");
        scrape.value(&format!("tollgate_http_requests_total{labels}"))
    };
    assert_eq!((count("/check", "200"), count("/check", "400")), (2.0, 1.0));
    assert_eq!(count("/check/batch", "200") + count("/api/nodes", "200"), 2.0);
    assert_eq!(count("/auth", "200") + count("other", "404"), 2.0);
    assert_eq!(count("/admin/external/clients/{id}/limits", "401"), 1.0);
    let durations = "tollgate_http_request_duration_seconds_count{route=\"/check\"}";
    assert_eq!(scrape.value(durations), 3.0);
    assert!(!format!("{scrape:?}").contains("1234"), "no label contains a client");
}
