//! Concurrency limits over HTTP: slots, and the permits that hold them.

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

fn permit_of(answer: &Value) -> &str {
    answer["permit"].as_str().unwrap_or_else(|| panic!("no permit in {answer}"))
}

fn moment(value: &Value) -> Timestamp {
    let text = value.as_str().unwrap_or_else(|| panic!("no time: {value}"));
    text.parse().unwrap_or_else(|error| panic!("{text} is not RFC 3339: {error}"))
}

fn ask_of_permit(client: &mut Client, path: &str, permit: &str) -> Value {
    let reply = client.post(path, json!({ "permit": permit }).to_string());
    assert_eq!(reply.status, 200, "{}", reply.body);
    reply.json()
}

#[test]
fn a_slot_comes_with_a_permit_and_its_expiry() {
    let service = Service::start(&[]);
    let before = Timestamp::now();
    let answer = service.post("/check", slots("jobs", 2, MINUTE_MS)).json();
    let after = Timestamp::now();
    assert_eq!((&answer["allowed"], &answer["remaining"]), (&json!(true), &json!(1)));
    assert!(permit_of(&answer).ends_with("{:jobs}"), "{answer}");
    let ttl = Duration::from_millis(MINUTE_MS);
    let expires = moment(&answer["expires_at"]);
    // Wall clocks are read apart by the service and by us: a millisecond of doubt on each side.
    let doubt = Duration::from_millis(1);
    assert!(expires >= before + ttl - doubt && expires <= after + ttl + doubt, "{answer}");
    let limit = &answer["limits"][0];
    assert_eq!((&limit["algorithm"], &limit["ttl_ms"]), (&json!("concurrency"), &json!(MINUTE_MS)));
    assert_eq!(limit["window_ms"], json!(null));
}

#[test]
fn when_all_slots_are_held_the_wait_is_until_the_first_returns() {
    let service = Service::start(&[]);
    let mut client = service.client();
    for left in [2, 1, 0] {
        assert_eq!(client.post("/check", slots("jobs", 3, MINUTE_MS)).json()["remaining"], left);
    }
    let refused = client.post("/check", slots("jobs", 3, MINUTE_MS)).json();
    assert_eq!((&refused["verdict"], &refused["count"]), (&json!("deny"), &json!(3)));
    let wait = refused["retry_after_ms"].as_u64().unwrap();
    assert!((1..=MINUTE_MS).contains(&wait), "{refused}");
    assert_eq!((refused.get("permit"), refused.get("expires_at")), (None, None));
    let other = client.post("/check", slots("other", 3, MINUTE_MS)).json();
    assert_eq!(other["remaining"], 2, "another key has slots of its own");
}

#[test]
fn a_release_frees_at_once_and_only_once() {
    let service = Service::start(&[]);
    let mut client = service.client();
    let held = client.post("/check", slots("jobs", 1, MINUTE_MS)).json();
    assert_eq!(client.post("/check", slots("jobs", 1, MINUTE_MS)).json()["allowed"], false);
    assert_eq!(ask_of_permit(&mut client, "/release", permit_of(&held)), json!({"released": true}));
    assert_eq!(
        ask_of_permit(&mut client, "/release", permit_of(&held)),
        json!({"released": false})
    );
    let next = client.post("/check", slots("jobs", 1, MINUTE_MS)).json();
    assert_eq!(next["allowed"], true);
    assert_ne!(permit_of(&next), permit_of(&held), "every take has a permit of its own");
    assert_eq!(
        ask_of_permit(&mut client, "/release", permit_of(&held)),
        json!({"released": false})
    );
    assert_eq!(client.post("/peek", slots("jobs", 1, MINUTE_MS)).json()["remaining"], 0);
}

#[test]
fn a_take_of_several_slots_is_released_whole() {
    let service = Service::start(&[]);
    let mut client = service.client();
    let mut body: Value = serde_json::from_str(&slots("jobs", 5, MINUTE_MS)).unwrap();
    body["cost"] = json!(3);
    let held = client.post("/check", body.to_string()).json();
    assert_eq!(held["remaining"], 2);
    assert_eq!(client.post("/check", body.to_string()).json()["verdict"], "deny");
    assert_eq!(ask_of_permit(&mut client, "/release", permit_of(&held))["released"], true);
    assert_eq!(client.post("/peek", body.to_string()).json()["remaining"], 5);
}

#[test]
fn a_renewal_puts_the_expiry_off() {
    let service = Service::start(&[]);
    let mut client = service.client();
    let held = client.post("/check", slots("jobs", 1, MINUTE_MS)).json();
    let renewed = ask_of_permit(&mut client, "/renew", permit_of(&held));
    assert_eq!(renewed["renewed"], true);
    assert!(moment(&renewed["expires_at"]) > moment(&held["expires_at"]), "{held} {renewed}");
}

#[test]
fn a_slot_that_is_renewed_outlives_its_time() {
    let service = Service::start(&[]);
    let mut client = service.client();
    let ttl = Duration::from_secs(3);
    let began = Instant::now();
    let held = client.post("/check", slots("jobs", 1, 3000)).json();
    eventually("the first ttl is over", || {
        assert_eq!(ask_of_permit(&mut client, "/renew", permit_of(&held))["renewed"], true);
        began.elapsed() > ttl + Duration::from_millis(500)
    });
    assert_eq!(client.post("/check", slots("jobs", 1, 3000)).json()["allowed"], false);
}

#[test]
fn what_has_expired_cannot_be_renewed_or_released() {
    let service = Service::start(&[]);
    let mut client = service.client();
    let held = client.post("/check", slots("jobs", 1, 40)).json();
    eventually("the slot returns by itself", || {
        client.post("/peek", slots("jobs", 1, 40)).json()["remaining"] == 1
    });
    let gone = json!({"renewed": false, "expires_at": null});
    assert_eq!(ask_of_permit(&mut client, "/renew", permit_of(&held)), gone);
    assert_eq!(
        ask_of_permit(&mut client, "/release", permit_of(&held)),
        json!({"released": false})
    );
}

#[test]
fn what_was_released_cannot_be_renewed() {
    let service = Service::start(&[]);
    let mut client = service.client();
    let held = client.post("/check", slots("jobs", 1, MINUTE_MS)).json();
    ask_of_permit(&mut client, "/release", permit_of(&held));
    let gone = json!({"renewed": false, "expires_at": null});
    assert_eq!(ask_of_permit(&mut client, "/renew", permit_of(&held)), gone);
    assert_eq!(client.post("/peek", slots("jobs", 1, MINUTE_MS)).json()["remaining"], 1);
}

#[test]
fn a_forged_permit_releases_nothing() {
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
        let answer = ask_of_permit(&mut client, "/release", &forged);
        assert_eq!(answer, json!({"released": false}), "{forged}");
        let answer = ask_of_permit(&mut client, "/renew", &forged);
        assert_eq!(answer, json!({"renewed": false, "expires_at": null}), "{forged}");
    }
    assert_eq!(client.post("/peek", slots("jobs", 1, MINUTE_MS)).json()["remaining"], 0);
    assert_eq!(ask_of_permit(&mut client, "/release", permit)["released"], true);
}

#[test]
fn a_malformed_permit_is_a_problem_that_names_it() {
    let service = Service::start(&[]);
    let mut client = service.client();
    let held = client.post("/check", slots("jobs", 1, MINUTE_MS)).json();
    let permit = permit_of(&held).to_owned();
    let zero = format!("{:032}{}", 0, &permit[32..]);
    let bucket = format!("{}@binline/60s{{:jobs}}", &permit[..32]);
    let long = format!("{permit}{}", "x".repeat(40_000));
    let wrong = [
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
    let wrong = wrong.into_iter().chain([json!({"permit": 7}), json!({"permit": null})]);
    for body in wrong {
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
fn every_permit_that_is_given_can_be_given_back() {
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
                let shown = format!("{path} of a permit of {} bytes: {}", permit.len(), reply.body);
                assert_eq!(reply.status, 200, "{shown}");
                assert_eq!(reply.json()[done], true, "{shown}");
            }
        }
    }
}

#[test]
fn peeks_and_refunds_give_no_permit() {
    let service = Service::start(&[]);
    let mut client = service.client();
    client.post("/check", slots("jobs", 2, MINUTE_MS));
    let mut nothing: Value = serde_json::from_str(&slots("jobs", 2, MINUTE_MS)).unwrap();
    nothing["cost"] = json!(0);
    for (path, body) in [
        ("/peek", slots("jobs", 2, MINUTE_MS)),
        ("/refund", slots("jobs", 2, MINUTE_MS)),
        ("/check", nothing.to_string()),
    ] {
        let answer = client.post(path, body).json();
        assert_eq!(answer["remaining"], 1, "{path}: only a permit gives slots back");
        assert_eq!((answer.get("permit"), answer.get("expires_at")), (None, None), "{path}");
    }
    let explained = client.post("/explain", slots("jobs", 2, MINUTE_MS)).json();
    assert_eq!(explained["answer"].get("permit"), None);
}

#[test]
fn a_bucket_and_slots_are_taken_together_or_not_at_all() {
    let service = Service::start(&[]);
    let mut client = service.client();
    let body = json!({"key": "c", "limits": [
        {"name": "rate", "algorithm": "fixed_window", "limit": 3, "window_ms": 3_600_000},
        {"name": "flight", "algorithm": "concurrency", "limit": 2, "ttl_ms": MINUTE_MS},
    ]})
    .to_string();
    let left = |answer: &Value| {
        [&answer["limits"][0]["remaining"], &answer["limits"][1]["remaining"]]
            .map(|left| left.as_u64().unwrap())
    };
    let first = client.post("/check", &body).json();
    assert_eq!(left(&first), [2, 1]);
    assert_eq!(left(&client.post("/check", &body).json()), [1, 0]);
    let refused = client.post("/check", &body).json();
    assert_eq!((&refused["allowed"], refused.get("permit")), (&json!(false), None));
    assert_eq!(left(&refused), [1, 0], "no slot, so the rate is not charged");
    assert!(refused["retry_after_ms"].as_u64().unwrap() <= MINUTE_MS);
    ask_of_permit(&mut client, "/release", permit_of(&first));
    assert_eq!(left(&client.post("/peek", &body).json()), [1, 1], "a permit gives back slots only");
    let third = client.post("/check", &body).json();
    assert_eq!(left(&third), [0, 0]);
    ask_of_permit(&mut client, "/release", permit_of(&third));
    let refused = client.post("/check", &body).json();
    assert_eq!((&refused["allowed"], refused.get("permit")), (&json!(false), None));
    assert_eq!(left(&refused), [0, 1], "no room in the rate, so no slot is held");
}

#[test]
fn slots_of_a_policy_are_held_by_one_permit() {
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
    let mut ask = |user: &str| {
        let facts = json!({"path": "/export", "user": user});
        client.post("/check", json!({ "facts": facts }).to_string()).json()
    };
    let first = ask("u1");
    assert_eq!((&first["rule"], &first["key"]), (&json!("exports"), &json!("u1")));
    let wait = moment(&first["expires_at"]).duration_since(Timestamp::now());
    assert!(wait.as_secs() <= 30, "the first slot that returns: {first}");
    ask("u1");
    let refused = ask("u1");
    assert_eq!((&refused["allowed"], &refused["rule"]), (&json!(false), &json!("exports")));
    ask("u2");
    let refused = ask("u2");
    assert_eq!((&refused["allowed"], &refused["rule"]), (&json!(false), &json!("everyone")));
    assert_eq!(refused["key"], "*");
    let mut other = service.client();
    assert_eq!(ask_of_permit(&mut other, "/release", permit_of(&first))["released"], true);
    let mut ask = |user: &str| {
        let facts = json!({"path": "/export", "user": user});
        other.post("/check", json!({ "facts": facts }).to_string()).json()
    };
    assert_eq!(ask("u1")["allowed"], true, "both of its slots came back");
}

#[test]
fn each_question_of_a_batch_has_a_permit_of_its_own() {
    let service = Service::start(&[]);
    let mut client = service.client();
    let one = slots("jobs", 2, MINUTE_MS);
    let batch = format!(r#"{{"requests":[{one},{one},{one}]}}"#);
    let results = client.post("/check/batch", batch).json()["results"].clone();
    assert_ne!(permit_of(&results[0]), permit_of(&results[1]));
    assert_eq!((&results[2]["allowed"], results[2].get("permit")), (&json!(false), None));
    for result in [&results[0], &results[1]] {
        assert_eq!(ask_of_permit(&mut client, "/release", permit_of(result))["released"], true);
    }
    assert_eq!(client.post("/peek", one).json()["remaining"], 2);
}

#[test]
fn never_more_are_in_flight_than_there_are_slots() {
    use std::sync::atomic::{AtomicU64, Ordering};
    let service = Service::start(&[]);
    let (in_flight, held) = (AtomicU64::new(0), AtomicU64::new(0));
    std::thread::scope(|threads| {
        for _ in 0..8 {
            threads.spawn(|| {
                let mut client = service.client();
                for _ in 0..300 {
                    let answer = client.post("/check", slots("shared", 3, MINUTE_MS)).json();
                    if answer["allowed"] == true {
                        held.fetch_add(1, Ordering::SeqCst);
                        assert!(in_flight.fetch_add(1, Ordering::SeqCst) < 3, "a fourth in flight");
                        in_flight.fetch_sub(1, Ordering::SeqCst);
                        let released = ask_of_permit(&mut client, "/release", permit_of(&answer));
                        assert_eq!(released["released"], true);
                    }
                }
            });
        }
    });
    assert!(held.load(Ordering::SeqCst) > 0);
    assert_eq!(service.post("/peek", slots("shared", 3, MINUTE_MS)).json()["remaining"], 3);
}
