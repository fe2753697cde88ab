//! Outages of Redis: every request gets a decision in bounded time, and limits are exact again afterwards.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tollgate_testkit::server::{Flavor, Server};

use crate::client::Reply;
use crate::metrics_text::Scrape;
use crate::openapi::{check, description};
use crate::redis::{node, policy};
use crate::service::{Scratch, Service, eventually};

/// Less than the Redis timeout of these nodes, and enough for a very slow machine.
const MAX_DELAY: Duration = Duration::from_secs(15);

const PERMIT: &str =
    r#"{"key":"k","limits":[{"algorithm":"concurrency","limit":5,"ttl_ms":60000}]}"#;

const ERRORS: &str = "rate_limit_backend_errors_total";
const BREAKER: &str = "tollgate_breaker_state";

/// A rule for each `on_store_loss`, with windows that outlast any test.
const POLICY: &str = "
version: 1
defaults: { limit: 5/d }
rules:
  - { name: lenient, match: { path: /lenient }, limits: [1/d], on_store_loss: allow }
  - { name: strict, match: { path: /strict }, limits: [9/d], on_store_loss: deny }
";

fn facts(path: &str) -> String {
    json!({"facts": {"client": "c", "path": path}}).to_string()
}

/// Asserts that requests which need the store get 503, and that others work.
fn assert_needs_the_store(service: &Service, permit: &Value) {
    let permit = json!({ "permit": permit }).to_string();
    let posts = ["/release", "/renew"].map(|path| (path, "post", service.post(path, &permit)));
    let gets = ["/api/nodes", "/api/counters", "/api/blocks"];
    let gets = gets.map(|path| (path, "get", service.get(path)));
    for (path, method, reply) in posts.into_iter().chain(gets) {
        check(&description(), path, method, &reply);
        assert_eq!(reply.status, 503, "{path}: {}", reply.body);
        assert_eq!(reply.header("content-type"), Some("application/problem+json"), "{path}");
        assert_eq!(reply.header("retry-after"), Some("1"), "{path}");
    }
    for path in ["/healthz", "/readyz", "/api/status", "/api/limits", "/metrics"] {
        let reply = service.get(path);
        assert_eq!(reply.status, 200, "{path}");
        check(&description(), path, "get", &reply);
    }
}

fn post(service: &Service, path: &str, body: &str) -> Reply {
    let reply = service.post(path, body);
    check(&description(), path, "post", &reply);
    reply
}

fn assert_degraded(decision: &Value) {
    assert_eq!(
        (&decision["source"], &decision["degraded"]),
        (&json!("local"), &json!(true)),
        "{decision}"
    );
}

fn status(service: &Service) -> Value {
    service.get("/api/status").json()
}

fn is_restored(service: &Service) -> bool {
    service.post("/peek", r#"{"key":"other"}"#).json()["degraded"] == false
}

fn lose(service: &Service) {
    eventually("the breaker opens", || {
        service.post("/peek", r#"{"key":"any"}"#);
        status(service)["breaker"] == "open"
    });
}

#[test]
fn each_rule_follows_its_on_store_loss() {
    let scratch = Scratch::new();
    let server = Server::start(Flavor::Redis);
    // No probe succeeds during the test.
    let args = ["--policy", &scratch.write("policy.yaml", POLICY), "--probe-ms", "600000"];
    let service = node(&server, &args);
    let permit = service.post("/check", PERMIT).json()["permit"].clone();
    assert_eq!(status(&service)["breaker"], "closed");
    server.kill();

    let decisions: Vec<Value> =
        (0..6).map(|_| post(&service, "/check", r#"{"key":"k"}"#).json()).collect();
    decisions.iter().for_each(assert_degraded);
    let allowed: Vec<bool> = decisions.iter().map(|decision| decision["allowed"] == true).collect();
    assert_eq!(allowed, [true, true, true, true, true, false]);
    for _ in 0..3 {
        let decision = post(&service, "/check", &facts("/lenient")).json();
        assert_degraded(&decision);
        assert_eq!((&decision["allowed"], &decision["rule"]), (&json!(true), &json!("lenient")));
    }
    for path in ["/check", "/peek", "/refund"] {
        let reply = post(&service, path, &facts("/strict"));
        assert_eq!((reply.status, reply.header("retry-after")), (503, Some("1")), "{}", reply.body);
        assert_degraded(&reply.json());
        assert_eq!(
            (&reply.json()["allowed"], &reply.json()["rule"]),
            (&json!(false), &json!("strict"))
        );
    }
    let batch = format!(r#"{{"requests":[{},{}]}}"#, facts("/strict"), facts("/lenient"));
    let results = post(&service, "/check/batch", &batch).json()["results"].clone();
    assert_eq!(
        (&results[0]["status"], &results[0]["reason"]),
        (&json!(503), &json!("store_lost")),
        "{results}"
    );
    assert_eq!(results[1]["allowed"], true);
    let explained = post(&service, "/explain", r#"{"key":"k"}"#).json();
    assert_degraded(&explained["answer"]);
    assert_needs_the_store(&service, &permit);

    let scrape = Scrape::of(&service);
    for (series, value) in [
        (BREAKER, 1.0),
        (ERRORS, 5.0),
        (r#"tollgate_degraded_decisions_total{by="local"}"#, 6.0),
        (r#"tollgate_degraded_decisions_total{by="allow"}"#, 4.0),
        (r#"tollgate_degraded_decisions_total{by="deny"}"#, 2.0),
        (r#"rate_limit_rejections_total{reason="local_exhausted"}"#, 1.0),
        (r#"rate_limit_rejections_total{reason="backend_error"}"#, 2.0),
        (r#"rate_limit_rejections_total{reason="distributed_exhausted"}"#, 0.0),
        (r#"ratelimiter_requests_checked_total{result="blocked"}"#, 3.0),
    ] {
        assert!(scrape.value(series) == value, "{series}: {}", scrape.value(series));
    }
}

#[test]
fn admissions_of_an_outage_are_debited_afterwards() {
    let scratch = Scratch::new();
    let server = Server::start(Flavor::Redis);
    let args = ["--policy", &policy(&scratch, "5/d"), "--probe-ms", "50", "--report-ms", "50"];
    let nodes = [node(&server, &args), node(&server, &args)];
    for node in &nodes {
        eventually("both nodes are counted", || status(node)["store"]["nodes"] == 2);
    }
    server.kill();
    for node in &nodes {
        lose(node);
        let warning = status(node)["store"]["warning"].clone();
        let text = warning.as_str().unwrap_or_default();
        assert!(text.contains("store lost, degraded mode: Redis"), "{warning}");
        assert_eq!(node.get("/readyz").body, "ready, degraded: store lost\n");
    }
    // Each node's share of 5 is 3.
    let decisions: Vec<Value> = (0..4).map(|_| nodes[0].check("k")).collect();
    let allowed: Vec<bool> = decisions.iter().map(|decision| decision["allowed"] == true).collect();
    assert_eq!(allowed, [true, true, true, false]);
    assert_eq!((&decisions[0]["limit"], &decisions[0]["share"]), (&json!(5), &json!(3)));
    assert_eq!((&decisions[0]["count"], &decisions[0]["remaining"]), (&json!(1), &json!(2)));
    assert_eq!(nodes[1].check("k")["remaining"], 2);

    server.restart();
    nodes.iter().for_each(|node| eventually("the store is restored", || is_restored(node)));
    let decision = nodes[1].check("k");
    assert_eq!(
        (&decision["count"], &decision["source"]),
        (&json!(5), &json!("store")),
        "3 + 1 of the outage, and this check"
    );
    assert_eq!(nodes[0].check("k")["allowed"], false);
    assert_eq!(status(&nodes[0])["breaker"], "closed");
    assert!(Scrape::of(&nodes[0]).value(BREAKER) == 0.0);

    let [node, _] = nodes;
    let (_, log) = node.stop();
    let lines = |words: &str| log.lines().filter(|line| line.contains(words)).count();
    assert_eq!((lines("store lost"), lines("store restored")), (1, 1), "{log}");
    assert_eq!(lines("WARN"), 1, "one warning per outage: {log}");
    let restored = log.lines().find(|line| line.contains("store restored")).unwrap();
    assert!(restored.contains("INFO") && restored.contains("outage_ms="), "{restored}");
    assert!(restored.contains("refused=1") && restored.contains("keys_dropped=0"), "{restored}");
}

#[test]
fn admissions_of_an_outage_are_debited_at_shutdown() {
    let scratch = Scratch::new();
    let server = Server::start(Flavor::Redis);
    // No probe during the test.
    let args = ["--policy", &policy(&scratch, "5/d"), "--probe-ms", "600000"];
    let service = node(&server, &args);
    server.kill();
    (0..2).for_each(|_| assert_degraded(&service.check("k")));
    server.restart();
    let (_, log) = service.stop();
    assert!(!log.contains("lost with this process"), "{log}");
    let decision = node(&server, &args).check("k");
    assert_eq!((&decision["count"], &decision["source"]), (&json!(3), &json!("store")));
}

#[test]
fn admissions_that_are_lost_at_shutdown_are_logged() {
    let scratch = Scratch::new();
    let server = Server::start(Flavor::Redis);
    let args = ["--policy", &policy(&scratch, "5/d"), "--probe-ms", "50"];
    let service = node(&server, &args);
    server.kill();
    ["a", "b", "a"].iter().for_each(|key| assert_degraded(&service.check(key)));
    let (_, log) = service.stop();
    let lost = log.lines().find(|line| line.contains("not debited in Redis"));
    assert!(lost.is_some_and(|line| line.contains("WARN") && line.contains("keys=2")), "{log}");
}

#[test]
fn hung_redis_delays_checks_by_at_most_one_timeout() {
    let scratch = Scratch::new();
    let server = Server::start(Flavor::Redis);
    let (url, file) = (server.url(), policy(&scratch, "1000/d"));
    let args = ["--redis", &url, "--redis-timeout-ms", "300", "--policy", &file];
    let service = Service::start(&[&args[..], &["--probe-ms", "50"]].concat());
    server.hang();
    let items: Vec<Value> = (0..500).map(|_| json!({"key": "k"})).chain([json!({})]).collect();
    let start = Instant::now();
    let batch = service.post("/check/batch", json!({ "requests": items }).to_string());
    assert!(start.elapsed() < MAX_DELAY, "all items share one timeout");
    let results = batch.json()["results"].clone();
    (0..500).for_each(|item| assert_degraded(&results[item]));
    assert_eq!(results[500]["status"], 400);
    assert_eq!(service.check("k")["degraded"], true);
    let errors = Scrape::of(&service).value(ERRORS);
    // A batch is sent in chunks of 64 items. After the first one the breaker is open, and no item calls Redis.
    assert!((64.0..500.0).contains(&errors), "each failed call is counted: {errors}");
    server.resume();
    eventually("the store is restored", || is_restored(&service));
    // Every take is counted by the node, and perhaps again by Redis if only its reply was lost.
    let count = service.post("/peek", r#"{"key":"k"}"#).json()["count"].as_u64().unwrap();
    assert!((501..=1000).contains(&count), "{count}");
}

#[test]
fn changed_password_is_an_outage_without_showing_it() {
    let server = Server::start(Flavor::Redis);
    let service = node(&server, &["--probe-ms", "50"]);
    assert!(is_restored(&service));
    let mut raw = server.raw();
    raw.call(&["CONFIG", "SET", "requirepass", "hunter2"]);
    let connected = raw.call(&["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"]);
    assert!(connected.int() > 0);
    lose(&service);
    let status = service.get("/api/status").body;
    raw.call(&["CONFIG", "SET", "requirepass", ""]);
    eventually("the store is restored", || is_restored(&service));
    assert!(!service.log().contains("hunter2") && !status.contains("hunter2"), "{status}");
}

#[test]
fn command_line_shows_degraded_decisions() {
    let scratch = Scratch::new();
    let server = Server::start(Flavor::Redis);
    let service = node(&server, &["--policy", &scratch.write("policy.yaml", POLICY)]);
    server.kill();
    let run = |args: &[&str]| {
        let url = service.url();
        crate::service::run(&[&["check"], args, &["--server", &url]].concat())
    };
    let ended = run(&["k"]);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    assert!(ended.stdout.contains("degraded: the store is unreachable"), "{}", ended.stdout);
    let ended = run(&["client=c", "path=/strict"]);
    assert_eq!(ended.code, 3, "{}", ended.stderr);
    assert!(ended.stderr.contains("503: refused"), "{}", ended.stderr);
}
