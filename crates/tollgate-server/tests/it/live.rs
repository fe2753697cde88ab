//! What is to be seen of a node that is alone.

use serde_json::{Value, json};

use crate::live_client::Watching;
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

fn ask(service: &Service, client: &str, path: &str) -> Value {
    let facts = json!({"client": client, "path": path, "api_key": "not to be shown", "plan": "x"});
    service.post("/check", json!({ "facts": facts }).to_string()).json()
}

/// The sum of a figure over all seconds that were told, each as it was told last.
fn sum(points: &mut std::collections::BTreeMap<u64, Value>, told: &Value, name: &str) -> f64 {
    for point in told["points"].as_array().expect("points") {
        points.insert(point["t"].as_u64().expect("when"), point.clone());
    }
    points.values().map(|point| point[name].as_f64().expect("a figure")).sum()
}

#[test]
fn what_is_refused_is_seen_with_its_rule_and_what_is_known_of_it() {
    let (_scratch, service) = with_policy();
    let mut watching = Watching::begin(&service, "");
    assert!(watching.head.contains("text/event-stream"), "{}", watching.head);
    for _ in 0..5 {
        ask(&service, "c1", "/api/orders");
    }
    ask(&service, "<img src=x onerror=alert(1)>", "/api/orders");
    let frame = watching.until("a refusal", |frame| frame["refused"][0]["count"] == 3);
    let refused = frame["refused"].as_array().unwrap();
    assert_eq!(refused.len(), 1, "{refused:?}");
    let mut first = refused[0].clone();
    assert!(first["last_at"].take().as_u64().unwrap() > 1_700_000_000_000);
    let facts = json!({"client": "c1", "path": "/api/orders"});
    let expected = json!({
        "key": "c1", "tenant": "", "rule": "api", "limit": "3600s", "count": 3, "last_at": null,
        "facts": facts,
    });
    assert_eq!(first, expected);
    assert!(!frame.to_string().contains("not to be shown"));
}

#[test]
fn every_check_is_in_some_second_and_rules_on_trial_tell_what_they_would_do() {
    let (_scratch, service) = with_policy();
    let mut watching = Watching::begin(&service, "");
    let (name, policy) = watching.next().unwrap();
    assert_eq!((&*name, &policy["rules"][0]["next"]), ("policy", &json!(["1/3600s"])));
    assert_eq!(policy["rules"][1]["mode"], "shadow");
    let mut points = std::collections::BTreeMap::new();
    sum(&mut points, &watching.next_of("history"), "allowed");
    for _ in 0..4 {
        ask(&service, "c1", "/api/orders");
        ask(&service, "c2", "/watched");
    }
    loop {
        let frame = watching.next_of("frame");
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
            figures.iter().zip(expected).all(|(one, other)| (one - other).abs() < 0.02),
            "{figures:?} {expected:?}"
        );
    };
    // Checked, refused; then what the shadow rule, the trial limit and the shared store would have refused.
    near(of_rule("api"), [4.0, 2.0, 0.0, 3.0, 0.0]);
    near(of_rule("watched"), [4.0, 0.0, 3.0, 0.0, 0.0]);
}

#[test]
fn a_frame_tells_of_the_node_its_store_and_its_policy() {
    let (scratch, service) = with_policy();
    let mut watching = Watching::begin(&service, "");
    let frame = watching.next_of("frame");
    assert_eq!((&frame["scope"], &frame["node"]), (&json!("node"), &json!("alone")));
    assert_eq!(frame["store"]["kind"], "memory");
    let node = &frame["nodes"][0];
    assert_eq!(
        (&node["id"], &node["state"], &node["heard"]),
        (&json!("alone"), &json!("Up"), &json!(true))
    );
    assert_eq!(node["address"], service.address().to_string());
    scratch.write("policy.yaml", "version: 1\nrules: []\n");
    let policy = watching.next_of("policy");
    assert_eq!(policy["rules_total"], 0);
    scratch.write("policy.yaml", "version: 7\n");
    let error = watching.next_of("policy")["error"].clone();
    assert!(error.as_str().is_some_and(|text| text.contains("version")), "{error}");
}

#[test]
fn watching_ends_with_the_node_and_is_counted_until_it_does() {
    let service = Service::start(&[]);
    let watchers = || {
        let metrics = service.get("/metrics").body;
        let line = metrics.lines().find(|line| line.starts_with("tollgate_live_watchers "));
        line.and_then(|line| line.split(' ').nth(1)).map(str::to_owned)
    };
    let first = Watching::begin(&service, "");
    let mut second = Watching::begin(&service, "");
    second.next_of("frame");
    assert_eq!(watchers().as_deref(), Some("2"));
    drop(first);
    eventually("one has gone", || watchers().as_deref() == Some("1"));
    let begun = std::time::Instant::now();
    service.signal("TERM");
    while second.next().is_some() {}
    let (status, log) = service.stop();
    assert!(status.success(), "{log}");
    assert!(begun.elapsed().as_secs() < 30, "nobody waits for who only watches");
}

#[test]
fn a_thousand_refused_keys_leave_the_most_refused_first() {
    let (_scratch, service) = with_policy();
    let mut client = service.client();
    let zero = |key: String| json!({"key": key, "limits": [{"limit": 0}]}).to_string();
    for nth in 0..1000 {
        client.post("/check", zero(format!("rare {nth}")));
        if nth % 2 == 0 {
            client.post("/check", zero("often".to_owned()));
        }
    }
    let mut watching = Watching::begin(&service, "");
    let frame = watching.next_of("frame");
    let refused = frame["refused"].as_array().unwrap();
    assert_eq!(refused.len(), 20);
    assert_eq!((&refused[0]["key"], &refused[0]["rule"]), (&json!("often"), &json!("inline")));
    let count = refused[0]["count"].as_u64().unwrap();
    assert!((480..=500).contains(&count), "{count}: it may be told too low, but by little");
    assert_eq!(refused[0]["facts"], Value::Null);
}
