//! An incident as operators see it afterwards: events and history of a fleet, on every node.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::{Value, json};
use tollgate_testkit::server::{Flavor, Server};

use crate::admin_client::{TOKEN, admin, limits_of, put};
use crate::live_client::LiveStream;
use crate::openapi::{check, description};
use crate::read_api::{get, parse_time};
use crate::redis::LONG_TIMEOUT;
use crate::service::{Scratch, Service, eventually};

const POLICY: &str = "\
version: 1
rules:
  - { name: api, match: { path: /api/** }, per: [client], limits: [2/d] }
";

/// A Redis that keeps its data when it is killed.
fn durable_server() -> Server {
    Server::builder(Flavor::Redis).args(["--appendonly", "yes"]).start()
}

fn node(server: &Server, policy: &str, id: &str) -> Service {
    let url = server.url();
    let fast = ["--report-ms", "100", "--probe-ms", "100", "--breaker-failures", "1"];
    let args = ["--redis", &url, "--policy", policy, "--node-id", id];
    let args = [&args[..], &fast, &LONG_TIMEOUT].concat();
    Service::start_with(&args, &[("TOLLGATE_ADMIN_TOKEN", TOKEN)])
}

fn events(node: &Service) -> Vec<Value> {
    let reply = node.get("/api/events?limit=1000");
    check(&description(), "/api/events", "get", &reply);
    reply.json()["events"].as_array().expect("a list").clone()
}

/// Returns how many events of each kind and node a node lists.
fn counts(node: &Service) -> BTreeMap<(String, String), usize> {
    let mut counts = BTreeMap::new();
    for event in events(node) {
        let text = |name: &str| event[name].as_str().expect("a text").to_owned();
        *counts.entry((text("kind"), text("node"))).or_default() += 1;
    }
    counts
}

/// Waits until both nodes list exactly these events: kind, node and number.
fn wait_for_events(nodes: &[&Service], expected: &[(&str, &str, usize)]) {
    let expected = expected
        .iter()
        .map(|(kind, node, count)| (((*kind).to_owned(), (*node).to_owned()), *count))
        .collect::<BTreeMap<_, _>>();
    for node in nodes {
        let mut last = BTreeMap::new();
        eventually(&format!("{expected:?}"), || {
            last = counts(node);
            let excess = last.iter().find(|(event, count)| expected.get(*event) < Some(*count));
            assert_eq!(excess, None, "{:?}", events(node));
            last == expected
        });
    }
}

fn check_path(node: &Service, client: &str) {
    let facts = json!({"client": client, "path": "/api/x"});
    let reply = node.post("/check", json!({ "facts": facts }).to_string());
    assert_eq!(reply.status, 200, "{}", reply.body);
}

/// Returns allowed, refused and degraded of a range, and the figures of the rule.
fn history(node: &Service, range: &str) -> ([u64; 3], [u64; 5]) {
    let reply = node.get(&format!("/api/history?range={range}"));
    check(&description(), "/api/history", "get", &reply);
    let history = reply.json();
    let (mut sums, mut rule) = ([0; 3], [0; 5]);
    let points = history["points"].as_array().expect("points");
    let number = |value: &Value| value.as_u64().expect("an integer");
    for point in points {
        for (sum, name) in sums.iter_mut().zip(["allowed", "refused", "degraded"]) {
            *sum += number(&point[name]);
        }
        for (nth, sum) in rule.iter_mut().enumerate() {
            *sum += point["rules"].get("api").map_or(0, |figures| number(&figures[nth]));
        }
    }
    let times = points.iter().map(|point| number(&point["t"]));
    let step = number(&history["resolution_s"]) * 1000;
    assert!(times.clone().zip(times.skip(1)).all(|(a, b)| a + step == b), "{history}");
    (sums, rule)
}

/// Waits until both nodes return these sums for every range, and never more.
fn wait_for_history(nodes: &[&Service], allowed: u64, refused: u64, degraded: u64) {
    for node in nodes {
        for range in ["5m", "1h", "24h"] {
            let mut last = ([0; 3], [0; 5]);
            eventually(&format!("{range}: {allowed} allowed, {refused} refused"), || {
                last = history(node, range);
                assert!(last.0[0] <= allowed && last.0[1] <= refused, "{range}: {last:?}");
                last.0 == [allowed, refused, degraded]
            });
            assert_eq!(last.1[1], refused, "{range}");
        }
    }
}

#[test]
fn incident_is_explained_by_events_and_history_of_every_node() {
    let (server, scratch) = (durable_server(), Scratch::new());
    let policy = scratch.write("policy.yaml", POLICY);
    let [one, two] = ["web-1", "web-2"].map(|id| node(&server, &policy, id));
    let nodes = [&one, &two];
    let mut expected = vec![("node_joined", "web-1", 1), ("node_joined", "web-2", 1)];
    wait_for_events(&nodes, &expected);

    // Changes by operators.
    put(&one, "c9", 20);
    assert_eq!(admin(&two, "DELETE", &limits_of("c9"), "").status, 204);
    assert_eq!(admin(&two, "POST", "/admin/external/clients/c9/reset", "").status, 204);
    scratch.write("policy.yaml", "version: 1\nrules: [{ name: api, limits: [10/minute] }]\n");
    let error = |node: &Service| get(node, "/api/status")["policy"]["error"].clone();
    eventually("both nodes reject it", || nodes.iter().all(|node| !error(node).is_null()));
    scratch.write("policy.yaml", POLICY);
    eventually("both nodes accept it", || nodes.iter().all(|node| error(node).is_null()));
    expected.extend([("override_set", "web-1", 1), ("override_removed", "web-2", 1)]);
    expected.push(("client_reset", "web-2", 1));
    for node in ["web-1", "web-2"] {
        expected.extend([("policy_rejected", node, 1), ("policy_reloaded", node, 1)]);
    }
    wait_for_events(&nodes, &expected);

    // Redis is lost and comes back.
    for node in nodes.iter().cycle().take(10) {
        check_path(node, "c1");
    }
    wait_for_history(&nodes, 2, 8, 0);
    let mut stream = LiveStream::open(&one, "");
    let frame = stream.until("the fleet", |frame| frame["scope"] == "fleet");
    assert_eq!(frame["store"]["lost_since"], Value::Null);
    assert_eq!(frame["refused"][0]["overridden"], false, "{frame}");
    let before = Timestamp::now();
    server.kill();
    for node in nodes.iter().cycle().take(6) {
        check_path(node, "c2");
    }
    for node in nodes {
        eventually("degraded mode", || get(node, "/api/status")["breaker"] != "closed");
        let lost_since = parse_time(&get(node, "/api/status")["store"]["lost_since"]);
        assert!((before..=Timestamp::now()).contains(&lost_since), "{lost_since}");
        let page = get(node, "/api/events?limit=1");
        assert_eq!(
            (&page["complete"], &page["events"][0]["kind"]),
            (&json!(false), &json!("store_lost"))
        );
        let history = get(node, "/api/history");
        assert_eq!((&history["scope"], &history["complete"]), (&json!("node"), &json!(false)));
    }
    let frame = stream.until("degraded mode", |frame| frame["scope"] == "node");
    assert!(frame["store"]["lost_since"].as_u64().is_some(), "{frame}");
    assert!(frame["store"]["loss_reason"].as_str().is_some(), "{frame}");
    assert_eq!(frame["nodes"][0]["lost_since"], frame["store"]["lost_since"]);
    assert_eq!(frame["known_nodes"][1]["address"], two.address().to_string());
    let event = frame["latest_event"].clone();
    server.restart();
    for node in ["web-1", "web-2"] {
        expected.extend([("store_lost", node, 1), ("store_back", node, 1)]);
    }
    wait_for_events(&nodes, &expected);
    let frame = stream.until("the fleet", |frame| frame["scope"] == "fleet");
    assert!(frame["latest_event"].is_string() && frame["latest_event"] != event, "{frame}");
    let lost = events(&two).into_iter().filter(|event| event["kind"] == "store_lost");
    for event in lost {
        let at = parse_time(&event["at"]);
        assert!(at >= before && at <= Timestamp::now(), "{event}");
        assert!(event["detail"].as_str().unwrap().contains("circuit breaker open"), "{event}");
    }
    // Each node admits its share of the limit of c2: one request.
    wait_for_history(&nodes, 4, 12, 6);

    // A node is killed, and starts again.
    two.kill();
    expected.push(("node_silent", "web-2", 1));
    wait_for_events(&[&one], &expected);
    let frame = stream.until("a silent node", |frame| frame["nodes"][1]["silent"] == true);
    assert!(parse_time(&frame["nodes"][1]["last_seen"]) > before, "{frame}");
    assert_eq!(frame["nodes"][0]["silent"], false);
    let two = node(&server, &policy, "web-2");
    expected.retain(|(kind, node, _)| (*kind, *node) != ("node_joined", "web-2"));
    expected.extend([("node_joined", "web-2", 2), ("node_back", "web-2", 1)]);
    wait_for_events(&[&one, &two], &expected);
    check_path(&two, "c3");
    assert!(two.stop().0.success());
    expected.push(("node_left", "web-2", 1));
    wait_for_events(&[&one], &expected);
    wait_for_history(&[&one], 5, 12, 6);
}

#[test]
fn node_without_redis_has_its_own_events_and_history() {
    let scratch = Scratch::new();
    let policy = scratch.write("policy.yaml", POLICY);
    let node = Service::start_with(&["--policy", &policy], &[("TOLLGATE_ADMIN_TOKEN", TOKEN)]);
    put(&node, "c9", 20);
    for _ in 0..5 {
        check_path(&node, "c1");
    }
    let kinds = |query: &str| -> Vec<Value> {
        let page = get(&node, &format!("/api/events?{query}"));
        assert_eq!(page["complete"], true);
        page["events"].as_array().unwrap().iter().map(|event| event["kind"].clone()).collect()
    };
    assert_eq!(kinds(""), ["override_set", "node_joined"]);
    let page = get(&node, "/api/events?limit=1");
    let detail = page["events"][0]["detail"].as_str().unwrap();
    assert!(detail.starts_with("client c9: 20/d") && detail.ends_with("by kim: tests"), "{detail}");
    let cursor = page["cursor"].as_str().expect("a cursor");
    assert_eq!(kinds(&format!("limit=1&cursor={cursor}")), ["node_joined"]);
    wait_for_history(&[&node], 2, 3, 0);
    for (path, field) in [
        ("/api/history?range=7d", "range"),
        ("/api/events?cursor=x", "cursor"),
        ("/api/events?limit=0", "limit"),
    ] {
        let reply = node.get(path);
        assert_eq!((reply.status, &reply.json()["field"]), (400, &json!(field)), "{path}");
    }
    let reply = node.get("/api/history?range=7d");
    assert!(reply.json()["detail"].as_str().unwrap().contains("5m, 1h or 24h"), "{}", reply.body);
    assert_eq!(node.get("/api/history?from=1").status, 400);
    assert_eq!(node.get("/api/events?prefix=a").status, 400);
}
