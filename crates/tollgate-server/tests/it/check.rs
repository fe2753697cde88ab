//! `POST /check`, `/peek` and `/refund`.

use serde_json::json;

use crate::service::{Scratch, Service};

#[test]
fn default_limit_is_100_per_minute() {
    let service = Service::start(&[]);
    let mut client = service.client();
    for remaining in (0..100).rev() {
        let decision = client.post("/check", r#"{"key":"user:1"}"#).json();
        assert_eq!(decision["allowed"], true);
        assert_eq!((&decision["limit"], &decision["remaining"]), (&json!(100), &json!(remaining)));
    }
    let refused = client.post("/check", r#"{"key":"user:1"}"#);
    assert_eq!(refused.status, 200, "a refusal is a successful decision");
    let refused = refused.json();
    assert_eq!((&refused["allowed"], &refused["verdict"]), (&json!(false), &json!("deny")));
    assert_eq!(service.check("user:2")["remaining"], 99);
}

#[test]
fn decision_has_every_field_of_the_contract() {
    let service = Service::start(&[]);
    let reply = service.post("/check", r#"{"key":"user:1"}"#);
    assert_eq!(reply.header("content-type"), Some("application/json"));
    let mut decision = reply.json();
    let reset = decision["reset_after_ms"].take();
    assert!((59_000..=60_000).contains(&reset.as_u64().unwrap()), "{reset}");
    decision["limits"][0]["reset_after_ms"].take();
    let expected = json!({
        "allowed": true, "verdict": "allow", "rule": "default", "limit_name": "60s", "key": "user:1",
        "limit": 100, "count": 1, "remaining": 99,
        "retry_after": null, "retry_after_ms": null, "reset_after_ms": null,
        "source": "store", "degraded": false,
        "limits": [{
            "rule": "default", "name": "60s", "unit": "requests", "algorithm": "sliding_window", "limit": 100,
            "window_ms": 60000, "count": 1, "remaining": 99, "reset_after_ms": null,
            "retry_after_ms": null, "mode": "enforce", "allowed": true
        }]
    });
    assert_eq!(decision, expected);
}

#[test]
fn refusal_has_retry_after() {
    let service = Service::start(&[]);
    let body = r#"{"key":"k","cost":10,"limits":[{"limit":10,"window_ms":60000}]}"#;
    assert_eq!(service.post("/check", body).json()["remaining"], 0);
    let refused =
        service.post("/check", r#"{"key":"k","limits":[{"limit":10,"window_ms":60000}]}"#);
    let refused = refused.json();
    let ms = refused["retry_after_ms"].as_u64().unwrap();
    assert!((1..=6000).contains(&ms), "a token of 10/min refills within 6 s: {ms}");
    let seconds = refused["retry_after"].as_f64().unwrap();
    let millis = u32::try_from(ms).map(f64::from).unwrap();
    assert_eq!((seconds * 1000.0).round(), millis);
    assert_eq!((&refused["rule"], &refused["burst"]), (&json!("inline"), &json!(10)));
    assert_eq!(refused["limits"][0]["algorithm"], "token_bucket");
}

#[test]
fn cost_above_the_limit_is_never_and_takes_nothing() {
    let service = Service::start(&[]);
    let decision = service.post("/check", r#"{"key":"k","cost":101}"#).json();
    assert_eq!((&decision["verdict"], &decision["allowed"]), (&json!("never"), &json!(false)));
    assert_eq!(
        (&decision["retry_after"], &decision["retry_after_ms"]),
        (&json!(null), &json!(null))
    );
    assert_eq!(service.check("k")["remaining"], 99);
}

#[test]
fn peek_takes_nothing_and_refund_returns_cost() {
    let service = Service::start(&[]);
    let mut client = service.client();
    client.post("/check", r#"{"key":"k","cost":30}"#);
    assert_eq!(client.post("/peek", r#"{"key":"k","cost":71}"#).json()["allowed"], false);
    assert_eq!(client.post("/peek", r#"{"key":"k"}"#).json()["remaining"], 70);
    assert_eq!(client.post("/check", r#"{"key":"k","cost":0}"#).json()["remaining"], 70);
    assert_eq!(client.post("/refund", r#"{"key":"k","cost":10}"#).json()["remaining"], 80);
    assert_eq!(client.post("/refund", r#"{"key":"k","cost":500}"#).json()["remaining"], 100);
}

#[test]
fn takes_all_limits_or_none() {
    let service = Service::start(&[]);
    let check = |cost: u64| {
        let limits = json!([
            {"name": "minute", "limit": 10, "window_ms": 60_000},
            {"name": "hour", "algorithm": "fixed_window", "limit": 100, "window_ms": 3_600_000},
        ]);
        let body = json!({"key": "c", "cost": cost, "limits": limits});
        service.post("/check", body.to_string()).json()
    };
    assert_eq!(check(10)["allowed"], true);
    let refused = check(1);
    assert_eq!(refused["allowed"], false);
    assert_eq!(refused["limits"][0]["allowed"], false);
    assert_eq!(refused["limits"][1]["remaining"], 90, "the hourly limit was not charged");
}

#[test]
fn inline_limits_support_every_algorithm() {
    let service = Service::start(&[]);
    for (limit, capacity) in [
        (json!({"algorithm": "token_bucket", "limit": 10, "window_ms": 60_000, "burst": 5}), 5),
        (json!({"algorithm": "sliding_window", "limit": 10, "window_ms": 60_000}), 10),
        (json!({"algorithm": "sliding_counter", "limit": 10, "window_ms": 60_000}), 10),
        (json!({"algorithm": "fixed_window", "limit": 10, "window_ms": 60_000}), 10),
        (
            json!({"algorithm": "fixed_window", "limit": 10, "align": "year", "tz": "Asia/Tokyo"}),
            10,
        ),
        (json!({"algorithm": "concurrency", "limit": 10, "ttl_ms": 60_000}), 10),
    ] {
        let check = |cost: u64| {
            let body = json!({"key": limit.to_string(), "cost": cost, "limits": [limit]});
            service.post("/check", body.to_string()).json()
        };
        assert_eq!(check(capacity)["remaining"], 0, "{limit}");
        assert_eq!(check(1)["verdict"], "deny", "{limit}");
    }
    let block = json!({"key": "k", "limits": [{"limit": 0}]});
    let decision = service.post("/check", block.to_string()).json();
    assert_eq!((&decision["verdict"], &decision["limit"]), (&json!("never"), &json!(0)));
}

#[test]
fn every_decision_names_the_deciding_limit() {
    let service = Service::start(&[]);
    let mut client = service.client();
    let limits = json!([
        {"name": "minute", "limit": 5, "window_ms": 60_000},
        {"name": "hour", "algorithm": "fixed_window", "limit": 2, "window_ms": 3_600_000},
    ]);
    let body = |cost: u64| json!({"key": "c", "cost": cost, "limits": limits}).to_string();
    for (path, cost, verdict) in [
        ("/check", 2, "allow"),
        ("/check", 1, "deny"),
        ("/peek", 1, "deny"),
        ("/peek", 4, "never"),
        ("/refund", 1, "allow"),
        ("/peek", 0, "allow"),
    ] {
        let decision = client.post(path, body(cost)).json();
        assert_eq!(
            (&decision["verdict"], &decision["limit_name"]),
            (&json!(verdict), &json!("hour"))
        );
    }
    let explained = client.post("/explain", body(1)).json();
    assert_eq!(explained["answer"]["limit_name"], "hour", "{explained}");
    let batch = format!(r#"{{"requests":[{},{{"key":"c"}}]}}"#, body(1));
    let results = client.post("/check/batch", batch).json()["results"].clone();
    let names = (&results[0]["limit_name"], &results[1]["limit_name"]);
    assert_eq!(names, (&json!("hour"), &json!("60s")));
}

#[test]
fn inline_limits_accept_rates() {
    let service = Service::start(&[]);
    let body = json!({"key": "c", "limits": [
        "10/min", "100/h", {"algorithm": "fixed_window", "limit": 20, "window_ms": 60_000}, "5/250ms",
    ]});
    let decision = service.post("/check", body.to_string()).json();
    let limits: Vec<(&str, &str, u64, u64)> = decision["limits"]
        .as_array()
        .unwrap()
        .iter()
        .map(|limit| {
            let text = |field: &str| limit[field].as_str().unwrap();
            let number = |field: &str| limit[field].as_u64().unwrap();
            (text("name"), text("algorithm"), number("limit"), number("remaining"))
        })
        .collect();
    let expected = [
        ("60s", "token_bucket", 10, 9),
        ("3600s", "token_bucket", 100, 99),
        ("60s#2", "fixed_window", 20, 19),
        ("250ms", "token_bucket", 5, 4),
    ];
    assert_eq!(limits, expected);
    let same = json!({"key": "c", "limits": [{"limit": 10, "window_ms": 60_000}]});
    let peeked = service.post("/peek", same.to_string()).json();
    assert_eq!(peeked["remaining"], 9, "a rate and its object share a counter");
    let blocked = service.post("/check", r#"{"key":"c","limits":["0"]}"#).json();
    assert_eq!((&blocked["verdict"], &blocked["limit"]), (&json!("never"), &json!(0)));
}

#[test]
fn short_form_is_one_inline_limit() {
    let service = Service::start(&[]);
    let short = json!({"key": "user:1", "limit": 10, "window_ms": 60_000});
    let long = json!({"key": "user:1", "limits": [{"limit": 10, "window_ms": 60_000}]});
    for (body, remaining) in [(&short, 9), (&long, 8), (&short, 7)] {
        let decision = service.post("/check", body.to_string()).json();
        assert_eq!(decision["remaining"], remaining, "{body}");
        assert_eq!((&decision["rule"], &decision["limit_name"]), (&json!("inline"), &json!("60s")));
    }
    let batch = json!({"requests": [&short, {"facts": {"client": "user:1"}, "limit": 10, "window_ms": 60_000}]});
    let results = service.post("/check/batch", batch.to_string()).json()["results"].clone();
    assert_eq!((&results[0]["remaining"], &results[1]["remaining"]), (&json!(6), &json!(5)));
    let full = json!({
        "key": "user:2", "cost": 2, "limit": 10, "window_ms": 60_000, "burst": 30, "name": "api",
        "algorithm": "token_bucket",
    });
    let decision = service.post("/check", full.to_string()).json();
    assert_eq!((&decision["limit_name"], &decision["burst"]), (&json!("api"), &json!(30)));
    assert_eq!(decision["remaining"], 28);
    let window =
        json!({"key": "user:3", "limit": 3, "window_ms": 60_000, "algorithm": "sliding_window"});
    let decision = service.post("/explain", window.to_string()).json();
    assert_eq!(decision["takes"][0]["algorithm"], "sliding_window");
}

#[test]
fn policy_decides_by_facts() {
    let scratch = Scratch::new();
    let policy = scratch.write(
        "policy.yaml",
        "version: 1\n\
         rules:\n\
         \x20 - { name: jobs, match: { tier: internal }, unlimited: true }\n\
         \x20 - { name: search, match: { method: GET, path: /search/** }, per: [user], \
         limits: [{ rate: 2/min, algorithm: token_bucket }] }\n\
         \x20 - { name: blocked, match: { ip: 10.0.0.0/8 }, limits: [0] }\n",
    );
    let service = Service::start(&["--policy", &policy]);
    let check = |facts: serde_json::Value| {
        service.post("/check", json!({ "facts": facts }).to_string()).json()
    };
    let job = check(json!({"tier": "internal", "client": "c"}));
    assert_eq!((&job["allowed"], &job["rule"]), (&json!(true), &json!("jobs")));
    assert_eq!(job.get("limit_name"), Some(&json!(null)), "unlimited");
    assert_eq!(
        (&job["limit"], &job["count"], &job["limits"]),
        (&json!(null), &json!(null), &json!([]))
    );
    let search = json!({"method": "get", "path": "/search/a?b", "user": "u1"});
    assert_eq!(check(search.clone())["remaining"], 1);
    assert_eq!(check(search.clone())["key"], "u1");
    let refused = check(search);
    assert_eq!((&refused["allowed"], &refused["rule"]), (&json!(false), &json!("search")));
    assert_eq!(check(json!({"ip": "10.1.2.3"}))["verdict"], "never");
    assert_eq!(check(json!({"ip": "11.1.2.3"}))["rule"], "default");
}

#[test]
fn tenants_and_unusual_keys_have_separate_counters() {
    let service = Service::start(&[]);
    let mut client = service.client();
    let bodies = [
        json!({"key": "a:b"}),
        json!({"key": "a"}),
        json!({"key": "b", "tenant": "a"}),
        json!({"key": "{a}"}),
        json!({"key": "%2D"}),
        json!({"key": "a\r\nb"}),
        json!({"key": "\u{0}"}),
        json!({"key": "ä"}),
        json!({"key": "a\u{308}"}),
        json!({"key": " "}),
        json!({"facts": {"client": "a:b", "tenant": "t"}}),
    ];
    for body in bodies {
        let decision = client.post("/check", body.to_string()).json();
        assert_eq!(decision["remaining"], 99, "{body}");
    }
}
