//! Rules with `distributed: shadow` or `off`, and the flag `--distributed`.

use serde_json::{Value, json};
use tollgate_testkit::server::{Flavor, Server};

use crate::metrics_text::Scrape;
use crate::openapi::{check, description};
use crate::redis::node;
use crate::service::{Scratch, Service};

const POLICY: &str = "
version: 1
defaults: { limit: 4/d }
rules:
  - { name: tried, match: { path: /tried }, limits: [4/d], distributed: shadow }
  - { name: near, match: { path: /near }, limits: [4/d], distributed: off }
";

fn check_path(service: &Service, path: &str) -> Value {
    let body = json!({"facts": {"client": "c", "path": path}}).to_string();
    let reply = service.post("/check", body);
    check(&description(), "/check", "post", &reply);
    assert_eq!(reply.status, 200, "{}", reply.body);
    reply.json()
}

fn allowed(service: &Service, path: &str, requests: usize) -> usize {
    (0..requests).filter(|_| check_path(service, path)["allowed"] == true).count()
}

fn divergence(service: &Service, rule: &str) -> f64 {
    Scrape::of(service).value(&format!(r#"rate_limit_shadow_divergence_total{{rule="{rule}"}}"#))
}

fn nodes(server: &Server, args: &[&str]) -> [Service; 2] {
    let scratch = Scratch::new();
    let file = scratch.write("policy.yaml", POLICY);
    [(); 2].map(|()| node(server, &[&["--policy", &file], args].concat()))
}

#[test]
fn shadow_rule_decides_locally_and_counts_divergence() {
    let server = Server::start(Flavor::Redis);
    let [one, other] = nodes(&server, &[]);
    // With one node, Redis counts the same as the node.
    assert_eq!(allowed(&one, "/tried", 6), 4);
    assert!(divergence(&one, "tried") == 0.0);
    let decision = check_path(&one, "/tried");
    assert_eq!((&decision["source"], &decision["degraded"]), (&json!("local"), &json!(false)));
    // The second node admits the limit again. Redis would have refused these requests.
    assert_eq!(allowed(&other, "/tried", 6), 4);
    assert!(divergence(&other, "tried") == 4.0, "{}", divergence(&other, "tried"));
    assert!(divergence(&other, "default") == 0.0);
}

#[test]
fn explain_shows_both_sides_of_a_shadow_rule() {
    let server = Server::start(Flavor::Redis);
    let [one, other] = nodes(&server, &[]);
    allowed(&one, "/tried", 4);
    allowed(&other, "/tried", 1);
    let body = json!({"facts": {"client": "c", "path": "/tried"}}).to_string();
    let reply = other.post("/explain", body);
    check(&description(), "/explain", "post", &reply);
    let take = reply.json()["takes"][0].clone();
    assert_eq!((&take["distributed"], &take["verdict"]), (&json!("shadow"), &json!("allow")));
    assert_eq!((&take["before"]["count"], &take["shared_store"]["count"]), (&json!(1), &json!(4)));
    assert_eq!(take["shared_store"]["verdict"], "deny");
}

#[test]
fn rule_with_distributed_off_does_not_use_redis() {
    let server = Server::start(Flavor::Redis);
    let [one, other] = nodes(&server, &[]);
    assert_eq!(allowed(&one, "/near", 6) + allowed(&other, "/near", 6), 8);
    assert_eq!(server.raw().call(&["KEYS", "rl:*near*"]).array().len(), 0);
    assert!(divergence(&one, "near") == 0.0);
    server.kill();
    let decision = check_path(&one, "/near");
    assert_eq!((&decision["allowed"], &decision["degraded"]), (&json!(false), &json!(false)));
}

#[test]
fn distributed_flag_caps_every_rule() {
    let server = Server::start(Flavor::Redis);
    let [one, other] = nodes(&server, &["--distributed", "shadow"]);
    assert_eq!(allowed(&one, "/", 6) + allowed(&other, "/", 6), 8);
    assert!(divergence(&other, "default") == 4.0);
    let [one, other] = nodes(&server, &["--distributed", "off", "--redis-prefix", "other:"]);
    assert_eq!(allowed(&one, "/", 6) + allowed(&other, "/", 6), 8);
    assert!(divergence(&other, "default") == 0.0);
}

#[test]
fn shadow_rule_decides_without_redis() {
    let server = Server::start(Flavor::Redis);
    let [one, _] = nodes(&server, &[]);
    assert_eq!(allowed(&one, "/tried", 1), 1);
    server.kill();
    for remaining in [2, 1, 0] {
        let decision = check_path(&one, "/tried");
        assert_eq!(
            (&decision["remaining"], &decision["degraded"]),
            (&json!(remaining), &json!(false))
        );
    }
    assert_eq!(check_path(&one, "/tried")["allowed"], false);
    assert!(divergence(&one, "tried") == 0.0, "an unavailable Redis does not diverge");
}
