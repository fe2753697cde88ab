//! The `OpenAPI` document matches the routes and responses of the server, and the `/docs` page is safe.

use std::collections::BTreeSet;

use jsonschema::Validator;
use serde_json::{Value, json};

use crate::admin_client::{admin, start_with_admin};
use crate::client::Reply;
use crate::service::{Scratch, Service, eventually};

const DESCRIPTION: &str = include_str!("../../assets/openapi.json");
const ROUTES: &str = include_str!("../../src/http/routes.rs");

/// A stream that stays open.
const LIVE: &str = "/api/live";

/// Forward auth, which accepts any method.
const FORWARD_AUTH: [&str; 2] = ["/auth", "/auth/nginx"];

/// The `/docs` page and its files, which are not API operations.
const PAGE: [&str; 3] = ["/docs", "/docs/page.js", "/docs/page.css"];

const POLICY: &str = "\
version: 1
tenant: acme
defaults: { limit: 5/h }
tiers: { gold: ['sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08'] }
rules:
  - { name: jobs, match: { tier: gold }, unlimited: true }
  - { name: watched, match: { path: /watched }, limits: [1/h], mode: shadow, continue: true }
  - { name: banned, match: { ip: 192.0.2.0/24 }, limits: [0] }
  - name: all-kinds
    match: { path: /kinds, headers: { x-plan: pro } }
    per: [client]
    limits:
      - { rate: 10/h, burst: 3, algorithm: token_bucket }
      - { rate: 10/h, algorithm: sliding_window, name: log }
      - { rate: 10/h, algorithm: sliding_counter, name: counter }
      - { rate: 10/h, algorithm: fixed_window, name: fixed }
      - { rate: 10/month, align: month, tz: Europe/Zurich, name: monthly }
      - { concurrency: 2, ttl: 30s }
    next: { limits: [1/h] }
    on_store_loss: deny
    missing: deny
    cost: 1
  - { name: login, match: { path: /login }, per: [ip], limits: [5/h], missing: deny }
";

pub(crate) fn description() -> Value {
    serde_json::from_str(DESCRIPTION).expect("the document is JSON")
}

/// Returns every (path, method, operation).
fn operations(description: &Value) -> Vec<(String, String, Value)> {
    let paths = description["paths"].as_object().expect("paths");
    let of_path = |(path, methods): (&String, &Value)| {
        let methods = methods.as_object().expect("methods").clone();
        let path = path.clone();
        methods.into_iter().map(move |(method, operation)| (path.clone(), method, operation))
    };
    paths.iter().flat_map(of_path).collect()
}

/// Returns every (path, method) of the router, parsed from its source.
fn routes() -> BTreeSet<(String, String)> {
    let mut routes = BTreeSet::new();
    for after in ROUTES.split(".route(\"").skip(1) {
        let (path, handler) = after.split_once("\", ").expect("a route has a handler");
        let known: [(&str, &[&str]); 4] = [
            ("get(", &["get"]),
            ("post(", &["post"]),
            ("one(", &["post"]),
            ("limits)", &["put", "get", "delete"]),
        ];
        let found = known.iter().find(|(start, _)| handler.starts_with(start));
        let (_, methods) = found.unwrap_or_else(|| panic!("unknown kind of handler for {path}"));
        routes.extend(methods.iter().map(|method| (path.to_owned(), (*method).to_owned())));
    }
    routes
}

/// Returns a validator for one schema with all components.
fn validator(description: &Value, schema: &Value) -> Validator {
    let schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "allOf": [schema],
        "components": description["components"],
    });
    jsonschema::validator_for(&schema).expect("a valid schema")
}

/// Asserts that a reply matches the documented schema of its status and content type.
pub(crate) fn check(description: &Value, path: &str, method: &str, reply: &Reply) {
    let status = reply.status.to_string();
    let response = &description["paths"][path][method]["responses"][&status];
    let context = format!("{method} {path} -> {status} {}", reply.body);
    assert!(response.is_object(), "the status is not documented: {context}");
    let content = response["content"].as_object().expect("a response has content");
    let kind = reply.header("content-type").expect("a reply has a content type");
    let essence = kind.split(';').next().expect("a media type");
    let schema =
        content.get(essence).unwrap_or_else(|| panic!("{kind} is not documented: {context}"));
    let value = if essence.ends_with("json") { reply.json() } else { json!(reply.body) };
    let validator = validator(description, &schema["schema"]);
    let errors: Vec<String> = validator
        .iter_errors(&value)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect();
    assert!(errors.is_empty(), "{context}\n{}", errors.join("\n"));
}

#[test]
fn serves_the_committed_document() {
    let service = Service::start(&[]);
    let reply = service.get("/openapi.json");
    assert_eq!((reply.status, reply.header("content-type")), (200, Some("application/json")));
    assert_eq!(reply.body, DESCRIPTION);
    let description = description();
    assert!(description["openapi"].as_str().unwrap().starts_with("3.1"));
    assert_eq!(description["info"]["version"], env!("CARGO_PKG_VERSION"));
}

#[test]
fn documents_exactly_the_routes() {
    let described: BTreeSet<(String, String)> =
        operations(&description()).into_iter().map(|(path, method, _)| (path, method)).collect();
    let mut routes = routes();
    assert!(routes.len() > 15, "routes not found: {routes:?}");
    // Served before the router, for any method.
    routes.extend(FORWARD_AUTH.map(|path| (path.to_owned(), "get".to_owned())));
    // Pages and their files are not operations.
    let is_page = |path: &str| path == "/" || path.starts_with("/d");
    routes.retain(|(path, _)| !is_page(path));
    assert_eq!(described, routes);
}

#[test]
fn documented_paths_and_methods_exist() {
    let service = start_with_admin(&[]);
    let operations = operations(&description());
    for (path, method, _) in &operations {
        let is_documented = |method: &str| {
            FORWARD_AUTH.contains(&&**path)
                || operations.iter().any(|operation| operation.0 == *path && operation.1 == method)
        };
        for tried in ["get", "post", "put", "delete", "patch"] {
            if (tried, &**path) == ("get", LIVE) {
                continue;
            }
            // Without a token: existing paths return 401 or accept the request.
            let reply = service.client().request(&tried.to_uppercase(), path, &[], "{}");
            let is_rejected = reply.status == 405;
            assert_eq!(is_rejected, !is_documented(tried), "{tried} {path}: {}", reply.status);
            assert_ne!(reply.status, 404, "{method} {path}");
        }
    }
}

#[test]
fn references_resolve_and_schemas_are_used() {
    fn references(value: &Value, found: &mut BTreeSet<String>) {
        match value {
            Value::Object(fields) => {
                found.extend(fields.get("$ref").and_then(Value::as_str).map(str::to_owned));
                fields.values().for_each(|value| references(value, found));
            }
            Value::Array(items) => items.iter().for_each(|item| references(item, found)),
            _ => {}
        }
    }
    let (description, mut referenced) = (description(), BTreeSet::new());
    references(&description, &mut referenced);
    for reference in &referenced {
        let pointer = reference.strip_prefix('#').expect("a local reference");
        assert!(description.pointer(pointer).is_some(), "{reference}");
    }
    for name in description["components"]["schemas"].as_object().unwrap().keys() {
        assert!(referenced.contains(&format!("#/components/schemas/{name}")), "{name} is not used");
        let definitions = DESCRIPTION.matches(&format!("\n   \"{name}\": {{")).count();
        assert_eq!(definitions, 1, "definitions of {name}");
    }
    let mut ids = BTreeSet::new();
    for (path, method, operation) in operations(&description) {
        let id = operation["operationId"].as_str().expect("an operation has an id").to_owned();
        assert!(ids.insert(id), "{method} {path}: duplicate id");
        let summary = operation["summary"].as_str();
        assert!(summary.is_some_and(|text| !text.is_empty()), "{method} {path}");
    }
}

#[test]
fn examples_are_accepted_and_match_their_schemas() {
    let service = start_with_admin(&[]);
    let description = description();
    let mut tried = 0;
    for (path, method, operation) in operations(&description) {
        let body = &operation["requestBody"]["content"]["application/json"];
        let Some(content) = body.as_object() else {
            let needs_none =
                method != "post" || path.starts_with("/admin") || path == "/api/logout";
            assert!(needs_none, "{method} {path} has no body");
            continue;
        };
        let validator = validator(&description, &content["schema"]);
        let named = content.get("examples").and_then(Value::as_object).cloned().unwrap_or_default();
        let examples =
            named.values().map(|example| &example["value"]).chain(content.get("example"));
        let before = tried;
        for example in examples {
            assert!(validator.is_valid(example), "{path}: {example}");
            if path == "/api/login" {
                // This path requires the headers of a browser.
                tried += 1;
                continue;
            }
            let reply = admin(&service, &method.to_uppercase(), &path, &example.to_string());
            // The reservation of the example does not exist.
            let expected = if path == "/settle" { 404 } else { 200 };
            assert_eq!(reply.status, expected, "{path} {example}: {}", reply.body);
            check(&description, &path, &method, &reply);
            tried += 1;
        }
        assert!(tried > before, "{path} has no example");
    }
}

#[test]
fn decision_schema_rejects_other_values() {
    let (service, description) = (Service::start(&[]), description());
    let decision = service.check("k");
    let schema = validator(&description, &json!({"$ref": "#/components/schemas/Decision"}));
    assert!(schema.is_valid(&decision));
    for (field, value) in
        [("verdict", json!("maybe")), ("remaining", json!(-1)), ("more", json!(1))]
    {
        let mut invalid = decision.clone();
        invalid[field] = value;
        assert!(!schema.is_valid(&invalid), "{invalid}");
    }
    let mut incomplete = decision;
    incomplete["limits"][0].as_object_mut().unwrap().remove("mode");
    assert!(!schema.is_valid(&incomplete), "{incomplete}");
}

/// Queries whose decisions differ in structure.
fn queries() -> Vec<Value> {
    let kinds = json!({"client": "c", "path": "/kinds", "header:x-plan": "pro"});
    vec![
        json!({"key": "user:1"}),
        json!({"key": "user:1", "cost": 0}),
        json!({"key": "user:1", "cost": 6}),
        json!({"key": "full", "cost": 5}),
        json!({"key": "full"}),
        json!({"key": "user:1", "tenant": "other"}),
        json!({"facts": {"api_key": "test"}}),
        json!({"facts": {"path": "/watched", "client": "c"}}),
        json!({"facts": {"path": "/watched", "client": "c"}}),
        json!({"facts": {"ip": "192.0.2.9"}}),
        json!({"facts": kinds.clone()}),
        json!({"facts": kinds.clone(), "cost": 3}),
        json!({"facts": kinds, "cost": 9_007_199_254_740_991_u64}),
        json!({"facts": {"path": "/kinds", "header:x-plan": "pro"}}),
        json!({"facts": {"path": "/login"}}),
        json!({"facts": {"user": "unknown"}}),
        json!({"key": "i", "limits": [{"limit": 0}]}),
        json!({"key": "i", "limits": ["10/min", "100/h", {"limit": 3, "window_ms": 1000}]}),
        json!({"key": "i", "limits": ["0"]}),
        json!({"key": "i", "limit": 10, "window_ms": 60_000}),
        json!({"key": "i", "limit": 10, "window_ms": 60_000, "burst": 20, "name": "short"}),
        json!({"key": "i", "limits": [{"limit": 1, "window_ms": 1}]}),
        json!({"key": "i", "limit": 10, "window_ms": 60_000, "unit": "tokens", "costs": {"tokens": 3}}),
        json!({"key": "i", "limits": [{"limit": 9, "window_ms": 60_000, "unit": "tokens"}], "costs": {}}),
        json!({"key": "i", "limits": [{"algorithm": "fixed_window", "limit": 1, "align": "year", "tz": "Asia/Tokyo"}]}),
        json!({"key": "i", "limits": [{"algorithm": "concurrency", "limit": 3}, {"limit": 9, "window_ms": 60_000, "burst": 20}]}),
        json!({"key": "\u{0}<b>💥", "limits": [{"algorithm": "sliding_counter", "limit": 3, "window_ms": 3_155_760_000_000_u64}]}),
    ]
}

#[test]
fn query_schema_rejects_what_the_server_rejects() {
    let (service, description) = (Service::start(&[]), description());
    let schema = validator(&description, &json!({"$ref": "#/components/schemas/Query"}));
    for body in [
        json!({}),
        json!({"key": "k", "facts": {"client": "k"}}),
        json!({"key": "k", "limits": []}),
        json!({"key": "k", "limits": ["10"]}),
        json!({"key": "k", "limits": ["10/month"]}),
        json!({"key": "k", "limits": [10]}),
        json!({"key": "k", "limit": 10}),
        json!({"key": "k", "window_ms": 1000}),
        json!({"key": "k", "burst": 1}),
        json!({"key": "k", "limit": 1, "window_ms": 1000, "algorithm": "concurrency"}),
        json!({"key": "k", "limit": 1, "window_ms": 1000, "limits": ["1/s"]}),
        json!({"key": "k", "limit": 1, "window_ms": 1000, "units": "tokens"}),
        json!({"key": "k", "unit": "tokens"}),
        json!({"key": "k", "limit": 1, "window_ms": 1000, "unit": "a b"}),
        json!({"key": "k", "cost": 1, "costs": {"tokens": 1}}),
        json!({"key": "k", "costs": {"a b": 1}}),
        json!({"key": "k", "costs": {"tokens": -1}}),
    ] {
        assert!(!schema.is_valid(&body), "{body}");
        assert_eq!(service.post("/check", body.to_string()).status, 400, "{body}");
    }
}

fn with_policy() -> (Scratch, Service) {
    let scratch = Scratch::new();
    let path = scratch.write("policy.yaml", POLICY);
    let service = Service::start(&["--policy", &path]);
    (scratch, service)
}

#[test]
fn decisions_match_their_schemas() {
    let (_scratch, service) = with_policy();
    let description = description();
    let mut client = service.client();
    let schema = validator(&description, &json!({"$ref": "#/components/schemas/Query"}));
    for body in queries() {
        assert!(schema.is_valid(&body), "{body}");
        for path in ["/explain", "/api/explain", "/peek", "/check", "/check", "/refund"] {
            let reply = client.post(path, body.to_string());
            assert_eq!(reply.status, 200, "{path} {body}: {}", reply.body);
            check(&description, path, "post", &reply);
        }
    }
    let mut batch = queries();
    batch.extend([json!({"key": ""}), json!(7)]);
    let reply = client.post("/check/batch", json!({ "requests": batch }).to_string());
    assert_eq!(reply.status, 200);
    check(&description, "/check/batch", "post", &reply);
    let slots = json!({"key": "held", "limits": [{"algorithm": "concurrency", "limit": 1}]});
    let held = client.post("/check", slots.to_string());
    check(&description, "/check", "post", &held);
    let permit = json!({"permit": held.json()["permit"]}).to_string();
    for path in ["/renew", "/release", "/renew", "/release"] {
        let reply = client.post(path, &permit);
        assert_eq!(reply.status, 200);
        check(&description, path, "post", &reply);
    }
    check_reservations(&service, &description);
}

/// Posts reservations, refusals, settlements into debt and errors, and checks their schemas.
fn check_reservations(service: &Service, description: &Value) {
    let post = |path: &str, body: &Value, status: u16| {
        let reply = service.post(path, body.to_string());
        assert_eq!(reply.status, status, "{path} {body}: {}", reply.body);
        check(description, path, "post", &reply);
        reply.json()
    };
    let limits = json!(["10/d", {"algorithm": "concurrency", "limit": 2}]);
    let body = json!({"key": "reserved", "cost": 2, "id": "a", "limits": limits});
    let reserved = post("/reserve", &body, 200);
    assert_eq!(post("/reserve", &body, 200)["repeated"], true);
    post("/reserve", &json!({"key": "reserved", "limits": limits}), 200);
    post("/reserve", &json!({"key": "reserved", "id": "a", "limits": limits}), 409);
    let token = &reserved["reservation"];
    post("/renew", &json!({ "reservation": token }), 200);
    let settled = post("/settle", &json!({"reservation": token, "cost": 15}), 200);
    assert_eq!(settled["limits"][0]["debt"], 5);
    post("/check", &json!({"key": "reserved", "limits": limits}), 200);
    post("/release", &json!({ "reservation": token }), 200);
    post("/settle", &json!({"reservation": format!("r0-{}", "a".repeat(64)), "cost": 0}), 404);
}

#[test]
fn problems_match_their_schemas() {
    let (_scratch, service) = with_policy();
    let description = description();
    let paths = ["/check", "/peek", "/refund", "/explain", "/api/explain", "/check/batch"];
    for path in paths.into_iter().chain(["/release", "/renew", "/reserve", "/settle"]) {
        for body in ["", "{", "[]", r#"{"unknown":1}"#, r#"{"key":""}"#, r#"{"permit":"x"}"#] {
            let reply = service.post(path, body);
            assert_eq!(reply.status, 400, "{path} {body}: {}", reply.body);
            check(&description, path, "post", &reply);
        }
        // One byte over the maximum. For a much longer body, the server may close the connection first.
        let max = match path {
            "/check/batch" => 1 << 20,
            "/release" | "/renew" => 2 << 20,
            _ => 64 << 10,
        };
        let large = service.post(path, " ".repeat(max + 1));
        assert_eq!(large.status, 413, "{path}");
        check(&description, path, "post", &large);
        let mut client = service.client();
        let head = format!("POST {path} HTTP/1.1\r\nhost: t\r\ncontent-length: 2\r\n\r\n{{}}");
        client.send(head.as_bytes()).unwrap();
        let untyped = client.reply().unwrap();
        assert_eq!(untyped.status, 415, "{path}");
        check(&description, path, "post", &untyped);
    }
    for path in ["/api/counters", "/api/blocks"] {
        for query in ["limit=0", "limit=x", "cursor=%00", "unknown=1"] {
            let reply = service.get(&format!("{path}?{query}"));
            assert_eq!(reply.status, 400, "{path}?{query}");
            check(&description, path, "get", &reply);
        }
    }
}

#[test]
fn listings_match_their_schemas() {
    let (scratch, service) = with_policy();
    let description = description();
    let gets = [
        "/api/nodes",
        "/api/counters",
        "/api/limits",
        "/api/blocks",
        "/api/status",
        "/api/session",
        "/metrics",
        "/healthz",
        "/readyz",
        "/openapi.json",
    ];
    let check_all = || {
        for path in gets {
            let reply = service.get(path);
            assert_eq!(reply.status, 200, "{path}");
            check(&description, path, "get", &reply);
        }
    };
    check_all();
    for body in queries() {
        for _ in 0..3 {
            service.post("/check", body.to_string());
        }
    }
    check_all();
    let blocks = service.get("/api/blocks?limit=1");
    assert!(blocks.json()["cursor"].is_string(), "expected a second page: {}", blocks.body);
    check(&description, "/api/blocks", "get", &blocks);
    check(
        &description,
        "/api/counters",
        "get",
        &service.get("/api/counters?limit=1&prefix=c&tenant=acme"),
    );
    scratch.write("policy.yaml", "version: 7\n");
    eventually("a policy error", || {
        service.get("/api/status").json()["policy"]["error"].is_string()
    });
    check_all();
    let full = Service::start(&["--max-keys", "1"]);
    full.check("a");
    full.check("b");
    for path in gets {
        check(&description, path, "get", &full.get(path));
    }
}

#[test]
fn draining_readiness_matches_its_schema() {
    let service = Service::start(&["--drain-ms", "3000"]);
    service.signal("TERM");
    service.wait_for_log("draining");
    let reply = service.get("/readyz");
    assert_eq!(reply.status, 503);
    check(&description(), "/readyz", "get", &reply);
}

#[test]
fn docs_page_uses_no_other_host_or_inline_script() {
    let service = Service::start(&[]);
    for (path, kind) in PAGE.into_iter().zip(["text/html", "text/javascript", "text/css"]) {
        let reply = service.get(path);
        assert_eq!(reply.status, 200, "{path}");
        let given = reply.header("content-type").unwrap_or_default();
        assert!(given.starts_with(kind), "{path}: {given}");
        assert_eq!(reply.header("x-content-type-options"), Some("nosniff"), "{path}");
        assert_eq!(reply.header("referrer-policy"), Some("no-referrer"), "{path}");
        let policy = reply.header("content-security-policy").unwrap_or_default();
        for part in [
            "default-src 'none'",
            "script-src 'self'",
            "style-src 'self'",
            "connect-src 'self'",
            "img-src 'self'",
            "base-uri 'none'",
            "form-action 'self'",
            "frame-ancestors 'none'",
        ] {
            assert!(policy.contains(part), "{path}: {part} is not in {policy}");
        }
        assert!(!policy.contains("unsafe"), "{path}: {policy}");
        for elsewhere in ["http:", "https:", "\"//", "'//", "url(//", "(//", "@import", "data:"] {
            assert!(!reply.body.contains(elsewhere), "{path} references another host: {elsewhere}");
        }
        for danger in [
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
            "eval(",
            " onclick=",
            " style=",
        ] {
            assert!(!reply.body.contains(danger), "{path} contains {danger}");
        }
    }
    let page = service.get("/docs").body;
    for part in page.split(['"', '\'']).filter(|part| part.starts_with('/') && part.len() > 1) {
        assert_eq!(service.get(part).status, 200, "{part}");
    }
    assert!(!page.contains("<script>") && !page.contains("<style"), "no inline script or style");
}
