//! The committed description of the API says what the service does, and the page that shows it is safe.

use std::collections::BTreeSet;

use jsonschema::Validator;
use serde_json::{Value, json};

use crate::admin_client::{admin, administered};
use crate::client::Reply;
use crate::service::{Scratch, Service, eventually};

const DESCRIPTION: &str = include_str!("../../assets/openapi.json");
const ROUTES: &str = include_str!("../../src/http/routes.rs");

/// It answers for minutes.
const LIVE: &str = "/api/live";

/// The page that shows the description, and its parts: for people, so no operations.
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
    serde_json::from_str(DESCRIPTION).expect("the description is JSON")
}

/// Every path with its methods and what is said of them.
fn operations(description: &Value) -> Vec<(String, String, Value)> {
    let paths = description["paths"].as_object().expect("there are paths");
    let of_path = |(path, methods): (&String, &Value)| {
        let methods = methods.as_object().expect("methods").clone();
        let path = path.clone();
        methods.into_iter().map(move |(method, told)| (path.clone(), method, told))
    };
    paths.iter().flat_map(of_path).collect()
}

/// Paths and methods as the router has them, taken from its text.
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
        let found = known.iter().find(|(begin, _)| handler.starts_with(begin));
        let (_, methods) = found.unwrap_or_else(|| panic!("an unknown kind of handler for {path}"));
        routes.extend(methods.iter().map(|method| (path.to_owned(), (*method).to_owned())));
    }
    routes
}

/// The schema of one response, with all that it may refer to.
fn validator(description: &Value, schema: &Value) -> Validator {
    let whole = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "allOf": [schema],
        "components": description["components"],
    });
    jsonschema::validator_for(&whole).expect("the schema is one")
}

/// Holds a reply against what the description says of its status and type.
pub(crate) fn check(description: &Value, path: &str, method: &str, reply: &Reply) {
    let status = reply.status.to_string();
    let response = &description["paths"][path][method]["responses"][&status];
    let shown = format!("{method} {path} -> {status} {}", reply.body);
    assert!(response.is_object(), "the status is not described: {shown}");
    let content = response["content"].as_object().expect("a response has content");
    let kind = reply.header("content-type").expect("a reply has a type");
    let essence = kind.split(';').next().expect("there is a first part");
    let schema = content.get(essence).unwrap_or_else(|| panic!("{kind} is not described: {shown}"));
    let value = if essence.ends_with("json") { reply.json() } else { json!(reply.body) };
    let validator = validator(description, &schema["schema"]);
    let errors: Vec<String> = validator
        .iter_errors(&value)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect();
    assert!(errors.is_empty(), "{shown}\n{}", errors.join("\n"));
}

#[test]
fn the_description_is_served_as_it_is_committed() {
    let service = Service::start(&[]);
    let reply = service.get("/openapi.json");
    assert_eq!((reply.status, reply.header("content-type")), (200, Some("application/json")));
    assert_eq!(reply.body, DESCRIPTION);
    let description = description();
    assert!(description["openapi"].as_str().unwrap().starts_with("3.1"));
    assert_eq!(description["info"]["version"], env!("CARGO_PKG_VERSION"));
}

#[test]
fn every_route_is_described_and_nothing_else() {
    let described: BTreeSet<(String, String)> =
        operations(&description()).into_iter().map(|(path, method, _)| (path, method)).collect();
    let mut routes = routes();
    assert!(routes.len() > 15, "the routes were found: {routes:?}");
    // Pages and their parts are for people, so no operations.
    let is_page = |path: &str| path == "/" || path.starts_with("/d");
    routes.retain(|(path, _)| !is_page(path));
    assert_eq!(described, routes);
}

#[test]
fn every_described_path_answers() {
    let service = administered(&[]);
    let all = operations(&description());
    for (path, method, _) in &all {
        let is_there = |method: &str| all.iter().any(|(of, has, _)| of == path && has == method);
        for other in ["get", "post", "put", "delete", "patch"] {
            if (other, &**path) == ("get", LIVE) {
                continue;
            }
            // Nobody's token is right: what is there wants one.
            let reply = service.client().request(&other.to_uppercase(), path, &[], "{}");
            assert_eq!(reply.status == 405, !is_there(other), "{other} {path}: {}", reply.status);
            assert_ne!(reply.status, 404, "{method} {path}");
        }
    }
}

#[test]
fn what_is_referred_to_is_there_and_used() {
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
    let (description, mut referred) = (description(), BTreeSet::new());
    references(&description, &mut referred);
    for reference in &referred {
        let pointer = reference.strip_prefix('#').expect("nothing outside is referred to");
        assert!(description.pointer(pointer).is_some(), "{reference}");
    }
    for name in description["components"]["schemas"].as_object().unwrap().keys() {
        assert!(referred.contains(&format!("#/components/schemas/{name}")), "{name} is not used");
    }
    let mut ids = BTreeSet::new();
    for (path, method, told) in operations(&description) {
        let id = told["operationId"].as_str().expect("an operation has an id").to_owned();
        assert!(ids.insert(id), "{method} {path}: an id twice");
        assert!(told["summary"].as_str().is_some_and(|text| !text.is_empty()), "{method} {path}");
    }
}

#[test]
fn the_examples_are_accepted_and_fit_their_schemas() {
    let service = administered(&[]);
    let description = description();
    let mut tried = 0;
    for (path, method, told) in operations(&description) {
        let Some(content) = told["requestBody"]["content"]["application/json"].as_object() else {
            let is_without =
                method != "post" || path.starts_with("/admin") || path == "/api/logout";
            assert!(is_without, "{method} {path} has no body");
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
                // A browser's headers are wanted there.
                tried += 1;
                continue;
            }
            let reply = admin(&service, &method.to_uppercase(), &path, &example.to_string());
            assert_eq!(reply.status, 200, "{path} {example}: {}", reply.body);
            check(&description, &path, &method, &reply);
            tried += 1;
        }
        assert!(tried > before, "{path} has no example");
    }
}

#[test]
fn an_answer_that_does_not_fit_would_be_noticed() {
    let (service, description) = (Service::start(&[]), description());
    let answer = service.check("k");
    let schema = validator(&description, &json!({"$ref": "#/components/schemas/Answer"}));
    assert!(schema.is_valid(&answer));
    for (field, value) in
        [("verdict", json!("maybe")), ("remaining", json!(-1)), ("more", json!(1))]
    {
        let mut wrong = answer.clone();
        wrong[field] = value;
        assert!(!schema.is_valid(&wrong), "{wrong}");
    }
    let mut less = answer;
    less["limits"][0].as_object_mut().unwrap().remove("mode");
    assert!(!schema.is_valid(&less), "{less}");
}

/// Questions whose answers differ in shape.
fn questions() -> Vec<Value> {
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
        json!({"facts": {"user": "nobody"}}),
        json!({"key": "i", "limits": [{"limit": 0}]}),
        json!({"key": "i", "limits": [{"limit": 1, "window_ms": 1}]}),
        json!({"key": "i", "limits": [{"algorithm": "fixed_window", "limit": 1, "align": "year", "tz": "Asia/Tokyo"}]}),
        json!({"key": "i", "limits": [{"algorithm": "concurrency", "limit": 3}, {"limit": 9, "window_ms": 60_000, "burst": 20}]}),
        json!({"key": "\u{0}<b>💥", "limits": [{"algorithm": "sliding_counter", "limit": 3, "window_ms": 3_155_760_000_000_u64}]}),
    ]
}

fn with_policy() -> (Scratch, Service) {
    let scratch = Scratch::new();
    let path = scratch.write("policy.yaml", POLICY);
    let service = Service::start(&["--policy", &path]);
    (scratch, service)
}

#[test]
fn answers_fit_their_schemas() {
    let (_scratch, service) = with_policy();
    let description = description();
    let mut client = service.client();
    let question = validator(&description, &json!({"$ref": "#/components/schemas/Question"}));
    for body in questions() {
        assert!(question.is_valid(&body), "{body}");
        for path in ["/explain", "/api/explain", "/peek", "/check", "/check", "/refund"] {
            let reply = client.post(path, body.to_string());
            assert_eq!(reply.status, 200, "{path} {body}: {}", reply.body);
            check(&description, path, "post", &reply);
        }
    }
    let mut batch = questions();
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
}

#[test]
fn problems_fit_their_schemas() {
    let (_scratch, service) = with_policy();
    let description = description();
    let paths = ["/check", "/peek", "/refund", "/explain", "/api/explain", "/check/batch"];
    for path in paths.into_iter().chain(["/release", "/renew"]) {
        for body in ["", "{", "[]", r#"{"unknown":1}"#, r#"{"key":""}"#, r#"{"permit":"x"}"#] {
            let reply = service.post(path, body);
            assert_eq!(reply.status, 400, "{path} {body}: {}", reply.body);
            check(&description, path, "post", &reply);
        }
        let large = service.post(path, " ".repeat(2 << 20 | 1));
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
fn listings_fit_their_schemas() {
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
    let all = || {
        for path in gets {
            let reply = service.get(path);
            assert_eq!(reply.status, 200, "{path}");
            check(&description, path, "get", &reply);
        }
    };
    all();
    for body in questions() {
        for _ in 0..3 {
            service.post("/check", body.to_string());
        }
    }
    all();
    let blocks = service.get("/api/blocks?limit=1");
    assert!(blocks.json()["cursor"].is_string(), "more than a page: {}", blocks.body);
    check(&description, "/api/blocks", "get", &blocks);
    check(
        &description,
        "/api/counters",
        "get",
        &service.get("/api/counters?limit=1&prefix=c&tenant=acme"),
    );
    scratch.write("policy.yaml", "version: 7\n");
    eventually("an error", || service.get("/api/status").json()["policy"]["error"].is_string());
    all();
    let bare = Service::start(&["--max-keys", "1"]);
    bare.check("a");
    bare.check("b");
    for path in gets {
        check(&description, path, "get", &bare.get(path));
    }
}

#[test]
fn a_node_that_drains_answers_as_described() {
    let service = Service::start(&["--drain-ms", "3000"]);
    service.signal("TERM");
    service.wait_for_log("draining");
    let reply = service.get("/readyz");
    assert_eq!(reply.status, 503);
    check(&description(), "/readyz", "get", &reply);
}

#[test]
fn the_page_needs_no_other_host_and_runs_no_strange_script() {
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
            assert!(!reply.body.contains(elsewhere), "{path} refers elsewhere: {elsewhere}");
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
            assert!(!reply.body.contains(danger), "{path} has {danger}");
        }
    }
    let page = service.get("/docs").body;
    for part in page.split(['"', '\'']).filter(|part| part.starts_with('/') && part.len() > 1) {
        assert_eq!(service.get(part).status, 200, "{part}");
    }
    assert!(!page.contains("<script>") && !page.contains("<style"), "nothing inline");
}
