//! Read API: nodes, limits, status and probes, and the separate listener of `--admin`.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::client::Client;
use crate::listings::take;
use crate::service::{Scratch, Service, eventually};

const POLICY: &str = "\
version: 1
defaults: { limit: 50/10min }
rules:
  - { name: jobs, match: { tier: internal }, unlimited: true }
  - name: search
    match: { method: GET, path: [/search, /find] }
    per: [user]
    limits: [{ rate: 2/h, name: hourly }, 20/d]
    missing: skip
  - { name: watched, match: { path: /watched }, per: [client], limits: [1/h], mode: shadow }
  - { name: tried, match: { path: /tried }, per: [client], limits: [9/h], next: { limits: [1/h] } }
  - { name: dear, match: { path: /dear }, per: [client], limits: [10/h], cost: 4 }
";

pub(crate) fn with_policy() -> (Scratch, Service) {
    let scratch = Scratch::new();
    let path = scratch.write("policy.yaml", POLICY);
    let service = Service::start(&["--policy", &path]);
    (scratch, service)
}

pub(crate) fn get(service: &Service, path: &str) -> Value {
    let reply = service.get(path);
    assert_eq!(reply.status, 200, "{path}: {}", reply.body);
    assert_eq!(reply.header("content-type"), Some("application/json"), "{path}");
    assert_eq!(reply.header("cache-control"), Some("no-store"), "{path}");
    reply.json()
}

pub(crate) fn parse_time(value: &Value) -> Timestamp {
    let text = value.as_str().unwrap_or_else(|| panic!("no time: {value}"));
    assert!(text.ends_with('Z'), "{text} is not in UTC");
    text.parse().unwrap_or_else(|error| panic!("{text} is not RFC 3339: {error}"))
}

#[test]
fn memory_store_lists_this_node_only() {
    let before = Timestamp::now();
    let service = Service::start(&["--node-id", "node-7.eu_west"]);
    let nodes = get(&service, "/api/nodes");
    let node = &nodes["nodes"][0];
    assert_eq!(nodes["nodes"].as_array().unwrap().len(), 1);
    assert_eq!((&node["id"], &node["state"]), (&json!("node-7.eu_west"), &json!("Up")));
    assert_eq!(node["address"], service.address().to_string());
    let registered = parse_time(&node["registered_at"]);
    assert!(registered <= Timestamp::now() && registered > before - Duration::from_secs(1));
}

#[test]
fn limits_without_policy_are_the_default() {
    let service = Service::start(&[]);
    let limits = get(&service, "/api/limits");
    assert_eq!(
        (&limits["default_limit"], &limits["default_window_ms"]),
        (&json!(100), &json!(60_000))
    );
    assert_eq!((&limits["per_key_limits"], &limits["rules"]), (&json!({}), &json!([])));
}

#[test]
fn limits_follow_the_policy_in_order() {
    let (scratch, service) = with_policy();
    let limits = get(&service, "/api/limits");
    assert_eq!(
        (&limits["default_limit"], &limits["default_window_ms"]),
        (&json!(50), &json!(600_000))
    );
    let rules = limits["rules"].as_array().unwrap();
    let names: Vec<&str> = rules.iter().map(|rule| rule["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["jobs", "search", "watched", "tried", "dear"]);
    assert_eq!((&rules[0]["unlimited"], &rules[0]["limits"]), (&json!(true), &json!([])));
    let search = &rules[1];
    assert_eq!((&search["per"], &search["missing"]), (&json!(["user"]), &json!("skip")));
    assert_eq!(search["limits"][0]["name"], "hourly");
    assert_eq!(
        (&search["limits"][1]["limit"], &search["limits"][1]["window_ms"]),
        (&json!(20), &json!(86_400_000))
    );
    let conditions = search["match"].as_array().unwrap();
    let path = conditions.iter().find(|condition| condition["fact"] == "path");
    assert_eq!(path.unwrap()["any_of"], json!(["/search", "/find"]));
    assert_eq!((&rules[2]["mode"], &rules[1]["mode"]), (&json!("shadow"), &json!("enforce")));
    assert_eq!(rules[3]["next"][0]["limit"], 1);
    assert_eq!(rules[4]["cost"], 4);
    scratch.write("policy.yaml", "version: 1\ndefaults: { limit: 7/1s }\n");
    eventually("the new policy", || get(&service, "/api/limits")["default_limit"] == 7);
    assert_eq!(get(&service, "/api/limits")["rules"], json!([]));
}

#[test]
fn default_limit_is_the_burst_of_a_token_bucket() {
    let scratch = Scratch::new();
    for (default, expected) in [
        ("{ rate: 10/min, burst: 25, algorithm: token_bucket }", 25),
        ("{ rate: 10/min, burst: 5, algorithm: token_bucket }", 5),
        ("{ rate: 10/min, algorithm: fixed_window }", 10),
    ] {
        let text = format!("version: 1\ndefaults: {{ limit: {default} }}\n");
        let service = Service::start(&["--policy", &scratch.write("policy.yaml", &text)]);
        let limits = get(&service, "/api/limits");
        assert_eq!(limits["default_limit"], expected, "{default}");
        assert_eq!(limits["default"]["limits"][0]["limit"], 10, "the configured count");
    }
}

#[test]
fn unlimited_default_has_null_numbers() {
    let scratch = Scratch::new();
    let path = scratch.write("policy.yaml", "version: 1\ndefaults: { limit: unlimited }\n");
    let service = Service::start(&["--policy", &path]);
    let limits = get(&service, "/api/limits");
    assert_eq!(
        (&limits["default_limit"], &limits["default_window_ms"]),
        (&json!(null), &json!(null))
    );
}

#[test]
fn status_reports_store_and_policy() {
    let (_scratch, service) = with_policy();
    take(&service, &json!({"key": "a"}));
    take(&service, &json!({"key": "b"}));
    let status = get(&service, "/api/status");
    assert_eq!(
        (&status["ready"], &status["version"]),
        (&json!(true), &json!(env!("CARGO_PKG_VERSION")))
    );
    assert_eq!(status["node"]["address"], service.address().to_string());
    let (started, now) =
        (parse_time(&status["node"]["started_at"]), parse_time(&status["node"]["now"]));
    assert!(started <= now, "{status}");
    assert_eq!(
        (&status["store"]["kind"], &status["store"]["why"]),
        (&json!("memory"), &json!("no Redis is configured"))
    );
    assert_eq!(
        (&status["store"]["keys"], &status["store"]["max_keys"]),
        (&json!(2), &json!(1_000_000))
    );
    assert_eq!(
        (&status["store"]["untracked"], &status["store"]["warning"]),
        (&json!(0), &json!(null))
    );
    assert_eq!(status["breaker"], json!(null), "the memory store has no breaker");
    let policy = &status["policy"];
    assert_eq!((&policy["rules"], &policy["error"]), (&json!(5), &json!(null)));
    assert!(policy["file"].as_str().unwrap().ends_with("policy.yaml"));
    assert_eq!(policy["version"].as_str().unwrap().len(), 12);
    parse_time(&policy["loaded_at"]);
}

#[test]
fn status_without_policy_reports_builtin() {
    let service = Service::start(&[]);
    let policy = get(&service, "/api/status")["policy"].clone();
    assert_eq!((&policy["version"], &policy["file"]), (&json!("builtin"), &json!(null)));
    assert_eq!(policy["warnings"], json!([]));
}

#[test]
fn probes_are_short_and_uncached() {
    let service = Service::start(&[]);
    for (path, body) in [("/healthz", "ok\n"), ("/readyz", "ready\n")] {
        let reply = service.get(path);
        assert_eq!((reply.status, reply.body.as_str()), (200, body));
        assert_eq!(reply.header("cache-control"), Some("no-store"));
    }
}

#[test]
fn ready_as_soon_as_it_listens() {
    for _ in 0..25 {
        let service = Service::start(&[]);
        let reply = service.get("/readyz");
        assert_eq!((reply.status, reply.body.as_str()), (200, "ready\n"));
        assert_eq!(reply.header("connection"), None, "the connection stays open");
    }
}

const OPERATING: [&str; 5] =
    ["/api/nodes", "/api/counters", "/api/limits", "/api/blocks", "/api/status"];
const DECIDING: [&str; 9] = [
    "/check",
    "/peek",
    "/refund",
    "/explain",
    "/check/batch",
    "/release",
    "/renew",
    "/reserve",
    "/settle",
];

#[test]
fn admin_listener_takes_over_operator_paths() {
    let service = Service::start(&["--admin", "127.0.0.1:0"]);
    let admin = service.admin_address();
    assert_ne!(admin, service.address());
    for path in OPERATING {
        assert_eq!(service.get(path).status, 404, "{path}");
        assert_eq!(Client::connect(admin).get(path).status, 200, "{path}");
    }
    for path in ["/healthz", "/readyz", "/metrics"] {
        assert_eq!(service.get(path).status, 200, "{path}");
        assert_eq!(Client::connect(admin).get(path).status, 200, "{path}");
    }
    service.check("seen");
    let counters = Client::connect(admin).get("/api/counters").json();
    assert_eq!(counters["counters"][0]["key"], "seen", "both listeners share the store");
}

#[test]
fn admin_listener_does_not_decide() {
    let service = Service::start(&["--admin", "127.0.0.1:0"]);
    let admin = service.admin_address();
    for path in DECIDING {
        let reply = Client::connect(admin).post(path, r#"{"key":"k"}"#);
        assert_eq!(reply.status, 404, "{path}: {}", reply.body);
    }
    assert_eq!(service.check("k")["remaining"], 99);
}
