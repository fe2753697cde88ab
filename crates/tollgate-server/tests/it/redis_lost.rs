//! A Redis that is lost while serving: an answer each time, in bounded time, and exact again after.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tollgate_testkit::server::{Flavor, Server};

use crate::client::Reply;
use crate::metrics_text::Scrape;
use crate::openapi::{check, description};
use crate::redis::{node, policy};
use crate::service::{Scratch, Service, eventually};

/// Less than the patience of these nodes with a Redis that does not answer, and enough for a machine that
/// is very slow.
const SOON: Duration = Duration::from_secs(15);

const LEASE: &str =
    r#"{"key":"k","limits":[{"algorithm":"concurrency","limit":5,"ttl_ms":60000}]}"#;

/// What is asked of a lost store.
fn questions(lease: &Value) -> [(&'static str, String); 6] {
    let key = r#"{"key":"k"}"#.to_owned();
    let lease = json!({ "lease": lease }).to_string();
    [
        ("/check", key.clone()),
        ("/peek", key.clone()),
        ("/refund", key.clone()),
        ("/explain", key),
        ("/release", lease.clone()),
        ("/renew", lease),
    ]
}

fn assert_unavailable(reply: &Reply, method: &str, path: &str) {
    check(&description(), path, method, reply);
    assert_eq!(reply.status, 503, "{path}: {}", reply.body);
    assert_eq!(reply.header("content-type"), Some("application/problem+json"), "{path}");
    assert_eq!(reply.header("retry-after"), Some("1"), "{path}");
    let problem = reply.json();
    assert_eq!(
        (&problem["status"], &problem["title"]),
        (&json!(503), &json!("Service Unavailable"))
    );
    assert!(problem["detail"].as_str().unwrap().contains("Redis"), "{path}: {problem}");
}

/// Asks everything, and holds each answer against what a lost store gives.
fn assert_lost(service: &Service, lease: &Value) {
    let errors = || Scrape::of(service).value("rate_limit_backend_errors_total");
    let before = errors();
    for (path, body) in questions(lease) {
        let began = Instant::now();
        assert_unavailable(&service.post(path, body), "post", path);
        assert!(began.elapsed() < SOON, "{path} took {:?}", began.elapsed());
    }
    let items: Vec<Value> = (0..500).map(|_| json!({"key": "k"})).chain([json!({})]).collect();
    let began = Instant::now();
    let batch = service.post("/check/batch", json!({ "requests": items }).to_string());
    assert!(began.elapsed() < SOON, "all items wait as long as one");
    assert_eq!(batch.status, 200);
    let results = batch.json()["results"].clone();
    assert_eq!((&results[0]["status"], &results[499]["status"]), (&json!(503), &json!(503)));
    assert_eq!(results[500]["status"], 400);
    for path in ["/api/nodes", "/api/counters", "/api/blocks"] {
        assert_unavailable(&service.get(path), "get", path);
    }
    let counted = errors() - before;
    assert!(counted == f64::from(6 + 500 + 3), "each failure counts once: {counted}");
    for path in ["/healthz", "/readyz", "/api/status", "/api/limits", "/metrics"] {
        let reply = service.get(path);
        assert_eq!(reply.status, 200, "{path}");
        check(&description(), path, "get", &reply);
    }
}

fn warning(service: &Service) -> Value {
    service.get("/api/status").json()["store"]["warning"].clone()
}

fn is_back(service: &Service) -> bool {
    service.post("/peek", r#"{"key":"other"}"#).status == 200
}

#[test]
fn killed_it_is_missed_at_once_and_exact_after() {
    let scratch = Scratch::new();
    let server = Server::start(Flavor::Redis);
    let service = node(&server, &["--policy", &policy(&scratch, "5/d")]);
    let lease = service.post("/check", LEASE).json()["lease"].clone();
    assert_eq!(warning(&service), Value::Null);
    server.kill();
    assert_eq!(service.post("/check", r#"{"key":"k"}"#).status, 503);
    let told = warning(&service);
    assert!(told.as_str().is_some_and(|text| text.contains("the store fails: Redis")), "{told}");
    assert_lost(&service, &lease);
    server.restart();
    eventually("it answers again", || is_back(&service));
    let told = warning(&service);
    assert!(!told.as_str().is_some_and(|text| text.contains("the store fails")), "{told}");
    // What answered is a server that knows nothing, and from here on every take counts.
    let allowed = |_| service.post("/check", r#"{"key":"fresh"}"#).json()["allowed"] == true;
    let answers: Vec<bool> = (0..7).map(allowed).collect();
    assert_eq!(answers, [true, true, true, true, true, false, false]);
    service.wait_for_log("the store could not answer");
    let log = service.log();
    assert_eq!(log.matches("the store could not answer").count(), 1, "{log}");
    service.wait_for_log("store: answers again");
    let (_, log) = service.stop();
    let again: Vec<&str> = log.lines().filter(|line| line.contains("answers again")).collect();
    let [again] = again[..] else { panic!("once: {log}") };
    assert!(again.contains("INFO") && again.contains("gone_ms="), "{again}");
    assert!(again.contains("errors="), "{again}");
}

#[test]
fn hung_it_is_waited_for_no_longer_than_the_time_out() {
    let scratch = Scratch::new();
    let server = Server::start(Flavor::Redis);
    let (url, file) = (server.url(), policy(&scratch, "1000/d"));
    let args = ["--redis", &url, "--redis-timeout-ms", "300", "--policy", &file];
    let service = Service::start(&args);
    let mut lease = Value::Null;
    eventually("a lease", || {
        lease = service.post("/check", LEASE).json()["lease"].clone();
        lease.is_string()
    });
    server.hang();
    assert_lost(&service, &lease);
    server.resume();
    eventually("it answers again", || is_back(&service));
    // Whatever was under way may have been counted, once at most.
    let count = service.post("/peek", r#"{"key":"k"}"#).json()["count"].as_u64().unwrap();
    assert!(count <= 501, "{count}");
}

#[test]
fn a_password_that_was_changed_is_told_without_it() {
    let server = Server::start(Flavor::Redis);
    let service = node(&server, &[]);
    assert!(is_back(&service));
    let mut raw = server.raw();
    raw.call(&["CONFIG", "SET", "requirepass", "hunter2"]);
    let connected = raw.call(&["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"]);
    assert!(connected.int() > 0);
    eventually("it is refused", || !is_back(&service));
    let reply = service.post("/check", r#"{"key":"k"}"#);
    assert_unavailable(&reply, "post", "/check");
    raw.call(&["CONFIG", "SET", "requirepass", ""]);
    eventually("it answers again", || is_back(&service));
    assert!(!service.log().contains("hunter2") && !reply.body.contains("hunter2"));
}

#[test]
fn lost_to_the_command_line_is_no_answer() {
    let server = Server::start(Flavor::Redis);
    let service = node(&server, &[]);
    server.kill();
    let ended = crate::service::run(&["check", "k", "--server", &service.url()]);
    assert_eq!(ended.code, 3, "{}", ended.stderr);
    assert!(ended.stderr.contains("503") && ended.stderr.contains("Redis"), "{}", ended.stderr);
}
