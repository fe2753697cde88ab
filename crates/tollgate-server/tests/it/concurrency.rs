//! Concurrency limits over HTTP: slots and permits.

use std::time::{Duration, Instant};

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::client::Client;
use crate::service::{Scratch, Service, eventually};

const MINUTE_MS: u64 = 60_000;

fn slots(key: &str, limit: u64, ttl_ms: u64) -> String {
    let slots = json!({"algorithm": "concurrency", "limit": limit, "ttl_ms": ttl_ms});
    json!({"key": key, "limits": [slots]}).to_string()
}

fn permit_of(decision: &Value) -> &str {
    decision["permit"].as_str().unwrap_or_else(|| panic!("no permit in {decision}"))
}

fn parse_time(value: &Value) -> Timestamp {
    let text = value.as_str().unwrap_or_else(|| panic!("no time: {value}"));
    text.parse().unwrap_or_else(|error| panic!("{text} is not RFC 3339: {error}"))
}

fn post_permit(client: &mut Client, path: &str, permit: &str) -> Value {
    let reply = client.post(path, json!({ "permit": permit }).to_string());
    assert_eq!(reply.status, 200, "{}", reply.body);
    reply.json()
}

#[test]
fn take_returns_permit_and_expiry() {
    let service = Service::start(&[]);
    let before = Timestamp::now();
    let decision = service.post("/check", slots("jobs", 2, MINUTE_MS)).json();
    let after = Timestamp::now();
    assert_eq!((&decision["allowed"], &decision["remaining"]), (&json!(true), &json!(1)));
    assert!(permit_of(&decision).ends_with("{:jobs}"), "{decision}");
    let ttl = Duration::from_millis(MINUTE_MS);
    let expires = parse_time(&decision["expires_at"]);
    // The server and the test read the wall clock separately: tolerate a millisecond on each side.
    let tolerance = Duration::from_millis(1);
    let range = before + ttl - tolerance..=after + ttl + tolerance;
    assert!(range.contains(&expires), "{decision}");
    let limit = &decision["limits"][0];
    assert_eq!((&limit["algorithm"], &limit["ttl_ms"]), (&json!("concurrency"), &json!(MINUTE_MS)));
    assert_eq!(limit["window_ms"], json!(null));
}

#[test]
fn refusal_waits_for_the_first_slot_to_expire() {
    let service = Service::start(&[]);
    let mut client = service.client();
    for remaining in [2, 1, 0] {
        let decision = client.post("/check", slots("jobs", 3, MINUTE_MS)).json();
        assert_eq!(decision["remaining"], remaining);
    }
    let refused = client.post("/check", slots("jobs", 3, MINUTE_MS)).json();
    assert_eq!((&refused["verdict"], &refused["count"]), (&json!("deny"), &json!(3)));
    let wait = refused["retry_after_ms"].as_u64().unwrap();
    assert!((1..=MINUTE_MS).contains(&wait), "{refused}");
    assert_eq!((refused.get("permit"), refused.get("expires_at")), (None, None));
    let other = client.post("/check", slots("other", 3, MINUTE_MS)).json();
    assert_eq!(other["remaining"], 2, "each key has its own slots");
}

#[test]
fn release_frees_a_slot_exactly_once() {
    let service = Service::start(&[]);
    let mut client = service.client();
    let held = client.post("/check", slots("jobs", 1, MINUTE_MS)).json();
    assert_eq!(client.post("/check", slots("jobs", 1, MINUTE_MS)).json()["allowed"], false);
    assert_eq!(post_permit(&mut client, "/release", permit_of(&held)), json!({"released": true}));
    assert_eq!(post_permit(&mut client, "/release", permit_of(&held)), json!({"released": false}));
    let next = client.post("/check", slots("jobs", 1, MINUTE_MS)).json();
    assert_eq!(next["allowed"], true);
    assert_ne!(permit_of(&next), permit_of(&held), "each take has its own permit");
    assert_eq!(post_permit(&mut client, "/release", permit_of(&held)), json!({"released": false}));
    assert_eq!(client.post("/peek", slots("jobs", 1, MINUTE_MS)).json()["remaining"], 0);
}

#[test]
fn release_frees_all_slots_of_a_take() {
    let service = Service::start(&[]);
    let mut client = service.client();
    let mut body: Value = serde_json::from_str(&slots("jobs", 5, MINUTE_MS)).unwrap();
    body["cost"] = json!(3);
    let held = client.post("/check", body.to_string()).json();
    assert_eq!(held["remaining"], 2);
    assert_eq!(client.post("/check", body.to_string()).json()["verdict"], "deny");
    assert_eq!(post_permit(&mut client, "/release", permit_of(&held))["released"], true);
    assert_eq!(client.post("/peek", body.to_string()).json()["remaining"], 5);
}

#[test]
fn renew_extends_the_expiry() {
    let service = Service::start(&[]);
    let mut client = service.client();
    let held = client.post("/check", slots("jobs", 1, MINUTE_MS)).json();
    let renewed = post_permit(&mut client, "/renew", permit_of(&held));
    assert_eq!(renewed["renewed"], true);
    assert!(
        parse_time(&renewed["expires_at"]) > parse_time(&held["expires_at"]),
        "{held} {renewed}"
    );
}

#[test]
fn renewed_slot_outlives_its_first_ttl() {
    let service = Service::start(&[]);
    let mut client = service.client();
    let ttl = Duration::from_secs(3);
    let start = Instant::now();
    let held = client.post("/check", slots("jobs", 1, 3000)).json();
    eventually("the first ttl is over", || {
        assert_eq!(post_permit(&mut client, "/renew", permit_of(&held))["renewed"], true);
        start.elapsed() > ttl + Duration::from_millis(500)
    });
    assert_eq!(client.post("/check", slots("jobs", 1, 3000)).json()["allowed"], false);
}

#[test]
fn expired_permit_cannot_be_renewed_or_released() {
    let service = Service::start(&[]);
    let mut client = service.client();
    let held = client.post("/check", slots("jobs", 1, 40)).json();
    eventually("the slot expires", || {
        client.post("/peek", slots("jobs", 1, 40)).json()["remaining"] == 1
    });
    let not_renewed = json!({"renewed": false, "expires_at": null});
    assert_eq!(post_permit(&mut client, "/renew", permit_of(&held)), not_renewed);
    assert_eq!(post_permit(&mut client, "/release", permit_of(&held)), json!({"released": false}));
}

#[test]
fn released_permit_cannot_be_renewed() {
    let service = Service::start(&[]);
    let mut client = service.client();
    let held = client.post("/check", slots("jobs", 1, MINUTE_MS)).json();
    post_permit(&mut client, "/release", permit_of(&held));
    let not_renewed = json!({"renewed": false, "expires_at": null});
    assert_eq!(post_permit(&mut client, "/renew", permit_of(&held)), not_renewed);
    assert_eq!(client.post("/peek", slots("jobs", 1, MINUTE_MS)).json()["remaining"], 1);
}

#[test]
fn forged_permit_releases_nothing() {
    let service = Service::start(&[]);
    let mut client = service.client();
    let held = client.post("/check", slots("jobs", 1, MINUTE_MS)).json();
    let permit = permit_of(&held);
    let (id, key) = permit.split_at(32);
    let forged = [
        format!("{:032x}{key}", 1),
        format!("{id}{}", key.replace("jobs", "other")),
        format!("{id}{}", key.replace("concurrency", "never-seen")),
    ];
    for forged in forged {
        let decision = post_permit(&mut client, "/release", &forged);
        assert_eq!(decision, json!({"released": false}), "{forged}");
        let decision = post_permit(&mut client, "/renew", &forged);
        assert_eq!(decision, json!({"renewed": false, "expires_at": null}), "{forged}");
    }
    assert_eq!(client.post("/peek", slots("jobs", 1, MINUTE_MS)).json()["remaining"], 0);
    assert_eq!(post_permit(&mut client, "/release", permit)["released"], true);
}

#[test]
fn malformed_permit_is_a_problem_naming_the_field() {
    let service = Service::start(&[]);
    let mut client = service.client();
    let held = client.post("/check", slots("jobs", 1, MINUTE_MS)).json();
    let permit = permit_of(&held).to_owned();
    let zero = format!("{:032}{}", 0, &permit[32..]);
    let bucket = format!("{}@binline/60s{{:jobs}}", &permit[..32]);
    let long = format!("{permit}{}", "x".repeat(40_000));
    let malformed = [
        "",
        "l1",
        "not a permit",
        &permit[..32],
        &permit[..31],
        &permit[..permit.len() - 1],
        &zero,
        &bucket,
        &long,
        &permit.to_uppercase(),
        &format!(" {permit}"),
        &format!("{permit}{permit}"),
        &permit.repeat(2),
        &format!("{permit}\u{0}"),
        "\u{e4}".repeat(16).as_str(),
    ]
    .map(|permit| json!({ "permit": permit }));
    let other_types = [json!({"permit": 7}), json!({"permit": null})];
    for body in malformed.into_iter().chain(other_types) {
        for path in ["/release", "/renew"] {
            let reply = client.post(path, body.to_string());
            assert_eq!(reply.status, 400, "{path} {body}: {}", reply.body);
            assert_eq!(reply.json()["field"], "permit", "{path} {body}: {}", reply.body);
        }
    }
    for body in [json!({}), json!([]), json!({"permit": permit, "key": "jobs"})] {
        assert_eq!(client.post("/release", body.to_string()).status, 400, "{body}");
    }
    assert_eq!(client.post("/peek", slots("jobs", 1, MINUTE_MS)).json()["remaining"], 0);
}

#[test]
fn every_issued_permit_is_accepted() {
    let service = Service::start(&[]);
    let mut client = service.client();
    let limits: Vec<Value> = (0..16)
        .map(|number| json!({"name": format!("{number:064}"), "algorithm": "concurrency", "limit": 1}))
        .collect();
    for letter in ["x", "/", "\u{1}", "ä"] {
        let long = letter.repeat(1024 / letter.len());
        for tenant in ["t", &long] {
            let body = json!({"key": long, "tenant": tenant, "limits": limits}).to_string();
            let held = client.post("/check", &body).json();
            let permit = json!({"permit": permit_of(&held)}).to_string();
            for (path, done) in [("/renew", "renewed"), ("/release", "released")] {
                let reply = client.post(path, &permit);
                let context = format!("{path}, permit of {} bytes: {}", permit.len(), reply.body);
                assert_eq!(reply.status, 200, "{context}");
                assert_eq!(reply.json()[done], true, "{context}");
            }
        }
    }
}

#[test]
fn peek_and_refund_return_no_permit() {
    let service = Service::start(&[]);
    let mut client = service.client();
    client.post("/check", slots("jobs", 2, MINUTE_MS));
    let mut zero_cost: Value = serde_json::from_str(&slots("jobs", 2, MINUTE_MS)).unwrap();
    zero_cost["cost"] = json!(0);
    for (path, body) in [
        ("/peek", slots("jobs", 2, MINUTE_MS)),
        ("/refund", slots("jobs", 2, MINUTE_MS)),
        ("/check", zero_cost.to_string()),
    ] {
        let decision = client.post(path, body).json();
        assert_eq!(decision["remaining"], 1, "{path}: only a release frees slots");
        assert_eq!((decision.get("permit"), decision.get("expires_at")), (None, None), "{path}");
    }
    let explained = client.post("/explain", slots("jobs", 2, MINUTE_MS)).json();
    assert_eq!(explained["decision"].get("permit"), None);
}

#[test]
fn takes_rate_and_slots_together_or_not_at_all() {
    let service = Service::start(&[]);
    let mut client = service.client();
    let body = json!({"key": "c", "limits": [
        {"name": "rate", "algorithm": "fixed_window", "limit": 3, "window_ms": 3_600_000},
        {"name": "flight", "algorithm": "concurrency", "limit": 2, "ttl_ms": MINUTE_MS},
    ]})
    .to_string();
    let remaining = |decision: &Value| {
        [&decision["limits"][0]["remaining"], &decision["limits"][1]["remaining"]]
            .map(|remaining| remaining.as_u64().unwrap())
    };
    let first = client.post("/check", &body).json();
    assert_eq!(remaining(&first), [2, 1]);
    assert_eq!(remaining(&client.post("/check", &body).json()), [1, 0]);
    let refused = client.post("/check", &body).json();
    assert_eq!((&refused["allowed"], refused.get("permit")), (&json!(false), None));
    assert_eq!(remaining(&refused), [1, 0], "without a slot the rate is not charged");
    assert!(refused["retry_after_ms"].as_u64().unwrap() <= MINUTE_MS);
    post_permit(&mut client, "/release", permit_of(&first));
    assert_eq!(
        remaining(&client.post("/peek", &body).json()),
        [1, 1],
        "a release does not refund the rate"
    );
    let third = client.post("/check", &body).json();
    assert_eq!(remaining(&third), [0, 0]);
    post_permit(&mut client, "/release", permit_of(&third));
    let refused = client.post("/check", &body).json();
    assert_eq!((&refused["allowed"], refused.get("permit")), (&json!(false), None));
    assert_eq!(remaining(&refused), [0, 1], "without rate no slot is held");
}

#[test]
fn one_permit_holds_the_slots_of_all_rules() {
    let scratch = Scratch::new();
    let policy = scratch.write(
        "policy.yaml",
        "version: 1\n\
         rules:\n\
         \x20 - { name: everyone, per: [], limits: [{ concurrency: 3, ttl: 1h }], continue: true }\n\
         \x20 - { name: exports, match: { path: /export }, per: [user], \
         limits: [{ concurrency: 2, ttl: 30s, name: flight }] }\n",
    );
    let service = Service::start(&["--policy", &policy]);
    let mut client = service.client();
    let mut check = |user: &str| {
        let facts = json!({"path": "/export", "user": user});
        client.post("/check", json!({ "facts": facts }).to_string()).json()
    };
    let first = check("u1");
    assert_eq!((&first["rule"], &first["key"]), (&json!("exports"), &json!("u1")));
    let wait = parse_time(&first["expires_at"]).duration_since(Timestamp::now());
    assert!(wait.as_secs() <= 30, "expiry of the first slot: {first}");
    check("u1");
    let refused = check("u1");
    assert_eq!((&refused["allowed"], &refused["rule"]), (&json!(false), &json!("exports")));
    check("u2");
    let refused = check("u2");
    assert_eq!((&refused["allowed"], &refused["rule"]), (&json!(false), &json!("everyone")));
    assert_eq!(refused["key"], "*");
    let mut other = service.client();
    assert_eq!(post_permit(&mut other, "/release", permit_of(&first))["released"], true);
    let mut check = |user: &str| {
        let facts = json!({"path": "/export", "user": user});
        other.post("/check", json!({ "facts": facts }).to_string()).json()
    };
    assert_eq!(check("u1")["allowed"], true, "the slots of both rules were released");
}

#[test]
fn each_batch_item_has_its_own_permit() {
    let service = Service::start(&[]);
    let mut client = service.client();
    let item = slots("jobs", 2, MINUTE_MS);
    let batch = format!(r#"{{"requests":[{item},{item},{item}]}}"#);
    let results = client.post("/check/batch", batch).json()["results"].clone();
    assert_ne!(permit_of(&results[0]), permit_of(&results[1]));
    assert_eq!((&results[2]["allowed"], results[2].get("permit")), (&json!(false), None));
    for result in [&results[0], &results[1]] {
        assert_eq!(post_permit(&mut client, "/release", permit_of(result))["released"], true);
    }
    assert_eq!(client.post("/peek", item).json()["remaining"], 2);
}

#[test]
fn never_exceeds_the_slots_under_load() {
    use std::sync::atomic::{AtomicU64, Ordering};
    let service = Service::start(&[]);
    let (in_flight, held) = (AtomicU64::new(0), AtomicU64::new(0));
    std::thread::scope(|threads| {
        for _ in 0..8 {
            threads.spawn(|| {
                let mut client = service.client();
                for _ in 0..300 {
                    let decision = client.post("/check", slots("shared", 3, MINUTE_MS)).json();
                    if decision["allowed"] == true {
                        held.fetch_add(1, Ordering::SeqCst);
                        assert!(in_flight.fetch_add(1, Ordering::SeqCst) < 3, "a fourth in flight");
                        in_flight.fetch_sub(1, Ordering::SeqCst);
                        let released = post_permit(&mut client, "/release", permit_of(&decision));
                        assert_eq!(released["released"], true);
                    }
                }
            });
        }
    });
    assert!(held.load(Ordering::SeqCst) > 0);
    assert_eq!(service.post("/peek", slots("shared", 3, MINUTE_MS)).json()["remaining"], 3);
}
