//! Rules that move to Redis one by one, and are only tried there first.

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

fn ask(service: &Service, path: &str) -> Value {
    let body = json!({"facts": {"client": "c", "path": path}}).to_string();
    let reply = service.post("/check", body);
    check(&description(), "/check", "post", &reply);
    assert_eq!(reply.status, 200, "{}", reply.body);
    reply.json()
}

fn allowed(service: &Service, path: &str, asked: usize) -> usize {
    (0..asked).filter(|_| ask(service, path)["allowed"] == true).count()
}

fn diverged(service: &Service, rule: &str) -> f64 {
    Scrape::of(service).value(&format!(r#"rate_limit_shadow_divergence_total{{rule="{rule}"}}"#))
}

fn nodes(server: &Server, args: &[&str]) -> [Service; 2] {
    let scratch = Scratch::new();
    let file = scratch.write("policy.yaml", POLICY);
    [(); 2].map(|()| node(server, &[&["--policy", &file], args].concat()))
}

#[test]
fn a_rule_in_shadow_enforces_what_it_did_and_counts_what_would_differ() {
    let server = Server::start(Flavor::Redis);
    let [one, other] = nodes(&server, &[]);
    // LocalDecisions it sees what Redis sees.
    assert_eq!(allowed(&one, "/tried", 6), 4);
    assert!(diverged(&one, "tried") == 0.0);
    let answer = ask(&one, "/tried");
    assert_eq!((&answer["source"], &answer["degraded"]), (&json!("local"), &json!(false)));
    // The replica multiplies the limit, as it does today. Redis would not have let it.
    assert_eq!(allowed(&other, "/tried", 6), 4);
    assert!(diverged(&other, "tried") == 4.0, "{}", diverged(&other, "tried"));
    assert!(diverged(&other, "default") == 0.0);
}

#[test]
fn both_sides_of_a_rule_in_shadow_are_explained() {
    let server = Server::start(Flavor::Redis);
    let [one, other] = nodes(&server, &[]);
    allowed(&one, "/tried", 4);
    allowed(&other, "/tried", 1);
    let body = json!({"facts": {"client": "c", "path": "/tried"}}).to_string();
    let reply = other.post("/explain", body);
    check(&description(), "/explain", "post", &reply);
    let take = reply.json()["takes"][0].clone();
    assert_eq!((&take["distributed"], &take["verdict"]), (&json!("shadow"), &json!("allow")));
    assert_eq!((&take["before"]["count"], &take["beside"]["count"]), (&json!(1), &json!(4)));
    assert_eq!(take["beside"]["verdict"], "deny");
}

#[test]
fn a_rule_that_is_off_asks_nobody() {
    let server = Server::start(Flavor::Redis);
    let [one, other] = nodes(&server, &[]);
    assert_eq!(allowed(&one, "/near", 6) + allowed(&other, "/near", 6), 8);
    assert_eq!(server.raw().call(&["KEYS", "rl:*near*"]).array().len(), 0);
    assert!(diverged(&one, "near") == 0.0);
    server.kill();
    let answer = ask(&one, "/near");
    assert_eq!((&answer["allowed"], &answer["degraded"]), (&json!(false), &json!(false)));
}

#[test]
fn one_switch_holds_every_rule_back() {
    let server = Server::start(Flavor::Redis);
    let [one, other] = nodes(&server, &["--distributed", "shadow"]);
    assert_eq!(allowed(&one, "/", 6) + allowed(&other, "/", 6), 8);
    assert!(diverged(&other, "default") == 4.0);
    let [one, other] = nodes(&server, &["--distributed", "off", "--redis-prefix", "other:"]);
    assert_eq!(allowed(&one, "/", 6) + allowed(&other, "/", 6), 8);
    assert!(diverged(&other, "default") == 0.0);
}

#[test]
fn a_rule_in_shadow_does_not_care_whether_redis_is_there() {
    let server = Server::start(Flavor::Redis);
    let [one, _] = nodes(&server, &[]);
    assert_eq!(allowed(&one, "/tried", 1), 1);
    server.kill();
    for left in [2, 1, 0] {
        let answer = ask(&one, "/tried");
        assert_eq!((&answer["remaining"], &answer["degraded"]), (&json!(left), &json!(false)));
    }
    assert_eq!(ask(&one, "/tried")["allowed"], false);
    assert!(diverged(&one, "tried") == 0.0, "who cannot be asked does not differ");
}
