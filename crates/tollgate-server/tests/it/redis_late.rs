//! Start without Redis: the service decides by shares of the limits, and is exact when Redis answers.

use std::net::TcpListener;
use std::time::Instant;

use serde_json::{Value, json};
use tollgate_testkit::server::{Cluster, Flavor, Sentinels, Server};

use crate::admin_client::TOKEN;
use crate::metrics_text::Scrape;
use crate::redis::{LONG_TIMEOUT, policy};
use crate::service::{Scratch, Service, eventually};
use crate::settings::refused;

const HTTP: [&str; 2] = ["--http", "127.0.0.1:0"];
const QUICK: [&str; 4] = ["--probe-ms", "50", "--report-ms", "50"];
const SECRET: &str = "hunter2";

/// A stopped server, which can start later on the same port.
fn stopped() -> Server {
    let server = Server::start(Flavor::Redis);
    server.kill();
    server
}

/// Starts a node with an admin token. The long timeout shows requests that wait for Redis.
pub(crate) fn node(url: &str, args: &[&str]) -> Service {
    let args = [&["--redis", url], &LONG_TIMEOUT[..], &QUICK, args].concat();
    Service::start_with(&args, &[("TOLLGATE_ADMIN_TOKEN", TOKEN)])
}

fn status(service: &Service) -> Value {
    service.get("/api/status").json()
}

pub(crate) fn wait_exact(service: &Service) {
    eventually("the store decides", || {
        service.post("/peek", r#"{"key":"other"}"#).json()["source"] == "store"
    });
}

fn admitted(service: &Service, checks: usize) -> usize {
    (0..checks).filter(|_| service.check("k")["allowed"] == true).count()
}

/// Returns the only line of the log that contains these words.
pub(crate) fn line(service: &Service, words: &str) -> String {
    let log = service.log();
    let lines: Vec<&str> = log.lines().filter(|line| line.contains(words)).collect();
    assert_eq!(lines.len(), 1, "{words}: {log}");
    lines[0].to_owned()
}

#[test]
fn start_without_redis_serves_by_shares_and_becomes_exact() {
    let (scratch, server) = (Scratch::new(), stopped());
    let args = ["--policy", &policy(&scratch, "90/d"), "--expected-nodes", "3", "--node-id", "n1"];
    let service = node(&server.url(), &args);
    assert_eq!(status(&service)["breaker"], "open", "before the first request");
    let ready = service.get("/readyz");
    assert_eq!((ready.status, &*ready.body), (200, "ready, degraded: store lost\n"));
    assert_eq!(service.get("/healthz").status, 200);
    let warning = line(&service, "started without Redis");
    for words in ["WARN", "cannot be reached", "nodes=3", "--expected-nodes"] {
        assert!(warning.contains(words), "{words}: {warning}");
    }
    assert!(line(&service, " starting").contains("set by --redis"), "{}", service.log());

    let start = Instant::now();
    let first = service.check("k");
    assert!(start.elapsed().as_secs() < 15, "the first request does not wait for Redis");
    assert_eq!(
        (&first["source"], &first["degraded"], &first["limit"], &first["share"]),
        (&json!("local"), &json!(true), &json!(90), &json!(30)),
        "{first}"
    );
    assert_eq!(admitted(&service, 40), 29, "30 with the first one");
    let store = status(&service)["store"].clone();
    assert_eq!((&store["nodes"], &store["server"]), (&json!(3), &Value::Null), "{store}");
    assert!(store["warning"].as_str().unwrap().contains("store lost"), "{store}");
    let scrape = Scrape::of(&service);
    for (series, value) in [
        ("tollgate_breaker_state", 1.0),
        ("tollgate_breaker_opened_total", 1.0),
        (r#"tollgate_nodes{state="up"}"#, 3.0),
    ] {
        assert!(scrape.value(series) == value, "{series}: {}", scrape.value(series));
    }
    assert_eq!(service.get("/api/nodes").status, 503);

    server.restart();
    wait_exact(&service);
    let next = service.check("k");
    assert_eq!((&next["count"], &next["source"]), (&json!(31), &json!("store")), "{next}");
    service.wait_for_log("store restored");
    eventually("the server is known", || {
        status(&service)["store"]["server"].as_str().is_some_and(|text| text.starts_with("redis "))
    });
    eventually("the node is registered", || {
        service.get("/api/nodes").json()["nodes"][0]["id"] == "n1"
    });
    let store = status(&service)["store"].clone();
    assert_eq!((&store["warning"], &store["nodes"]), (&Value::Null, &json!(3)), "{store}");
}

#[test]
fn unavailable_redis_starts_degraded_and_require_redis_exits() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let silent = format!("redis://:hunter2@{}", silent.local_addr().unwrap());
    for (url, reason) in [
        ("redis://:hunter2@127.0.0.1:1/0", "cannot be reached"),
        ("redis://:hunter2@no-such-host.invalid", "cannot be reached"),
        ("unix://:hunter2@/no/such/socket", "cannot be reached"),
        (&silent, "did not reply within"),
        ("rediss://:hunter2@127.0.0.1:1/0", "cannot be reached"),
        ("redis+cluster://:hunter2@127.0.0.1:1,127.0.0.1:2", "cannot be reached"),
        ("redis+sentinel://:hunter2@127.0.0.1:1,127.0.0.1:2/mymaster", "cannot be reached"),
    ] {
        let service = Service::start(&[&["--redis", url], &QUICK[..]].concat());
        let warning = line(&service, "started without Redis");
        assert!(warning.contains(reason), "{url}: {warning}");
        let decision = service.check("k");
        assert_eq!((&decision["source"], &decision["allowed"]), (&json!("local"), &json!(true)));
        assert_eq!(status(&service)["store"]["nodes"], 1);
        let (exit, log) = service.stop();
        assert!(exit.success() && !log.contains(SECRET), "{log}");
        let ended = refused(&[&HTTP[..], &["--redis", url, "--require-redis"]].concat(), &[]);
        assert!(ended.stderr.contains(reason), "{}", ended.stderr);
        assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
        assert!(!ended.stderr.contains(SECRET), "{}", ended.stderr);
    }
}

#[test]
fn require_redis_needs_a_redis() {
    let ended = refused(&[&HTTP[..], &["--require-redis"]].concat(), &[]);
    assert!(ended.stderr.contains("--require-redis"), "{}", ended.stderr);
    let invalid = ["--redis", "redis://127.0.0.1:1", "--expected-nodes", "0"];
    let ended = refused(&[&HTTP[..], &invalid].concat(), &[]);
    assert!(ended.stderr.contains("--expected-nodes"), "{}", ended.stderr);
}

#[test]
fn wrong_password_after_a_degraded_start_is_logged_and_can_be_fixed() {
    let server = Server::builder(Flavor::Redis).arg("--requirepass").arg("right").start();
    server.kill();
    let service = node(&server.url_with(":hunter2@", 0), &[]);
    server.restart();
    service.wait_for_log("refused the password");
    let rejected = line(&service, "Redis rejects this node");
    assert!(rejected.contains("refused the password") && !rejected.contains(SECRET), "{rejected}");
    assert_eq!(service.check("k")["source"], "local");
    assert_eq!(service.get("/readyz").status, 200);
    let set = ["CONFIG", "SET", "requirepass", SECRET];
    let mut raw = server.raw();
    assert!(!raw.call(&["AUTH", "right"]).is_error() && !raw.call(&set).is_error());
    wait_exact(&service);
}

#[test]
fn environment_and_settings_file_set_the_start() {
    let scratch = Scratch::new();
    let config = scratch.write("settings.yaml", "expected_nodes: 5\n");
    let args = ["--redis", "redis://127.0.0.1:1", "--config", &config];
    let nodes = |environment: &[(&str, &str)]| {
        status(&Service::start_with(&args, environment))["store"]["nodes"].clone()
    };
    assert_eq!(nodes(&[]), 5);
    assert_eq!(nodes(&[("TOLLGATE_EXPECTED_NODES", "7")]), 7);
    let ended = refused(&[&HTTP[..], &args].concat(), &[("TOLLGATE_REQUIRE_REDIS", "true")]);
    assert!(ended.stderr.contains("cannot be reached"), "{}", ended.stderr);
}

#[test]
fn start_before_the_sentinels_becomes_exact() {
    let sentinels = Sentinels::start(Flavor::Redis);
    let all: Vec<&Server> = sentinels.nodes().iter().chain(sentinels.sentinels()).collect();
    all.iter().for_each(|server| server.hang());
    let service = Service::start(&[&["--redis", &sentinels.url()], &QUICK[..]].concat());
    assert_eq!(service.check("k")["source"], "local");
    all.iter().for_each(|server| server.resume());
    wait_exact(&service);
}

#[test]
fn start_before_the_cluster_becomes_exact() {
    let cluster = Cluster::start(Flavor::Redis);
    cluster.nodes().iter().for_each(Server::hang);
    let service = Service::start(&[&["--redis", &cluster.url()], &QUICK[..]].concat());
    assert_eq!(service.check("k")["source"], "local");
    cluster.nodes().iter().for_each(Server::resume);
    wait_exact(&service);
}
