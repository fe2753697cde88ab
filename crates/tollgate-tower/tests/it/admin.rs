//! The admin API, in process and over Redis.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::routing::get;
use http::{Method, Request, StatusCode};
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tokio::time::timeout;
use tollgate::{Limiter, MemoryStore, OverrideStorage, Policy, Store};
use tollgate_redis::{RedisStore, StoredOverrides};
use tollgate_testkit::faulty_store::{FaultyStore, StoreFault};
use tollgate_testkit::server::{Flavor, Server};
use tollgate_testkit::wait::MAX_WAIT;
use tollgate_tower::admin::{AdminRouter, AdminToken, AdminTokenError};
use tollgate_tower::{Header, RateLimitLayer};
use tower::ServiceExt;

const TOKEN: &str = "0123456789abcdef0123456789abcdef";
const POLICY: &str = "version: 1\nrules:\n  - { name: api, per: [client], limits: [10/min] }\n";

fn policy(text: &str) -> Policy {
    Policy::from_yaml("policy.yaml", text, Policy::builtin_limit()).unwrap()
}

fn token() -> AdminToken {
    AdminToken::new(TOKEN).unwrap()
}

/// A limited route at `/` and the admin API at `/admin/external`.
fn app<S, R>(limiter: Arc<Limiter<S>>, admin: AdminRouter<S, (), R>) -> Router
where
    S: Store + 'static,
    R: OverrideStorage + 'static,
{
    let layer =
        RateLimitLayer::builder(limiter).fact("client", Header::from_static("x-client-id")).build();
    let limited = Router::new().route("/", get(async || "hello")).layer(layer);
    limited.nest("/admin/external", admin.build())
}

fn memory_app(text: &str) -> Router {
    let limiter = Arc::new(Limiter::new(MemoryStore::new(), policy(text)));
    app(Arc::clone(&limiter), AdminRouter::new(limiter, token()))
}

struct Reply {
    status: u16,
    headers: http::HeaderMap,
    body: Value,
}

async fn send(app: &Router, request: Request<Body>) -> Reply {
    let (head, body) = app.clone().oneshot(request).await.unwrap().into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
    Reply { status: head.status.as_u16(), headers: head.headers, body }
}

fn request(method: Method, path: &str, body: &Value) -> Request<Body> {
    let request = Request::builder().method(method).uri(format!("/admin/external/clients/{path}"));
    let request = request.header("authorization", format!("Bearer {TOKEN}"));
    let request = request.header("content-type", "application/json");
    request.body(Body::from(if body.is_null() { String::new() } else { body.to_string() })).unwrap()
}

async fn call(app: &Router, method: Method, path: &str, body: Value) -> Reply {
    send(app, request(method, path, &body)).await
}

/// Sends a limited request and returns the limit and the remaining quota.
async fn limited(app: &Router, client: &str) -> (u64, u64) {
    let request = Request::get("/").header("x-client-id", client).body(Body::empty()).unwrap();
    let headers = send(app, request).await.headers;
    let number = |name: &str| headers[name].to_str().unwrap().parse().unwrap();
    (number("x-ratelimit-limit"), number("x-ratelimit-remaining"))
}

fn twenty_per_minute() -> Value {
    json!({ "limits": [{ "limit": 20, "window_ms": 60_000 }], "reason": "partner", "author": "ann" })
}

#[test]
fn token_must_have_32_printable_characters() {
    let error = AdminToken::new("short").unwrap_err();
    assert_eq!(error, AdminTokenError::TooShort { length: 5 });
    assert!(error.to_string().contains("at least 32"), "{error}");
    assert_eq!(AdminToken::new(&"x".repeat(31)), Err(AdminTokenError::TooShort { length: 31 }));
    assert_eq!(AdminToken::new(&" ".repeat(40)), Err(AdminTokenError::NotPrintable));
    assert_eq!(AdminToken::new(&"ä".repeat(40)), Err(AdminTokenError::NotPrintable));
    assert!(!format!("{:?}", token()).contains(TOKEN));
}

#[tokio::test]
async fn overrides_and_counters_have_a_unit() {
    let rule = "{ name: api, per: [client], limits: [10/min, { rate: 90/min, unit: tokens }] }";
    let app = memory_app(&format!("version: 1\nrules:\n  - {rule}\n"));
    let entry = json!({ "limit": 95, "window_ms": 60_000, "unit": "tokens" });
    let set =
        call(&app, Method::PUT, "c1/limits", json!({ "limits": [entry], "rule": "api" })).await;
    assert_eq!(set.body["limits"][0]["unit"], "tokens", "{}", set.body);
    assert_eq!(set.body["replaces"][0]["after"], "95 tokens/min");
    let stats = call(&app, Method::GET, "c1/stats", Value::Null).await.body;
    let unit = |counter: &Value| format!("{} {}", counter["unit"], counter["limit"]);
    let units: Vec<String> = stats["counters"].as_array().unwrap().iter().map(unit).collect();
    assert!(units.contains(&"\"tokens\" 95".to_owned()), "{units:?}");
    let entry = json!({ "limit": 95, "window_ms": 60_000, "unit": "a b" });
    let refused = call(&app, Method::PUT, "c1/limits", json!({ "limits": [entry] })).await;
    assert_eq!((refused.status, &refused.body["field"]), (400, &json!("limits[0].unit")));
}

#[tokio::test]
async fn missing_or_wrong_token_returns_401() {
    let app = memory_app(POLICY);
    for authorization in [None, Some("Bearer wrong"), Some(TOKEN), Some("Basic 0123456789abcdef")] {
        for path in ["clients/c1/limits", "clients/c1/stats", "unknown"] {
            let mut request = Request::get(format!("/admin/external/{path}"));
            if let Some(value) = authorization {
                request = request.header("authorization", value);
            }
            let reply = send(&app, request.body(Body::empty()).unwrap()).await;
            assert_eq!(reply.status, 401, "{authorization:?} {path}");
            assert_eq!(reply.headers["content-type"], "application/problem+json");
            assert_eq!(reply.headers["www-authenticate"], "Bearer");
        }
    }
    assert_eq!(call(&app, Method::GET, "c1/stats", Value::Null).await.status, 200);
    assert_eq!(call(&app, Method::GET, "c1/unknown", Value::Null).await.status, 404);
    assert_eq!(call(&app, Method::POST, "c1/stats", Value::Null).await.status, 405);
}

#[tokio::test]
async fn peer_is_refused_after_ten_failures() {
    let app = memory_app(POLICY);
    let from = |peer: &str, token: &str| {
        let request = Request::get("/admin/external/clients/c1/stats");
        let request = request.header("authorization", format!("Bearer {token}"));
        let mut request = request.body(Body::empty()).unwrap();
        request.extensions_mut().insert(ConnectInfo(peer.parse::<SocketAddr>().unwrap()));
        request
    };
    for nth in 0..10 {
        assert_eq!(send(&app, from("192.0.2.1:1", "wrong")).await.status, 401, "{nth}");
    }
    for token in ["wrong", TOKEN] {
        let reply = send(&app, from("192.0.2.1:2", token)).await;
        assert_eq!(reply.status, 429);
        let wait: u64 = reply.headers["retry-after"].to_str().unwrap().parse().unwrap();
        assert!((1..=60).contains(&wait), "{wait}");
    }
    assert_eq!(send(&app, from("192.0.2.2:1", TOKEN)).await.status, 200);
    // Without a known peer, failures are not limited.
    for _ in 0..20 {
        let request = Request::get("/admin/external/clients/c1/stats").body(Body::empty());
        assert_eq!(send(&app, request.unwrap()).await.status, 401);
    }
    assert_eq!(call(&app, Method::GET, "c1/stats", Value::Null).await.status, 200);
}

#[tokio::test]
async fn override_is_set_returned_and_removed() {
    let app = memory_app(POLICY);
    assert_eq!(limited(&app, "c1").await, (10, 9));
    assert_eq!(call(&app, Method::GET, "c1/limits", Value::Null).await.status, 404);
    let stored = call(&app, Method::PUT, "c1/limits", twenty_per_minute()).await;
    assert_eq!(stored.status, 200, "{}", stored.body);
    assert_eq!(stored.body["limits"], json!([{ "limit": 20, "window_ms": 60_000 }]));
    assert_eq!((&stored.body["rule"], &stored.body["client"]), (&json!("api"), &json!("c1")));
    assert_eq!(stored.body["applies_to"], json!(["api"]));
    assert_eq!(
        (&stored.body["reason"], &stored.body["author"]),
        (&json!("partner"), &json!("ann"))
    );
    assert_eq!(stored.body["expires_at"], Value::Null);
    assert_eq!(limited(&app, "c1").await, (20, 18), "usage is kept");
    assert_eq!(limited(&app, "c2").await, (10, 9));
    let returned = call(&app, Method::GET, "c1/limits", Value::Null).await;
    assert_eq!((returned.status, &returned.body["overrides"]), (200, &stored.body["overrides"]));
    assert_eq!(returned.body["overrides"][0]["limits"], stored.body["limits"]);
    let replaced =
        json!([{ "rule": "api", "limit_name": "60s", "before": "10/min", "after": "20/min" }]);
    assert_eq!((&stored.body["replaces"], &stored.body["keeps"]), (&replaced, &json!([])));
    assert_eq!(call(&app, Method::DELETE, "c1/limits?rule=other", Value::Null).await.status, 404);
    assert_eq!(call(&app, Method::DELETE, "c1/limits?rule=", Value::Null).await.status, 400);
    let removed = call(&app, Method::DELETE, "c1/limits?rule=api", Value::Null).await;
    assert_eq!(removed.status, 204);
    assert_eq!(call(&app, Method::DELETE, "c1/limits", Value::Null).await.status, 404);
    assert_eq!(limited(&app, "c1").await.0, 10);
}

#[tokio::test]
async fn invalid_requests_name_the_field() {
    let app = memory_app(POLICY);
    let limits = json!([{ "limit": 20, "window_ms": 60_000 }]);
    for (body, field) in [
        (json!({ "limits": [] }), "limits"),
        (json!({ "limits": [{ "limit": 20 }] }), "limits[0].window_ms"),
        (json!({ "limits": [{ "limit": 20, "window_ms": 0 }] }), "limits[0].window_ms"),
        (json!({ "limits": [{ "limit": 1_u64 << 53, "window_ms": 1 }] }), "limits[0].limit"),
        (json!({ "limits": limits, "rule": "unknown" }), "rule"),
        (json!({ "limits": limits, "rule": "api", "all_rules": true }), "all_rules"),
        (json!({ "limits": limits, "expires_at": "2001-01-01T00:00:00Z" }), "expires_at"),
        (json!({ "limits": limits, "reason": "x".repeat(1001) }), "reason"),
        (json!({ "limits": limits, "author": "x".repeat(201) }), "author"),
    ] {
        let reply = call(&app, Method::PUT, "c1/limits", body.clone()).await;
        assert_eq!((reply.status, &reply.body["field"]), (400, &json!(field)), "{body}");
    }
    for body in [json!({ "limits": limits, "extra": 1 }), json!({}), json!("text")] {
        let reply = call(&app, Method::PUT, "c1/limits", body.clone()).await;
        assert_eq!(reply.status, 400, "{body}");
    }
    let long = format!("{}/limits", "x".repeat(1025));
    assert_eq!(call(&app, Method::PUT, &long, twenty_per_minute()).await.body["field"], "id");
    let reply = call(&app, Method::PUT, "c1/limits?dry=1", twenty_per_minute()).await;
    assert_eq!(reply.status, 400);
    let mut untyped = request(Method::PUT, "c1/limits", &twenty_per_minute());
    untyped.headers_mut().remove("content-type");
    assert_eq!(send(&app, untyped).await.status, 415);
    let large = request(Method::PUT, "c1/limits", &json!("x".repeat(70_000)));
    assert_eq!(send(&app, large).await.status, 413);
    assert_eq!(limited(&app, "c1").await, (10, 9), "nothing was stored");
}

#[tokio::test]
async fn ambiguous_rule_is_an_error_that_lists_candidates() {
    let text = "version: 1\nrules:\n  \
                - { name: search, match: { path: /search }, per: [client], limits: [5/min] }\n  \
                - { name: api, per: [client], limits: [10/min] }\n";
    let app = memory_app(text);
    let reply = call(&app, Method::PUT, "c1/limits", twenty_per_minute()).await;
    assert_eq!((reply.status, &reply.body["field"]), (400, &json!("rule")));
    let candidates = json!([
        { "rule": "search", "limits": ["5/min"], "blocks": false },
        { "rule": "api", "limits": ["10/min"], "blocks": false },
    ]);
    assert_eq!(reply.body["candidates"], candidates);
    let mut body = twenty_per_minute();
    body["rule"] = json!("api");
    assert_eq!(call(&app, Method::PUT, "c1/limits", body).await.body["applies_to"], json!(["api"]));
    let mut body = twenty_per_minute();
    body["all_rules"] = json!(true);
    let set = call(&app, Method::PUT, "c1/limits", body).await;
    assert_eq!(set.body["applies_to"], json!(["search", "api"]));
    let rules = |body: &Value| {
        let overrides = body["overrides"].as_array().unwrap().iter();
        overrides.map(|stored| stored["rule"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(rules(&set.body), ["api", "search"], "one override per rule");
    assert_eq!(call(&app, Method::DELETE, "c1/limits?rule=api", Value::Null).await.status, 204);
    let rest = call(&app, Method::GET, "c1/limits", Value::Null).await;
    assert_eq!(rules(&rest.body), ["search"]);
}

#[tokio::test]
async fn dry_run_returns_the_effect_without_a_change() {
    let text = "version: 1\nrules:\n  \
                - { name: api, per: [client], limits: [10/min, 100/h], algorithm: token_bucket }\n";
    let app = memory_app(text);
    let mut body = twenty_per_minute();
    body["limits"][0]["burst"] = json!(5);
    let path = "c1/limits?dry_run=true";
    let dry = call(&app, Method::PUT, path, body.clone()).await;
    let replaced = json!([{
        "rule": "api", "limit_name": "60s", "before": "10/min", "after": "20/min", "burst_after": 5,
    }]);
    let kept = json!([{ "rule": "api", "limit_name": "3600s", "limit": "100/h" }]);
    assert_eq!((dry.status, &dry.body["replaces"], &dry.body["keeps"]), (200, &replaced, &kept));
    assert_eq!(call(&app, Method::GET, "c1/limits", Value::Null).await.status, 404);
    assert_eq!(call(&app, Method::GET, path, Value::Null).await.body["field"], "dry_run");
    body["only"] = json!(true);
    let only = call(&app, Method::PUT, path, body).await;
    assert_eq!(
        (&only.body["replaces"][1]["after"], &only.body["keeps"]),
        (&Value::Null, &json!([]))
    );
}

#[tokio::test]
async fn stats_show_usage_and_reset_clears_it() {
    let text = "version: 1\nrules:\n  \
                - { name: api, per: [client], limits: [10/min, 100/h], continue: true }\n  \
                - { name: paths, per: [client, path], limits: [5/min] }\n";
    let app = memory_app(text);
    limited(&app, "c1").await;
    limited(&app, "c1").await;
    limited(&app, "c2").await;
    let stats = call(&app, Method::GET, "c1/stats", Value::Null).await;
    assert_eq!(stats.status, 200);
    assert_eq!((&stats.body["client"], &stats.body["overridden"]), (&json!("c1"), &json!(false)));
    assert_eq!(stats.body["complete"], true);
    let usage = |body: &Value| {
        let counters = body["counters"].as_array().unwrap().iter();
        let used = counters.filter(|counter| counter["count"] != 0);
        let used = used.map(|counter| format!("{}/{}", counter["rule"], counter["count"]));
        used.collect::<Vec<_>>().join(" ").replace('"', "")
    };
    assert_eq!(usage(&stats.body), "api/2 api/2 paths/2");
    let counter = &stats.body["counters"][0];
    assert_eq!((&counter["limit"], &counter["remaining"]), (&json!(10), &json!(8)));
    assert_eq!((&counter["window_ms"], &counter["mode"]), (&json!(60_000), &json!("enforce")));
    assert_eq!(call(&app, Method::POST, "c1/reset", Value::Null).await.status, 204);
    let stats = call(&app, Method::GET, "c1/stats", Value::Null).await;
    assert_eq!(usage(&stats.body), "");
    let other = call(&app, Method::GET, "c2/stats", Value::Null).await;
    assert_eq!(usage(&other.body), "api/1 api/1 paths/1");
}

#[tokio::test]
async fn fresh_override_resets_usage_of_its_rule_only() {
    let text = "version: 1\nrules:\n  \
                - { name: api, per: [client], limits: [10/min], continue: true }\n  \
                - { name: paths, per: [client, path], limits: [50/min] }\n";
    let app = memory_app(text);
    limited(&app, "c1").await;
    let mut body = twenty_per_minute();
    (body["fresh"], body["rule"]) = (json!(true), json!("api"));
    assert_eq!(call(&app, Method::PUT, "c1/limits", body).await.status, 200);
    let stats = call(&app, Method::GET, "c1/stats", Value::Null).await;
    let counters = stats.body["counters"].as_array().unwrap().iter();
    let counters = counters.map(|counter| {
        format!("{} {} {}", counter["rule"], counter["count"], counter["overridden"])
    });
    let counters: Vec<String> = counters.collect();
    assert_eq!(counters, ["\"api\" 0 true", "\"default\" 0 false", "\"paths\" 1 false"]);
}

#[tokio::test]
async fn tenants_are_separate() {
    let app = memory_app(POLICY);
    let reply = call(&app, Method::PUT, "c1/limits?tenant=acme", twenty_per_minute()).await;
    assert_eq!(reply.body["tenant"], "acme");
    assert_eq!(call(&app, Method::GET, "c1/limits", Value::Null).await.status, 404);
    assert_eq!(call(&app, Method::GET, "c1/limits?tenant=acme", Value::Null).await.status, 200);
}

#[tokio::test]
async fn override_in_process_expires() {
    let app = memory_app(POLICY);
    let expiry = SystemTime::now() + Duration::from_millis(1500);
    let mut body = twenty_per_minute();
    let micros = expiry.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_micros();
    body["expires_at"] = json!(
        jiff::Timestamp::from_microsecond(i64::try_from(micros).unwrap()).unwrap().to_string()
    );
    assert_eq!(call(&app, Method::PUT, "c1/limits", body).await.status, 200);
    assert_eq!(limited(&app, "c1").await.0, 20);
    let expired = timeout(MAX_WAIT, async {
        while limited(&app, "c1").await.0 != 10 {
            tokio::task::yield_now().await;
        }
    });
    expired.await.expect("the override expires");
    assert_eq!(call(&app, Method::GET, "c1/limits", Value::Null).await.status, 404);
}

#[tokio::test]
async fn changes_are_reported_with_their_author() {
    let limiter = Arc::new(Limiter::new(MemoryStore::new(), policy(POLICY)));
    let entries = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&entries);
    let admin = AdminRouter::new(Arc::clone(&limiter), token()).node_id("web-1");
    let app = app(
        limiter,
        admin.on_change(move |entry| {
            sink.lock().unwrap().push(serde_json::from_str::<Value>(entry).unwrap());
        }),
    );
    call(&app, Method::PUT, "c1/limits", twenty_per_minute()).await;
    call(&app, Method::DELETE, "c1/limits?author=ben&reason=over", Value::Null).await;
    call(&app, Method::DELETE, "c1/limits", Value::Null).await;
    call(&app, Method::POST, "c1/reset", Value::Null).await;
    let entries = entries.lock().unwrap();
    let actions: Vec<_> = entries.iter().map(|entry| entry["action"].clone()).collect();
    assert_eq!(actions, ["override.set", "override.remove", "client.reset"]);
    assert_eq!((&entries[0]["author"], &entries[0]["reason"]), (&json!("ann"), &json!("partner")));
    assert_eq!((&entries[1]["author"], &entries[1]["node"]), (&json!("ben"), &json!("web-1")));
    assert!(!entries[0].to_string().contains(TOKEN));
}

#[tokio::test]
async fn store_failure_returns_503() {
    let store = FaultyStore::new(MemoryStore::new());
    store.set(StoreFault::Unreachable);
    let limiter = Arc::new(Limiter::new(store, policy(POLICY)));
    let app = app(Arc::clone(&limiter), AdminRouter::new(limiter, token()));
    for (method, path) in [(Method::GET, "c1/stats"), (Method::POST, "c1/reset")] {
        let reply = call(&app, method, path, Value::Null).await;
        assert_eq!(reply.status, StatusCode::SERVICE_UNAVAILABLE.as_u16());
        assert_eq!(reply.headers["retry-after"], "1");
    }
}

#[tokio::test]
async fn timed_out_read_does_not_claim_a_change() {
    let store = FaultyStore::new(MemoryStore::new());
    store.set(StoreFault::ReplyLost);
    let limiter = Arc::new(Limiter::new(store, policy(POLICY)));
    let app = app(Arc::clone(&limiter), AdminRouter::new(limiter, token()));
    let reply = call(&app, Method::GET, "c1/stats", Value::Null).await;
    assert_eq!(reply.status, StatusCode::SERVICE_UNAVAILABLE.as_u16());
    let detail = reply.body["detail"].as_str().unwrap();
    assert!(!detail.contains("may have been stored"), "{detail}");
}

#[tokio::test]
async fn rule_parameter_selects_the_override_on_delete_only() {
    let app = memory_app(POLICY);
    let set = call(&app, Method::PUT, "c1/limits", twenty_per_minute()).await;
    assert_eq!(set.status, 200, "{}", set.body);
    for (method, path) in [
        (Method::PUT, "c1/limits?rule=x"),
        (Method::GET, "c1/limits?rule=x"),
        (Method::GET, "c1/stats?rule=x"),
        (Method::POST, "c1/reset?rule=x"),
    ] {
        let reply = call(&app, method, path, twenty_per_minute()).await;
        assert_eq!((reply.status, &reply.body["field"]), (400, &"rule".into()), "{path}");
    }
    let other = call(&app, Method::DELETE, "c1/limits?rule=x", Value::Null).await;
    assert_eq!(other.status, 404);
    assert_eq!(other.body["detail"], "client \"c1\" has no override for rule \"x\"");
    assert_eq!(call(&app, Method::GET, "c1/limits", Value::Null).await.status, 200);
}

/// One node of a fleet: its app, whose admin API stores overrides in Redis.
async fn redis_node(server: &Server) -> (Router, RedisStore) {
    let address = server.url().parse().unwrap();
    let store = RedisStore::builder(address).timeout(Duration::from_secs(60)).build();
    let limiter = Arc::new(Limiter::new(store.clone(), policy(POLICY)));
    let updated = Arc::clone(&limiter);
    let update = move |stored: &StoredOverrides| updated.set_overrides(&stored.overrides);
    let follower = store.directory().follow_overrides(update).await.unwrap();
    let admin = AdminRouter::new(Arc::clone(&limiter), token()).override_storage(follower);
    (app(limiter, admin), store)
}

#[tokio::test]
async fn overrides_in_redis_apply_on_all_nodes() {
    let server = Server::start(Flavor::Redis);
    let (first, store) = redis_node(&server).await;
    let (second, _) = redis_node(&server).await;
    assert_eq!(limited(&second, "c1").await, (10, 9));
    assert_eq!(call(&first, Method::PUT, "c1/limits", twenty_per_minute()).await.status, 200);
    assert_eq!(limited(&first, "c1").await, (20, 18), "active on this node immediately");
    let applied = timeout(MAX_WAIT, async {
        while limited(&second, "c1").await.0 != 20 {
            tokio::task::yield_now().await;
        }
    });
    applied.await.expect("the other node follows");
    assert_eq!(call(&second, Method::GET, "c1/limits", Value::Null).await.status, 200);
    assert_eq!(call(&second, Method::POST, "c1/reset", Value::Null).await.status, 204);
    assert_eq!(limited(&first, "c1").await, (20, 19));
    assert_eq!(call(&second, Method::DELETE, "c1/limits", Value::Null).await.status, 204);
    assert_eq!(call(&second, Method::DELETE, "c1/limits", Value::Null).await.status, 404);
    assert!(store.directory().overrides().await.unwrap().overrides.is_empty());
    let audit = store.directory().audit(None, 10).await.unwrap();
    assert_eq!(audit.len(), 3, "{audit:?}");
}
