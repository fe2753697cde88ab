//! Counters that a node with Redis keeps itself, for rules with `distributed: off` or `shadow`.

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
        let node_args = ["--redis", &server.url(), "--policy", &file, "--node-id", id];
        let args = [&node_args, &LONG_TIMEOUT[..], args].concat();
        Service::start_with(&args, &[("TOLLGATE_ADMIN_TOKEN", TOKEN)])
    })
}

fn check_path(service: &Service, path: &str, requests: usize) {
    for _ in 0..requests {
        take(service, &json!({"facts": {"client": "bob", "path": path}}));
    }
}

/// Returns (rule, value of the field, node) of each item, sorted.
fn rows(items: &Value, field: &str) -> Vec<(String, Value, Value)> {
    let items = items.as_array().expect("a list").iter();
    let mut rows: Vec<_> = items
        .map(|item| {
            let rule = item["rule"].as_str().expect("a rule").to_owned();
            (rule, item[field].clone(), item["node"].clone())
        })
        .collect();
    rows.sort_by_key(|(rule, _, node)| (rule.clone(), node.to_string()));
    rows
}

fn stats(service: &Service) -> Vec<(String, Value, Value)> {
    let reply = admin(service, "GET", STATS, "");
    assert_eq!(reply.status, 200, "{}", reply.body);
    check(&description(), "/admin/external/clients/{id}/stats", "get", &reply);
    assert_eq!(reply.json()["complete"], true);
    rows(&reply.json()["counters"], "count")
}

fn row(rule: &str, value: impl Into<Value>, node: Option<&str>) -> (String, Value, Value) {
    (rule.to_owned(), value.into(), node.into())
}

#[test]
fn stats_show_deciding_counters_and_reset_clears_them() {
    let server = Server::start(Flavor::Redis);
    let [one, other] = nodes(&server, &[]);
    check_path(&one, "/near", 2);
    check_path(&one, "/tried", 1);
    check_path(&one, "/each", 1);
    check_path(&one, "/", 3);
    // The rule `banned` cannot match this client.
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
    check_path(&one, "/each", 2);
    let blocks = one.get("/api/blocks").json();
    assert_eq!(rows(&blocks["blocked"], "key"), [row("each", "%2Feach:bob", Some("one"))]);
}

#[test]
fn blocks_are_listed_by_the_node_that_counts() {
    let server = Server::start(Flavor::Redis);
    let [one, other] = nodes(&server, &[]);
    check_path(&one, "/near", 2);
    check_path(&one, "/tried", 2);
    let reply = one.get("/api/blocks");
    check(&description(), "/api/blocks", "get", &reply);
    let refused = [row("near", "bob", Some("one")), row("tried", "bob", Some("one"))];
    assert_eq!(rows(&reply.json()["blocked"], "key"), refused);
    // Redis has counted the shadow rule too, but it refuses no request.
    assert_eq!(other.get("/api/blocks").json()["blocked"], json!([]));
    let counters = one.get("/api/counters");
    check(&description(), "/api/counters", "get", &counters);
    let counted =
        [row("near", 2, Some("one")), row("tried", 2, Some("one")), row("tried", 2, None)];
    let mut listed = rows(&counters.json()["counters"], "count");
    listed.sort_by_key(|(rule, _, node)| (rule.clone(), node.is_null()));
    assert_eq!(listed, counted);
}

#[test]
fn paging_continues_from_redis_to_the_node() {
    let server = Server::start(Flavor::Redis);
    let [one, other] = nodes(&server, &[]);
    for nth in 0..40 {
        let client = format!("c{nth}");
        for path in ["/", "/near"] {
            take(&one, &json!({"facts": {"client": client, "path": path}}));
        }
    }
    let (counters, longest) = all_pages(&one, "/api/counters", "counters", "limit=10");
    let on_node = counters.iter().filter(|counter| counter["node"] == "one").count();
    assert_eq!((counters.len(), on_node), (80, 40));
    assert!(longest < 40, "{longest} on a page");
    for invalid in ["node:x", "node:x@one", "node:", "0"] {
        let reply = one.get(&format!("/api/counters?cursor={invalid}"));
        assert_eq!((reply.status, &reply.json()["field"]), (400, &json!("cursor")), "{invalid}");
    }
    let elsewhere = other.get("/api/counters?cursor=node:0@one");
    assert_eq!(elsewhere.status, 400, "{}", elsewhere.body);
    assert!(elsewhere.body.contains("belongs to node \\\"one\\\""), "{}", elsewhere.body);
}

#[test]
fn reset_clears_the_counters_of_other_nodes() {
    let server = Server::start(Flavor::Redis);
    let [one, other] = nodes(&server, &[]);
    for node in [&one, &other] {
        check_path(node, "/near", 2);
        check_path(node, "/tried", 2);
        check_path(node, "/each", 1);
    }
    let sue = json!({"facts": {"client": "sue", "path": "/near"}});
    take(&other, &sue);
    // The node may not have subscribed yet when it begins to serve.
    eventually("both nodes are reset", || {
        let reset = admin(&one, "POST", "/admin/external/clients/bob/reset", "");
        assert_eq!(reset.status, 204, "{}", reset.body);
        let none = |node: &str| {
            let on_node = |rule: &str| row(rule, 0, Some(node));
            vec![row("default", 0, None), on_node("near"), on_node("tried")]
        };
        stats(&one) == none("one") && stats(&other) == none("other")
    });
    check_path(&other, "/near", 2);
    let sues = admin(&other, "GET", "/admin/external/clients/sue/stats", "").json();
    let near = row("near", 1, Some("other"));
    assert!(rows(&sues["counters"], "count").contains(&near), "another client keeps its counters");
}

/// A reset also deletes the shadow counters in Redis, on a node that did not count them itself.
#[test]
fn reset_clears_shadow_counters_in_redis() {
    let server = Server::start(Flavor::Redis);
    let [one, other] = nodes(&server, &[]);
    for path in ["/", "/tried", "/pairs"] {
        check_path(&one, path, 1);
    }
    assert_eq!(server.raw().call(&["KEYS", "rl:{*bob}*"]).array().len(), 3);
    let reset = admin(&other, "POST", "/admin/external/clients/bob/reset", "");
    assert_eq!(reset.status, 204, "{}", reset.body);
    assert_eq!(server.raw().call(&["KEYS", "rl:{*bob}*"]).array().len(), 0);
}

/// The counters of a node's share during an outage are not node counters.
#[test]
fn outage_counters_are_not_listed_as_node_counters() {
    let server = Server::start(Flavor::Redis);
    let [one, _] = nodes(&server, &["--breaker-failures", "1"]);
    server.kill();
    check_path(&one, "/", 9);
    check_path(&one, "/near", 1);
    server.restart();
    eventually("Redis is back", || one.get("/api/counters").status == 200);
    eventually("the outage is debited", || {
        let counters = one.get("/api/counters").json();
        rows(&counters["counters"], "rule")
            == [row("default", "default", None), row("near", "near", Some("one"))]
    });
}

#[test]
fn listings_work_without_redis_if_it_counts_nothing() {
    let server = Server::start(Flavor::Redis);
    let [one, _] = nodes(&server, &["--distributed", "off"]);
    let [tried, _] = nodes(&server, &["--distributed", "shadow"]);
    check_path(&one, "/", 9);
    check_path(&tried, "/", 9);
    server.kill();
    assert_eq!(one.get("/api/counters").status, 200);
    for node in [&one, &tried] {
        let blocks = node.get("/api/blocks");
        assert_eq!(blocks.status, 200, "{}", blocks.body);
        assert_eq!(rows(&blocks.json()["blocked"], "key"), [row("default", "bob", Some("one"))]);
        assert!(stats(node).contains(&row("default", 9, Some("one"))));
    }
    assert_eq!(one.get("/api/counters?cursor=0.0").status, 400, "a cursor from Redis");
}
