//! The live node count: nodes that join, leave or crash, so that shares are right if Redis is lost at any time.

use jiff::Timestamp;
use serde_json::json;
use tollgate_testkit::server::{Flavor, Server};

use crate::read_api::{get, parse_time};
use crate::redis::{node, policy};
use crate::service::{Scratch, Service, eventually};

const LIMIT: u64 = 90;
/// A node lifetime that outlasts any test.
const LONG_LIFETIME: [&str; 2] = ["--node-lifetime-ms", "6000000"];

/// Starts three nodes that share this server.
fn three_nodes(server: &Server, args: &[&str]) -> [Service; 3] {
    ["a", "b", "c"].map(|id| node(server, &[&["--node-id", id], args].concat()))
}

/// Returns the number of nodes that a node counts.
fn live_nodes(node: &Service) -> u64 {
    node.get("/api/status").json()["store"]["nodes"].as_u64().unwrap()
}

fn wait_for_count(nodes: &[&Service], count: u64) {
    eventually(&format!("every node counts {count} nodes"), || {
        nodes.iter().all(|node| live_nodes(node) == count)
    });
}

/// Waits until a node has sent a report that started after this call.
fn wait_for_reports(server: &Server, id: &str) {
    let mut raw = server.raw();
    for _ in 0..2 {
        let mut record = || raw.call(&["HGET", "rl:nodes", id]);
        let before = record();
        eventually("another report", || record() != before);
    }
}

/// Returns how many of `LIMIT` + 1 checks a node allows.
fn spend(node: &Service) -> u64 {
    let mut client = node.client();
    let checks = (0..=LIMIT).map(|_| {
        let reply = client.post("/check", r#"{"key":"k"}"#);
        assert_eq!(reply.status, 200, "{}", reply.body);
        u64::from(reply.json()["allowed"] == true)
    });
    checks.sum()
}

/// When nodes learned of each other at heartbeats every 10 s, this fleet admitted 90 + 45 + 30.
#[test]
fn fleet_that_has_just_started_divides_its_limits() {
    let (scratch, server) = (Scratch::new(), Server::start(Flavor::Redis));
    let nodes = three_nodes(&server, &["--policy", &policy(&scratch, &format!("{LIMIT}/d"))]);
    // Two reports, one a second: by then each node knows the others.
    for id in ["a", "b", "c"] {
        wait_for_reports(&server, id);
    }
    let counts = nodes.each_ref().map(live_nodes);
    assert_eq!(counts, [3; 3], "after two reports of each node");
    server.kill();
    let admitted = nodes.each_ref().map(spend);
    let total: u64 = admitted.iter().sum();
    assert!(total < LIMIT + 3, "{admitted:?} of {LIMIT}");
}

#[test]
fn clean_departure_counts_before_the_lifetime_ends() {
    let server = Server::start(Flavor::Redis);
    let [a, b, c] = three_nodes(&server, &LONG_LIFETIME);
    wait_for_count(&[&a, &b, &c], 3);
    assert!(c.stop().0.success());
    wait_for_count(&[&a, &b], 2);
}

#[test]
fn crashed_node_counts_until_its_lifetime_ends() {
    let server = Server::start(Flavor::Redis);
    let [a, b, c] = three_nodes(&server, &["--node-lifetime-ms", "3000"]);
    wait_for_count(&[&a, &b, &c], 3);
    c.kill();
    wait_for_count(&[&a, &b], 2);
    let now = Timestamp::now();
    let nodes = get(&a, "/api/nodes");
    assert_eq!(
        (&nodes["nodes"][2]["id"], &nodes["nodes"][2]["state"]),
        (&json!("c"), &json!("Down"))
    );
    let age = now.duration_since(parse_time(&nodes["nodes"][2]["last_seen"]));
    assert!(age.as_millis() >= 3000, "{age:?} after its last report");
}

#[test]
fn node_that_crashed_during_an_outage_is_still_counted_after_it() {
    let server = Server::start(Flavor::Redis);
    let args = [&LONG_LIFETIME[..], &["--report-ms", "100", "--probe-ms", "50"]].concat();
    let [a, b, c] = three_nodes(&server, &args);
    wait_for_count(&[&a, &b, &c], 3);
    server.kill();
    c.kill();
    // Redis loses its data.
    server.restart();
    let registered = || server.raw().call(&["HLEN", "rl:nodes"]).int();
    eventually("two nodes are registered again", || registered() == 2);
    for (node, id) in [(&a, "a"), (&b, "b")] {
        wait_for_reports(&server, id);
        assert_eq!(live_nodes(node), 3);
    }
    assert!(b.stop().0.success());
    wait_for_count(&[&a], 2);
}
