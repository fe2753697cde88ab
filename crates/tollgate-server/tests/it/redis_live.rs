//! The whole fleet is to be seen, whichever node is asked.

use serde_json::{Value, json};
use tollgate_testkit::server::{Flavor, Server};

use crate::live_client::Watching;
use crate::redis::node;
use crate::service::{Scratch, Service, eventually};

const POLICY: &str = "\
version: 1
rules:
  - { name: api, match: { path: /api }, per: [client], limits: [2/d] }
";

fn ask(service: &Service, client: &str) -> Value {
    let facts = json!({"client": client, "path": "/api"});
    service.post("/check", json!({ "facts": facts }).to_string()).json()
}

fn two(server: &Server, scratch: &Scratch) -> [Service; 2] {
    let policy = scratch.write("policy.yaml", POLICY);
    ["web-1", "web-2"].map(|id| node(server, &["--policy", &policy, "--node-id", id]))
}

fn count(frame: &Value) -> u64 {
    frame["refused"][0]["count"].as_u64().unwrap_or_default()
}

#[test]
fn refusals_of_every_node_are_seen_at_any() {
    let scratch = Scratch::new();
    for flavor in Flavor::ALL {
        let server = Server::start(flavor);
        let nodes = two(&server, &scratch);
        for _ in 0..4 {
            for node in &nodes {
                ask(node, "c1");
            }
        }
        for node in &nodes {
            let mut watching = Watching::begin(node, "");
            let frame = watching.until("all six refusals", |frame| count(frame) == 6);
            assert_eq!(frame["scope"], "fleet", "{flavor}");
            let ids: Vec<&Value> =
                frame["nodes"].as_array().unwrap().iter().map(|node| &node["id"]).collect();
            assert_eq!(ids, ["web-1", "web-2"]);
            assert_eq!(frame["refused"][0]["rule"], "api");
        }
    }
}

#[test]
fn who_comes_later_sees_what_was_before() {
    let (server, scratch) = (Server::start(Flavor::Redis), Scratch::new());
    let [one, other] = two(&server, &scratch);
    for _ in 0..5 {
        ask(&one, "c1");
    }
    let sum = |told: &Value, name: &str| -> f64 {
        let points = told["points"].as_array().unwrap();
        points.iter().map(|point| point[name].as_f64().unwrap()).sum()
    };
    let mut watching = Watching::begin(&one, "");
    watching.until("it is told", |frame| sum(frame, "refused") > 2.99);
    let history = Watching::begin(&other, "").next_of("history");
    let (allowed, refused) = (sum(&history, "allowed"), sum(&history, "refused"));
    assert!((allowed - 2.0).abs() < 0.01 && (refused - 3.0).abs() < 0.01, "{history}");
}

#[test]
fn a_lost_redis_leaves_the_node_and_its_return_the_fleet_with_nothing_lost() {
    let (server, scratch) = (Server::start(Flavor::Redis), Scratch::new());
    let policy = scratch.write("policy.yaml", POLICY);
    let args =
        ["--redis", &server.url(), "--policy", &policy, "--node-id", "web-1", "--probe-ms", "100"];
    let node = Service::start(&args);
    let mut watching = Watching::begin(&node, "");
    watching.until("the fleet", |frame| frame["scope"] == "fleet");
    server.kill();
    for _ in 0..8 {
        ask(&node, "c1");
    }
    let frame = watching.until("it is alone", |frame| {
        frame["scope"] == "node" && frame["store"]["breaker"] == "open"
    });
    assert!(frame["nodes"][0]["warning"].as_str().unwrap().contains("lost"), "{frame}");
    server.restart();
    watching.until("the fleet again", |frame| {
        frame["scope"] == "fleet" && frame["store"]["breaker"] == "closed"
    });
    let told = || -> f64 {
        let history = Watching::begin(&node, "").next_of("history");
        let points = history["points"].as_array().unwrap();
        let of = |point: &Value, name: &str| point[name].as_f64().unwrap();
        points.iter().map(|point| of(point, "allowed") + of(point, "refused")).sum()
    };
    eventually("what was decided alone is told later", || (told() - 8.0).abs() < 0.02);
}

#[test]
fn what_nobody_can_read_is_left_out() {
    let (server, scratch) = (Server::start(Flavor::Redis), Scratch::new());
    let [one, _other] = two(&server, &scratch);
    let mut raw = server.raw();
    for pulse in ["", "{", "7", r#"{"ms":-1}"#, r#"{"ms":18446744073709551615,"all":[1]}"#] {
        raw.call(&["XADD", "rl:reports", "*", "node", "evil", "figures", pulse]);
    }
    let all = vec!["18446744073709551615"; 18].join(",");
    let huge = format!(r#"{{"ms":18446744073709551615,"all":[{all}]}}"#);
    raw.call(&["XADD", "rl:reports", "*", "node", "<b>evil</b>", "figures", &huge]);
    raw.call(&["SET", "rl:node{rl:reports}:web-2", "[]"]);
    ask(&one, "c1");
    let mut watching = Watching::begin(&one, "");
    let frame = watching.next_of("frame");
    assert_eq!(frame["scope"], "fleet");
    assert_eq!(frame["nodes"].as_array().unwrap().len(), 2, "a pulse makes no node: {frame}");
    assert_eq!(one.check("c2")["allowed"], true);
}
