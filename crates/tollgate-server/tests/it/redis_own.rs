//! What a node on Redis counts by itself, because a rule is not counted there: told by that node, and as its own.

use serde_json::{Value, json};
use tollgate_testkit::server::{Flavor, Server};

use crate::admin_client::{TOKEN, admin};
use crate::listings::{all_pages, take};
use crate::openapi::{check, description};
use crate::redis::LONG_TIMEOUT;
use crate::service::{Scratch, Service, eventually};

const POLICY: &str = "
version: 1
defaults: { limit: 9/d }
rules:
  - { name: near, match: { path: /near }, limits: [2/d], distributed: off }
  - { name: tried, match: { path: /tried }, limits: [2/d], distributed: shadow }
  - { name: each, match: { path: /each }, per: [path, client], limits: [2/d], distributed: off }
  - { name: pairs, match: { path: /pairs }, per: [path, client], limits: [2/d], distributed: shadow }
  - { name: banned, match: { client: eve }, limits: [0] }
";

const STATS: &str = "/admin/external/clients/bob/stats";

fn nodes(server: &Server, args: &[&str]) -> [Service; 2] {
    let scratch = Scratch::new();
    let file = scratch.write("policy.yaml", POLICY);
    ["one", "other"].map(|id| {
        let own = ["--redis", &server.url(), "--policy", &file, "--node-id", id];
        let args = [&own, &LONG_TIMEOUT[..], args].concat();
        Service::start_with(&args, &[("TOLLGATE_ADMIN_TOKEN", TOKEN)])
    })
}

fn ask(service: &Service, path: &str, times: usize) {
    for _ in 0..times {
        take(service, &json!({"facts": {"client": "bob", "path": path}}));
    }
}

/// What is told of the rules, each as (rule, figure, node).
fn told(items: &Value, figure: &str) -> Vec<(String, Value, Value)> {
    let items = items.as_array().expect("a list").iter();
    let mut told: Vec<_> = items
        .map(|item| {
            let rule = item["rule"].as_str().expect("a rule").to_owned();
            (rule, item[figure].clone(), item["node"].clone())
        })
        .collect();
    told.sort_by_key(|(rule, _, node)| (rule.clone(), node.to_string()));
    told
}

fn stats(service: &Service) -> Vec<(String, Value, Value)> {
    let reply = admin(service, "GET", STATS, "");
    assert_eq!(reply.status, 200, "{}", reply.body);
    check(&description(), "/admin/external/clients/{id}/stats", "get", &reply);
    assert_eq!(reply.json()["complete"], true);
    told(&reply.json()["counters"], "count")
}

fn row(rule: &str, figure: impl Into<Value>, node: Option<&str>) -> (String, Value, Value) {
    (rule.to_owned(), figure.into(), node.into())
}

#[test]
fn a_client_s_stats_are_those_by_which_it_is_decided_and_a_reset_forgets_them() {
    let server = Server::start(Flavor::Redis);
    let [one, other] = nodes(&server, &[]);
    ask(&one, "/near", 2);
    ask(&one, "/tried", 1);
    ask(&one, "/each", 1);
    ask(&one, "/", 3);
    // The rule for another client is none of this one's.
    let all = [
        row("default", 3, None),
        row("each", 1, Some("one")),
        row("near", 2, Some("one")),
        row("tried", 1, Some("one")),
    ];
    assert_eq!(stats(&one), all);
    let elsewhere =
        [row("default", 3, None), row("near", 0, Some("other")), row("tried", 0, Some("other"))];
    assert_eq!(stats(&other), elsewhere);
    let reset = admin(&one, "POST", "/admin/external/clients/bob/reset", "");
    assert_eq!(reset.status, 204, "{}", reset.body);
    let none = ["default", "near", "tried"]
        .map(|rule| row(rule, 0, Some("one").filter(|_| rule != "default")));
    assert_eq!(stats(&one), none);
    ask(&one, "/each", 2);
    let blocks = one.get("/api/blocks").json();
    assert_eq!(told(&blocks["blocked"], "key"), [row("each", "%2Feach:bob", Some("one"))]);
}

#[test]
fn who_is_refused_is_told_by_the_node_that_refuses() {
    let server = Server::start(Flavor::Redis);
    let [one, other] = nodes(&server, &[]);
    ask(&one, "/near", 2);
    ask(&one, "/tried", 2);
    let reply = one.get("/api/blocks");
    check(&description(), "/api/blocks", "get", &reply);
    let refused = [row("near", "bob", Some("one")), row("tried", "bob", Some("one"))];
    assert_eq!(told(&reply.json()["blocked"], "key"), refused);
    // Redis has counted the trial too, but nobody is refused by it.
    assert_eq!(other.get("/api/blocks").json()["blocked"], json!([]));
    let counters = one.get("/api/counters");
    check(&description(), "/api/counters", "get", &counters);
    let counted =
        [row("near", 2, Some("one")), row("tried", 2, Some("one")), row("tried", 2, None)];
    let mut told = told(&counters.json()["counters"], "count");
    told.sort_by_key(|(rule, _, node)| (rule.clone(), node.is_null()));
    assert_eq!(told, counted);
}

#[test]
fn pages_go_on_from_the_store_to_the_node() {
    let server = Server::start(Flavor::Redis);
    let [one, other] = nodes(&server, &[]);
    for nth in 0..40 {
        let client = format!("c{nth}");
        for path in ["/", "/near"] {
            take(&one, &json!({"facts": {"client": client, "path": path}}));
        }
    }
    let (counters, longest) = all_pages(&one, "/api/counters", "counters", "limit=10");
    let own = counters.iter().filter(|counter| counter["node"] == "one").count();
    assert_eq!((counters.len(), own), (80, 40));
    assert!(longest < 40, "{longest} on a page");
    for wrong in ["node:x", "node:x@one", "node:", "0"] {
        let reply = one.get(&format!("/api/counters?cursor={wrong}"));
        assert_eq!((reply.status, &reply.json()["field"]), (400, &json!("cursor")), "{wrong}");
    }
    let elsewhere = other.get("/api/counters?cursor=node:0@one");
    assert_eq!(elsewhere.status, 400, "{}", elsewhere.body);
    assert!(elsewhere.body.contains("belongs to node \\\"one\\\""), "{}", elsewhere.body);
}

/// What only Redis counts, on trial, is forgotten too, also by a node that never heard of it.
#[test]
fn a_reset_forgets_trials_wherever_they_were_counted() {
    let server = Server::start(Flavor::Redis);
    let [one, other] = nodes(&server, &[]);
    for path in ["/", "/tried", "/pairs"] {
        ask(&one, path, 1);
    }
    assert_eq!(server.raw().call(&["KEYS", "rl:{*bob}*"]).array().len(), 3);
    let reset = admin(&other, "POST", "/admin/external/clients/bob/reset", "");
    assert_eq!(reset.status, 204, "{}", reset.body);
    assert_eq!(server.raw().call(&["KEYS", "rl:{*bob}*"]).array().len(), 0);
}

/// The shares that a node counted while Redis was lost are no counters of its own.
#[test]
fn what_was_counted_in_an_outage_is_not_told_as_the_node_s_own() {
    let server = Server::start(Flavor::Redis);
    let [one, _] = nodes(&server, &["--breaker-failures", "1"]);
    server.kill();
    ask(&one, "/", 9);
    ask(&one, "/near", 1);
    server.restart();
    eventually("Redis is back", || one.get("/api/counters").status == 200);
    eventually("it was told", || {
        let counters = one.get("/api/counters").json();
        told(&counters["counters"], "rule")
            == [row("default", "default", None), row("near", "near", Some("one"))]
    });
}

#[test]
fn where_nothing_is_counted_in_redis_its_loss_hides_nothing() {
    let server = Server::start(Flavor::Redis);
    let [one, _] = nodes(&server, &["--distributed", "off"]);
    let [tried, _] = nodes(&server, &["--distributed", "shadow"]);
    ask(&one, "/", 9);
    ask(&tried, "/", 9);
    server.kill();
    assert_eq!(one.get("/api/counters").status, 200);
    for node in [&one, &tried] {
        let blocks = node.get("/api/blocks");
        assert_eq!(blocks.status, 200, "{}", blocks.body);
        assert_eq!(told(&blocks.json()["blocked"], "key"), [row("default", "bob", Some("one"))]);
        assert!(stats(node).contains(&row("default", 9, Some("one"))));
    }
    assert_eq!(one.get("/api/counters?cursor=0.0").status, 400, "a cursor of Redis");
}
