//! The live view of a single node.

use serde_json::{Value, json};

use crate::live_client::LiveStream;
use crate::service::{Scratch, Service, eventually};

const POLICY: &str = "\
version: 1
rules:
  - name: api
    match: { path: /api/** }
    per: [client]
    limits: [2/h]
    next: { limits: [1/h] }
  - { name: watched, match: { path: /watched }, per: [client], limits: [1/d], mode: shadow }
";

fn with_policy() -> (Scratch, Service) {
    let scratch = Scratch::new();
    let path = scratch.write("policy.yaml", POLICY);
    let service = Service::start(&["--policy", &path, "--node-id", "alone"]);
    (scratch, service)
}

fn check(service: &Service, client: &str, path: &str) -> Value {
    let facts = json!({"client": client, "path": path, "api_key": "not to be shown", "plan": "x"});
    service.post("/check", json!({ "facts": facts }).to_string()).json()
}

/// Adds the points of an event, and returns the sum of one figure over all seconds received.
fn sum(points: &mut std::collections::BTreeMap<u64, Value>, event: &Value, name: &str) -> f64 {
    for point in event["points"].as_array().expect("points") {
        points.insert(point["t"].as_u64().expect("a time"), point.clone());
    }
    points.values().map(|point| point[name].as_f64().expect("a figure")).sum()
}

#[test]
fn frame_lists_refused_keys_with_rule_and_facts() {
    let (_scratch, service) = with_policy();
    let mut stream = LiveStream::open(&service, "");
    assert!(stream.head.contains("text/event-stream"), "{}", stream.head);
    for _ in 0..5 {
        check(&service, "c1", "/api/orders");
    }
    check(&service, "<img src=x onerror=alert(1)>", "/api/orders");
    let frame = stream.until("a refusal", |frame| frame["refused"][0]["count"] == 3);
    let refused = frame["refused"].as_array().unwrap();
    assert_eq!(refused.len(), 1, "{refused:?}");
    let mut first = refused[0].clone();
    assert!(first["last_at"].take().as_u64().unwrap() > 1_700_000_000_000);
    // Three refusals in at most ten seconds, or none in the last ten on a very slow machine.
    assert!((0.0..=0.6).contains(&first["rate"].take().as_f64().unwrap()), "{refused:?}");
    let facts = json!({"client": "c1", "path": "/api/orders"});
    let expected = json!({
        "key": "c1", "tenant": "", "rule": "api", "limit": "3600s", "count": 3, "last_at": null,
        "facts": facts, "rate": null, "overridden": false, "limit_text": "2/h",
    });
    assert_eq!(first, expected);
    assert!(!frame.to_string().contains("not to be shown"));
}

#[test]
fn points_contain_every_check_and_trial_result() {
    let (_scratch, service) = with_policy();
    let mut stream = LiveStream::open(&service, "");
    let (name, policy) = stream.next().unwrap();
    assert_eq!((&*name, &policy["rules"][0]["next"]), ("policy", &json!(["1/h"])));
    assert_eq!(policy["rules"][1]["mode"], "shadow");
    let mut points = std::collections::BTreeMap::new();
    sum(&mut points, &stream.next_of("history"), "allowed");
    for _ in 0..4 {
        check(&service, "c1", "/api/orders");
        check(&service, "c2", "/watched");
    }
    loop {
        let frame = stream.next_of("frame");
        let allowed = sum(&mut points, &frame, "allowed");
        let refused = sum(&mut points, &frame, "refused");
        assert!(allowed < 6.01 && refused < 2.01, "{allowed} {refused}");
        if allowed > 5.99 && refused > 1.99 {
            break;
        }
    }
    let of_rule = |rule: &str| {
        let figures = points.values().filter_map(|point| point["rules"][rule].as_array());
        figures.fold([0.0; 5], |mut sums, figures| {
            for (sum, figure) in sums.iter_mut().zip(figures) {
                *sum += figure.as_f64().unwrap();
            }
            sums
        })
    };
    let near = |figures: [f64; 5], expected: [f64; 5]| {
        assert!(
            figures.iter().zip(expected).all(|(figure, value)| (figure - value).abs() < 0.02),
            "{figures:?} {expected:?}"
        );
    };
    // Checks, refusals, shadow refusals, trial refusals, divergences.
    near(of_rule("api"), [4.0, 2.0, 0.0, 3.0, 0.0]);
    near(of_rule("watched"), [4.0, 0.0, 3.0, 0.0, 0.0]);
}

#[test]
fn frame_contains_node_store_and_policy() {
    let (scratch, service) = with_policy();
    let mut stream = LiveStream::open(&service, "");
    let frame = stream.next_of("frame");
    assert_eq!((&frame["scope"], &frame["node"]), (&json!("node"), &json!("alone")));
    assert_eq!(frame["store"]["kind"], "memory");
    let node = &frame["nodes"][0];
    assert_eq!(
        (&node["id"], &node["state"], &node["reporting"]),
        (&json!("alone"), &json!("Up"), &json!(true))
    );
    assert_eq!(node["address"], service.address().to_string());
    scratch.write("policy.yaml", "version: 1\nrules: []\n");
    let policy = stream.next_of("policy");
    assert_eq!(policy["rules_total"], 0);
    scratch.write("policy.yaml", "version: 7\n");
    let error = stream.next_of("policy")["error"].clone();
    assert!(error.as_str().is_some_and(|text| text.contains("version")), "{error}");
}

#[test]
fn streams_are_counted_and_end_at_shutdown() {
    let service = Service::start(&[]);
    let watchers = || {
        let metrics = service.get("/metrics").body;
        let line = metrics.lines().find(|line| line.starts_with("tollgate_live_watchers "));
        line.and_then(|line| line.split(' ').nth(1)).map(str::to_owned)
    };
    let first = LiveStream::open(&service, "");
    let mut second = LiveStream::open(&service, "");
    second.next_of("frame");
    assert_eq!(watchers().as_deref(), Some("2"));
    drop(first);
    eventually("one stream is closed", || watchers().as_deref() == Some("1"));
    let start = std::time::Instant::now();
    service.signal("TERM");
    while second.next().is_some() {}
    let (status, log) = service.stop();
    assert!(status.success(), "{log}");
    assert!(start.elapsed().as_secs() < 30, "shutdown does not wait for live streams");
}

#[test]
fn most_refused_key_is_first_among_a_thousand() {
    let (_scratch, service) = with_policy();
    let mut client = service.client();
    let zero = |key: String| json!({"key": key, "limits": [{"limit": 0}]}).to_string();
    for nth in 0..1000 {
        client.post("/check", zero(format!("rare {nth}")));
        if nth % 2 == 0 {
            client.post("/check", zero("often".to_owned()));
        }
    }
    let mut stream = LiveStream::open(&service, "");
    let frame = stream.next_of("frame");
    let refused = frame["refused"].as_array().unwrap();
    assert_eq!(refused.len(), 20);
    assert_eq!((&refused[0]["key"], &refused[0]["rule"]), (&json!("often"), &json!("inline")));
    let count = refused[0]["count"].as_u64().unwrap();
    assert!((480..=500).contains(&count), "{count}: a count may be slightly too low");
    assert_eq!(refused[0]["facts"], Value::Null);
}
