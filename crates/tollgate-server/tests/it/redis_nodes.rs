//! Nodes that share a Redis: up, down, and left.

use serde_json::{Value, json};
use tollgate_testkit::server::{Flavor, Server};

use crate::listings::all_pages;
use crate::openapi::{check, description};
use crate::read_api::{get, parse_time};
use crate::redis::node;
use crate::service::{Service, eventually};

/// Returns the ids and states that a node lists.
fn states(service: &Service) -> Vec<(String, String)> {
    let nodes = get(service, "/api/nodes");
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let nodes = nodes["nodes"].as_array().unwrap();
    nodes.iter().map(|node| (text(&node["id"]), text(&node["state"]))).collect()
}

fn expected<const N: usize>(nodes: [(&str, &str); N]) -> Vec<(String, String)> {
    nodes.map(|(id, state)| (id.to_owned(), state.to_owned())).into()
}

#[test]
fn every_node_lists_all_nodes() {
    let server = Server::start(Flavor::Redis);
    let first = node(&server, &["--node-id", "n1"]);
    let second = node(&server, &["--node-id", "n2"]);
    for service in [&first, &second] {
        assert_eq!(states(service), expected([("n1", "Up"), ("n2", "Up")]));
        let nodes = get(service, "/api/nodes")["nodes"].clone();
        assert_eq!(nodes[0]["address"], first.address().to_string());
        assert_eq!(nodes[1]["address"], second.address().to_string());
        assert!(parse_time(&nodes[0]["registered_at"]) <= parse_time(&nodes[1]["registered_at"]));
        for node in nodes.as_array().unwrap() {
            assert!(parse_time(&node["last_seen"]) >= parse_time(&node["registered_at"]));
            assert_eq!(node["silent"], false);
        }
    }
}

#[test]
fn node_listing_supports_pages_and_prefixes() {
    let server = Server::start(Flavor::Redis);
    let [first, ..] = ["a1", "a2", "b1"].map(|id| node(&server, &["--node-id", id]));
    let ids = |query: &str| {
        let (nodes, longest) = all_pages(&first, "/api/nodes", "nodes", query);
        (nodes.iter().map(|node| node["id"].clone()).collect::<Vec<_>>(), longest)
    };
    assert_eq!(ids(""), (vec![json!("a1"), json!("a2"), json!("b1")], 3));
    assert_eq!(ids("limit=1"), (vec![json!("a1"), json!("a2"), json!("b1")], 1));
    assert_eq!(ids("limit=2&prefix=a"), (vec![json!("a1"), json!("a2")], 2));
    assert_eq!(ids("prefix=c").0, [json!(null); 0]);
    for (query, field) in [("limit=0", "limit"), ("limit=x", "limit"), ("tenant=t", "tenant")] {
        let reply = first.get(&format!("/api/nodes?{query}"));
        assert_eq!((reply.status, &reply.json()["field"]), (400, &json!(field)), "{query}");
        check(&description(), "/api/nodes", "get", &reply);
    }
    assert_eq!(first.get("/api/nodes?sort=id").status, 400);
}

#[test]
fn stopped_node_is_removed_and_killed_node_is_down() {
    let server = Server::start(Flavor::Redis);
    let witness = node(&server, &["--node-id", "witness"]);
    let leaving = node(&server, &["--node-id", "leaving"]);
    let brief = ["--node-id", "dying", "--report-ms", "50", "--node-lifetime-ms", "2000"];
    let dying = node(&server, &brief);
    let all = expected([("dying", "Up"), ("leaving", "Up"), ("witness", "Up")]);
    eventually("three nodes up", || states(&witness) == all);
    assert!(leaving.stop().0.success());
    eventually("one node left", || {
        states(&witness) == expected([("dying", "Up"), ("witness", "Up")])
    });
    dying.kill();
    let down = expected([("dying", "Down"), ("witness", "Up")]);
    eventually("one node down", || states(&witness) == down);
    let _restarted = node(&server, &["--node-id", "dying"]);
    assert_eq!(states(&witness), expected([("dying", "Up"), ("witness", "Up")]));
}

#[test]
fn reports_are_repeated() {
    let server = Server::start(Flavor::Redis);
    let witness = node(&server, &["--node-id", "witness"]);
    let _brief =
        node(&server, &["--node-id", "brief", "--report-ms", "50", "--node-lifetime-ms", "60000"]);
    let mut raw = server.raw();
    let mut record = || raw.call(&["HGET", "rl:nodes", "brief"]).bytes().to_vec();
    let first = record();
    eventually("a later report", || record() != first);
    assert_eq!(states(&witness), expected([("brief", "Up"), ("witness", "Up")]));
}

#[test]
fn logs_failing_reports_once_and_retries() {
    let server = Server::start(Flavor::Redis);
    let service = node(&server, &["--node-id", "one", "--report-ms", "10"]);
    let warning = || get(&service, "/api/status")["store"]["warning"].clone();
    assert_eq!(warning(), Value::Null);
    server.kill();
    service.wait_for_log("node reports fail");
    eventually("a warning", || warning().as_str().is_some_and(|text| text.contains("Redis at")));
    let reply = service.get("/api/nodes");
    assert_eq!((reply.status, reply.header("retry-after")), (503, Some("1")), "{}", reply.body);
    server.restart();
    service.wait_for_log("node reports succeed again");
    eventually("no warning", || warning() == Value::Null);
    assert_eq!(states(&service), expected([("one", "Up")]));
    let log = service.log();
    assert_eq!(log.matches("node reports fail").count(), 1, "{log}");
}

#[test]
fn warns_of_a_duplicate_node_id_until_one_node_leaves() {
    let server = Server::start(Flavor::Redis);
    let args = ["--node-id", "same", "--report-ms", "50", "--node-lifetime-ms"];
    let first = node(&server, &[&args[..], &["60000"]].concat());
    let warning = |service: &Service| get(service, "/api/status")["store"]["warning"].clone();
    assert_eq!(warning(&first), Value::Null);
    let second = node(&server, &[&args[..], &["1000"]].concat());
    let addresses = [first.address().to_string(), second.address().to_string()];
    for service in [&second, &first] {
        service.wait_for_log("two nodes use the id same");
        let log = service.log();
        let line = log.lines().find(|line| line.contains("two nodes")).unwrap();
        assert!(addresses.iter().all(|address| line.contains(address)), "{line}");
    }
    eventually("a warning", || {
        let warning = warning(&second);
        let text = warning.as_str().unwrap_or_default();
        addresses.iter().all(|address| text.contains(address))
    });
    assert_eq!(second.check("k")["allowed"], true);
    assert!(first.stop().0.success());
    eventually("no warning", || warning(&second) == Value::Null);
}
