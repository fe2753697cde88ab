//! The live view of a fleet: every node shows all nodes.

use serde_json::{Value, json};
use tollgate_testkit::server::{Flavor, Server};

use crate::live_client::LiveStream;
use crate::redis::node;
use crate::service::{Scratch, Service, eventually};

const POLICY: &str = "\
version: 1
rules:
  - { name: api, match: { path: /api }, per: [client], limits: [2/d] }
";

fn check(service: &Service, client: &str) -> Value {
    let facts = json!({"client": client, "path": "/api"});
    service.post("/check", json!({ "facts": facts }).to_string()).json()
}

fn two_nodes(server: &Server, scratch: &Scratch) -> [Service; 2] {
    let policy = scratch.write("policy.yaml", POLICY);
    ["web-1", "web-2"].map(|id| node(server, &["--policy", &policy, "--node-id", id]))
}

fn count(frame: &Value) -> u64 {
    frame["refused"][0]["count"].as_u64().unwrap_or_default()
}

#[test]
fn every_node_shows_the_refusals_of_all_nodes() {
    let scratch = Scratch::new();
    for flavor in Flavor::ALL {
        let server = Server::start(flavor);
        let nodes = two_nodes(&server, &scratch);
        for _ in 0..4 {
            for node in &nodes {
                check(node, "c1");
            }
        }
        for node in &nodes {
            let mut stream = LiveStream::open(node, "");
            let frame = stream.until("all six refusals", |frame| count(frame) == 6);
            assert_eq!(frame["scope"], "fleet", "{flavor}");
            let ids: Vec<&Value> =
                frame["nodes"].as_array().unwrap().iter().map(|node| &node["id"]).collect();
            assert_eq!(ids, ["web-1", "web-2"]);
            assert_eq!(frame["refused"][0]["rule"], "api");
        }
    }
}

#[test]
fn new_stream_starts_with_the_history() {
    let (server, scratch) = (Server::start(Flavor::Redis), Scratch::new());
    let [first, second] = two_nodes(&server, &scratch);
    for _ in 0..5 {
        check(&first, "c1");
    }
    let sum = |event: &Value, name: &str| -> f64 {
        let points = event["points"].as_array().unwrap();
        points.iter().map(|point| point[name].as_f64().unwrap()).sum()
    };
    let mut stream = LiveStream::open(&first, "");
    stream.until("all refusals", |frame| sum(frame, "refused") > 2.99);
    let history = LiveStream::open(&second, "").next_of("history");
    let (allowed, refused) = (sum(&history, "allowed"), sum(&history, "refused"));
    assert!((allowed - 2.0).abs() < 0.01 && (refused - 3.0).abs() < 0.01, "{history}");
}

#[test]
fn shows_one_node_during_an_outage_and_loses_no_counts() {
    let (server, scratch) = (Server::start(Flavor::Redis), Scratch::new());
    let policy = scratch.write("policy.yaml", POLICY);
    let args =
        ["--redis", &server.url(), "--policy", &policy, "--node-id", "web-1", "--probe-ms", "100"];
    let node = Service::start(&args);
    let mut stream = LiveStream::open(&node, "");
    stream.until("the fleet", |frame| frame["scope"] == "fleet");
    server.kill();
    for _ in 0..8 {
        check(&node, "c1");
    }
    let frame = stream.until("degraded mode", |frame| {
        frame["scope"] == "node" && frame["store"]["breaker"] == "open"
    });
    assert!(frame["nodes"][0]["warning"].as_str().unwrap().contains("lost"), "{frame}");
    server.restart();
    stream.until("the fleet again", |frame| {
        frame["scope"] == "fleet" && frame["store"]["breaker"] == "closed"
    });
    let total = || -> f64 {
        let history = LiveStream::open(&node, "").next_of("history");
        let points = history["points"].as_array().unwrap();
        let of = |point: &Value, name: &str| point[name].as_f64().unwrap();
        points.iter().map(|point| of(point, "allowed") + of(point, "refused")).sum()
    };
    eventually("reported decisions of the outage", || (total() - 8.0).abs() < 0.02);
}

#[test]
fn ignores_unreadable_reports() {
    let (server, scratch) = (Server::start(Flavor::Redis), Scratch::new());
    let [first, _second] = two_nodes(&server, &scratch);
    let mut raw = server.raw();
    for report in ["", "{", "7", r#"{"ms":-1}"#, r#"{"ms":18446744073709551615,"all":[1]}"#] {
        raw.call(&["XADD", "rl:reports{rl:nodes}", "*", "node", "evil", "figures", report]);
    }
    let all = vec!["18446744073709551615"; 18].join(",");
    let huge = format!(r#"{{"ms":18446744073709551615,"all":[{all}]}}"#);
    raw.call(&["XADD", "rl:reports{rl:nodes}", "*", "node", "<b>evil</b>", "figures", &huge]);
    raw.call(&["SET", "rl:node{rl:nodes}:web-2", "[]"]);
    check(&first, "c1");
    let mut stream = LiveStream::open(&first, "");
    let frame = stream.next_of("frame");
    assert_eq!(frame["scope"], "fleet");
    assert_eq!(frame["nodes"].as_array().unwrap().len(), 2, "a report adds no node: {frame}");
    assert_eq!(first.check("c2")["allowed"], true);
}
