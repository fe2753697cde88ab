//! Admin changes on one node take effect on all nodes.

use serde_json::{Value, json};
use std::time::{Duration, Instant};
use tollgate_testkit::server::{Flavor, Server};

use crate::admin_client::{TOKEN, admin, audit, limits_of, put};
use crate::redis::{LONG_TIMEOUT, policy};
use crate::service::{Scratch, Service, eventually};

fn node(server: &Server, file: &str) -> Service {
    let url = server.url();
    let args = [&["--redis", &url, "--policy", file], &LONG_TIMEOUT[..]].concat();
    Service::start_with(&args, &[("TOLLGATE_ADMIN_TOKEN", TOKEN)])
}

fn limit(node: &Service, key: &str) -> Value {
    node.post("/peek", format!(r#"{{"key":"{key}"}}"#)).json()["limit"].clone()
}

#[test]
fn override_applies_on_all_nodes_and_survives_restarts() {
    let scratch = Scratch::new();
    let file = policy(&scratch, "10/d");
    for flavor in Flavor::ALL {
        let server = Server::start(flavor);
        let [one, other] = [(); 2].map(|()| node(&server, &file));
        for _ in 0..10 {
            assert_eq!(one.check("c1")["allowed"], true);
        }
        assert_eq!(other.check("c1")["allowed"], false);
        let start = Instant::now();
        let stored = put(&one, "c1", 20);
        assert_eq!(limit(&one, "c1"), 20, "immediately on the node that stored it");
        eventually("the other node applies it", || limit(&other, "c1") == 20);
        println!("{flavor}: active on the other node after {:?}", start.elapsed());
        let allowed = (0..15).filter(|_| other.check("c1")["allowed"] == true).count();
        assert_eq!(allowed, 10, "{flavor}: the used count is kept");
        drop((one, other));
        let [one, other] = [(); 2].map(|()| node(&server, &file));
        for node in [&one, &other] {
            let read = admin(node, "GET", &limits_of("c1"), "").json();
            assert_eq!(read["overrides"], stored["overrides"]);
            assert_eq!(node.check("c1")["limit"], 20);
        }
        assert_eq!(admin(&other, "GET", "/admin/overrides", "").json()["kept_in"], "redis");
        put(&other, "c1", 30);
        assert_eq!(admin(&one, "DELETE", &limits_of("c1"), "").status, 204);
        eventually("the other node applies it", || limit(&other, "c1") == 10);
        let changes: Vec<Value> = audit(&other)
            .iter()
            .map(|entry| {
                json!([entry["old"]["limits"][0]["limit"], entry["new"]["limits"][0]["limit"]])
            })
            .collect();
        assert_eq!(changes, [json!([30, null]), json!([20, 30]), json!([null, 20])], "{flavor}");
    }
}

#[test]
fn override_expires_on_all_nodes() {
    let scratch = Scratch::new();
    let file = policy(&scratch, "10/d");
    let server = Server::start(Flavor::Redis);
    let [one, other] = [(); 2].map(|()| node(&server, &file));
    let end = jiff::Timestamp::now() + jiff::SignedDuration::from_secs(6);
    let body =
        json!({"limits": [{"limit": 20, "window_ms": 86_400_000}], "expires_at": end.to_string()});
    assert_eq!(admin(&one, "PUT", &limits_of("c1"), &body.to_string()).status, 200);
    eventually("the other node applies it", || {
        limit(&other, "c1") == 20 || jiff::Timestamp::now() >= end
    });
    eventually("the override expires", || {
        [&one, &other].into_iter().all(|node| {
            let limit = limit(node, "c1");
            assert!(limit == 20 || jiff::Timestamp::now() >= end, "too early");
            limit == 10
        })
    });
    assert_eq!(admin(&other, "GET", &limits_of("c1"), "").status, 404);
    eventually("Redis deletes it", || server.raw().call(&["HLEN", "rl:overrides"]).int() == 0);
}

#[test]
fn reset_takes_effect_on_all_nodes() {
    let scratch = Scratch::new();
    let file = policy(&scratch, "2/d");
    let server = Server::start(Flavor::Redis);
    let [one, other] = [(); 2].map(|()| node(&server, &file));
    for _ in 0..4 {
        other.check("c1");
    }
    assert_eq!(other.check("c1")["allowed"], false);
    assert_eq!(admin(&one, "POST", "/admin/external/clients/c1/reset", "").status, 204);
    eventually("the other node admits", || other.check("c1")["allowed"] == true);
    let stats = admin(&one, "GET", "/admin/external/clients/c1/stats", "").json();
    assert_eq!(stats["counters"][0]["count"], 1, "{stats}");
}

#[test]
fn without_redis_overrides_stay_active_and_changes_fail() {
    let scratch = Scratch::new();
    let file = policy(&scratch, "10/d");
    let server = Server::start(Flavor::Redis);
    let url = server.url();
    let args = ["--redis", &url, "--policy", &file, "--breaker-failures", "1"];
    let node = Service::start_with(&args, &[("TOLLGATE_ADMIN_TOKEN", TOKEN)]);
    eventually("the override is set", || {
        let body = crate::admin_client::daily_limit(20);
        admin(&node, "PUT", &limits_of("c1"), &body).status == 200
    });
    server.kill();
    eventually("degraded mode", || node.check("c1")["degraded"] == true);
    let start = Instant::now();
    for (method, path) in [
        ("PUT", limits_of("c2")),
        ("DELETE", limits_of("c1")),
        ("POST", "/admin/external/clients/c1/reset".to_owned()),
        ("GET", "/admin/audit".to_owned()),
    ] {
        let body =
            if method == "PUT" { crate::admin_client::daily_limit(1) } else { String::new() };
        let reply = admin(&node, method, &path, &body);
        assert_eq!(reply.status, 503, "{method} {path}: {}", reply.body);
        assert!(reply.header("retry-after").is_some());
    }
    assert!(start.elapsed() < Duration::from_secs(30), "requests must not wait for a lost Redis");
    assert_eq!(admin(&node, "GET", &limits_of("c1"), "").status, 200);
    assert_eq!(node.check("c1")["limit"], 20);
}
