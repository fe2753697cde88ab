//! Overrides per rule: selection of the rule, kept limits, dry run, fresh counters.

use serde_json::{Value, json};

use crate::admin_client::{admin, audit, limits_of, start_with_admin};
use crate::service::{Scratch, Service};

/// `examples/policy.yaml` counts clients in the rules `banned` (a block) and `external-api` (10/min and 100/h). Its default
/// applies to no request, because `whole-service` matches all of them.
fn with_example() -> Service {
    let policy = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/policy.yaml");
    start_with_admin(&["--policy", policy])
}

fn set(service: &Service, client: &str, body: &Value) -> Value {
    let reply = admin(service, "PUT", &limits_of(client), &body.to_string());
    assert_eq!(reply.status, 200, "{}", reply.body);
    reply.json()
}

fn check(service: &Service, facts: &Value) -> Value {
    service.post("/check", json!({ "facts": facts }).to_string()).json()
}

fn rules(overrides: &Value) -> Vec<&str> {
    let overrides = overrides.as_array().expect("a list").iter();
    overrides.map(|entry| entry["rule"].as_str().expect("a rule")).collect()
}

#[test]
fn override_does_not_lift_a_ban_unless_it_names_the_rule() {
    let service = with_example();
    let banned = json!({"client": "evil", "ip": "192.0.2.7"});
    let body = json!({"limits": [{"limit": 100, "window_ms": 60_000}]});
    let reply = admin(&service, "PUT", &limits_of("evil"), &body.to_string());
    assert_eq!((reply.status, &reply.json()["field"]), (400, &json!("rule")));
    let candidates = json!([
        {"rule": "banned", "limits": ["blocked"], "blocks": true},
        {"rule": "external-api", "limits": ["10/min", "100/h"], "blocks": false},
    ]);
    assert_eq!(reply.json()["candidates"], candidates);
    assert_eq!(check(&service, &banned)["allowed"], false);

    let mut all = body.clone();
    all["all_rules"] = json!(true);
    let stored = set(&service, "evil", &all);
    assert_eq!(stored["applies_to"], json!(["external-api"]));
    assert_eq!(check(&service, &banned)["allowed"], false, "the block stays");

    let mut named = body;
    named["rule"] = json!("banned");
    let stored = set(&service, "evil", &named);
    let replaced = json!([{
        "rule": "banned", "limit_name": "60s", "before": "blocked", "after": "100/min",
    }]);
    assert_eq!(stored["replaces"], replaced);
    assert_eq!(check(&service, &banned)["allowed"], true);
}

#[test]
fn ban_by_an_override_is_lifted_only_by_name() {
    let service = start_with_admin(&[]);
    let facts = json!({"client": "evil"});
    set(&service, "evil", &json!({"limits": [{"limit": 0, "window_ms": 60_000}]}));
    assert_eq!(check(&service, &facts)["allowed"], false);
    let mut body = json!({"limits": [{"limit": 100, "window_ms": 60_000}]});
    for selection in [json!({}), json!({"all_rules": true})] {
        let mut body = body.clone();
        body.as_object_mut().unwrap().extend(selection.as_object().unwrap().clone());
        let reply = admin(&service, "PUT", &limits_of("evil"), &body.to_string());
        assert_eq!((reply.status, &reply.json()["field"]), (400, &json!("rule")), "{}", reply.body);
        assert_eq!(reply.json()["candidates"][0]["blocks"], true);
        assert_eq!(check(&service, &facts)["allowed"], false, "the ban stays");
    }
    body["rule"] = json!("default");
    set(&service, "evil", &body);
    assert_eq!(check(&service, &facts)["allowed"], true);
}

#[test]
fn override_of_an_earlier_version_stays_active_except_in_blocks() {
    let scratch = Scratch::new();
    let text = r#"{"version":1,"limits":[{"limit":50,"window_us":60000000}]}"#;
    let saved =
        json!({"version": 1, "overrides": [{"client": ":evil", "text": text}], "audit": []});
    scratch.write("administration.json", &saved.to_string());
    let data = scratch.path().display().to_string();
    let policy = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/policy.yaml");
    let service = start_with_admin(&["--policy", policy, "--data-dir", &data]);
    let banned = json!({"client": "evil", "ip": "192.0.2.7"});
    assert_eq!(check(&service, &banned)["allowed"], false);
    let external = json!({"client": "evil", "path": "/api/external/x"});
    assert_eq!(check(&service, &external)["limit"], 50);
    let read = admin(&service, "GET", &limits_of("evil"), "").json();
    assert_eq!(
        (&read["rule"], &read["applies_to"]),
        (&Value::Null, &json!(["external-api", "default"]))
    );
    let body = json!({"limits": [{"limit": 70, "window_ms": 60_000}], "rule": "external-api"});
    assert_eq!(set(&service, "evil", &body)["replaces"][0]["before"], "50/min");
    assert_eq!(check(&service, &external)["limit"], 70);
    let remove = |query: &str| admin(&service, "DELETE", &(limits_of("evil") + query), "").status;
    assert_eq!(remove("?rule=external-api"), 204);
    assert_eq!(check(&service, &external)["limit"], 50, "the older override applies again");
    assert_eq!(remove(""), 204);
    assert_eq!(check(&service, &external)["limit"], 10);
}

#[test]
fn other_limits_of_the_rule_stay_unless_only() {
    let service = with_example();
    let external = json!({"client": "c1", "path": "/api/external/x"});
    let limits = |service: &Service| {
        let body = json!({ "facts": external }).to_string();
        let explained = service.post("/explain", body).json();
        let takes = explained["takes"].as_array().unwrap().iter();
        let takes = takes.filter(|take| take["rule"] == "external-api");
        takes.map(|take| take["numbers"]["limit"].as_u64().unwrap()).collect::<Vec<_>>()
    };
    let mut body =
        json!({"limits": [{"limit": 50, "window_ms": 60_000, "burst": 5}], "rule": "external-api"});
    let change = json!([{
        "rule": "external-api", "limit_name": "60s", "before": "10/min", "after": "50/min",
        "burst_after": 5,
    }]);
    let kept = json!([{"rule": "external-api", "limit_name": "3600s", "limit": "100/h"}]);
    let path = limits_of("c1") + "?dry_run=true";
    let dry = admin(&service, "PUT", &path, &body.to_string());
    assert_eq!((dry.status, &dry.json()["replaces"], &dry.json()["keeps"]), (200, &change, &kept));
    assert_eq!(limits(&service), [10, 100], "a dry run changes nothing");
    assert_eq!(
        (audit(&service).len(), admin(&service, "GET", &limits_of("c1"), "").status),
        (0, 404)
    );

    let stored = set(&service, "c1", &body);
    assert_eq!((&stored["replaces"], &stored["keeps"]), (&change, &kept));
    assert_eq!(limits(&service), [50, 100]);
    body["only"] = json!(true);
    let stored = set(&service, "c1", &body);
    let removed = json!({
        "rule": "external-api", "limit_name": "3600s", "before": "100/h", "after": null,
    });
    assert_eq!((&stored["replaces"][1], &stored["keeps"]), (&removed, &json!([])));
    assert_eq!(stored["replaces"][0]["before"], "50/min", "what applied to the client before");
    assert_eq!(limits(&service), [50]);
}

#[test]
fn limit_that_an_override_removes_blocks_nothing() {
    let scratch = Scratch::new();
    let text = "version: 1\nrules:\n  - { name: api, per: [client], limits: [10/d, 1/h] }\n";
    let service = start_with_admin(&["--policy", &scratch.write("policy.yaml", text)]);
    let blocked = || service.get("/api/blocks").json()["blocked"].as_array().unwrap().len();
    assert_eq!((service.check("c1")["allowed"].clone(), blocked()), (json!(true), 1));
    let body = json!({"limits": [{"limit": 20, "window_ms": 86_400_000}], "only": true});
    set(&service, "c1", &body);
    assert_eq!((blocked(), service.check("c1")["allowed"].clone()), (0, json!(true)));
}

#[test]
fn each_rule_has_its_own_override() {
    let service = with_example();
    let body = |rule: &str, limit: u64| json!({"limits": [{"limit": limit, "window_ms": 60_000}], "rule": rule});
    set(&service, "c1", &body("external-api", 20));
    set(&service, "c1", &body("default", 30));
    let read = admin(&service, "GET", &limits_of("c1"), "").json();
    assert_eq!((&read["rule"], &read["limits"][0]["limit"]), (&json!("default"), &json!(30)));
    assert_eq!(rules(&read["overrides"]), ["default", "external-api"]);
    let listed = admin(&service, "GET", "/admin/overrides", "").json();
    assert_eq!(rules(&listed["overrides"]), ["default", "external-api"]);
    assert_eq!(service.get("/api/limits").json()["per_key_limits"], json!({"c1": 30}));
    check(&service, &json!({"client": "c1", "path": "/api/external/x"}));
    set(&service, "c1", &body("external-api", 0));
    let stats = admin(&service, "GET", "/admin/external/clients/c1/stats", "").json();
    let overridden = stats["counters"].as_array().unwrap().iter();
    let overridden = overridden.filter(|counter| counter["overridden"] == true);
    let mut overridden: Vec<_> =
        overridden.filter_map(|counter| counter["rule"].as_str()).collect();
    overridden.dedup();
    assert_eq!(overridden, ["external-api", "default"], "{stats}");

    let remove = |query: &str| admin(&service, "DELETE", &(limits_of("c1") + query), "").status;
    assert_eq!((remove("?rule=banned"), remove("?rule=")), (404, 400));
    assert_eq!(remove("?rule=external-api"), 204);
    let read = admin(&service, "GET", &limits_of("c1"), "").json();
    assert_eq!(rules(&read["overrides"]), ["default"]);
    set(&service, "c1", &body("external-api", 20));
    assert_eq!((remove(""), remove("")), (204, 404));
}

#[test]
fn fresh_override_resets_only_its_rule() {
    let scratch = Scratch::new();
    let text = "version: 1\nrules:\n  \
        - { name: api, match: { path: /api }, per: [client], limits: [10/d], algorithm: token_bucket }\n  \
        - { name: pages, match: { path: /pages }, per: [client, page], limits: [10/d] }\n  \
        - { name: site, per: [client], limits: [10/d] }\n";
    let service = start_with_admin(&["--policy", &scratch.write("policy.yaml", text)]);
    let facts = |path: &str| json!({"client": "c1", "path": path, "page": "a"});
    for path in ["/api", "/pages", "/other"] {
        for _ in 0..10 {
            assert_eq!(check(&service, &facts(path))["allowed"], true);
        }
    }
    let body = |rule: &str, fresh: bool| json!({"limits": [{"limit": 20, "window_ms": 86_400_000}], "rule": rule, "fresh": fresh});
    let remaining = |path: &str| {
        let body = json!({ "facts": facts(path) }).to_string();
        service.post("/peek", body).json()["remaining"].clone()
    };
    set(&service, "c1", &body("api", false));
    assert_eq!(remaining("/api"), 0, "the used share of a token bucket stays used");
    set(&service, "c1", &body("site", false));
    assert_eq!(remaining("/other"), 10, "the used count of a window stays used");
    set(&service, "c1", &body("api", true));
    set(&service, "c1", &body("pages", true));
    assert_eq!([remaining("/api"), remaining("/pages"), remaining("/other")], [20, 20, 10]);
    let fresh: Vec<Value> = audit(&service).iter().map(|entry| entry["fresh"].clone()).collect();
    assert_eq!(fresh, [json!(true), json!(true), Value::Null, Value::Null]);
}
