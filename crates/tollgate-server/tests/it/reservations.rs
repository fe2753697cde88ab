//! Reservations over HTTP: reserve an estimate, settle with the amounts that were used.

use std::thread;

use serde_json::{Value, json};

use crate::doc_blocks::{Tested, blocks};
use crate::service::{Scratch, Service, eventually};

/// Windows that outlast any test.
pub(crate) const POLICY: &str = "
version: 1
rules:
  - name: chat
    match: { path: /chat }
    limits:
      - { rate: 100/d, algorithm: fixed_window }
      - { rate: 1000/d, unit: tokens, name: tokens, algorithm: fixed_window }
  - name: jobs
    match: { path: /jobs }
    limits: [{ rate: 1000/d, unit: tokens, name: tokens }, { concurrency: 1, ttl: 1h }]
";

const UNKNOWN: &str = "reservation: no reservation with this token: it is wrong, of another tenant, or its record has ended";

struct Setup {
    service: Service,
    _scratch: Scratch,
}

impl Setup {
    fn start() -> Self {
        let scratch = Scratch::new();
        let service = Service::start(&["--policy", &scratch.write("policy.yaml", POLICY)]);
        Self { service, _scratch: scratch }
    }

    /// Posts a body and returns the response, which must have this status.
    fn post(&self, path: &str, body: &Value, status: u16) -> Value {
        let reply = self.service.post(path, body.to_string());
        assert_eq!(reply.status, status, "{path} {body}: {}", reply.body);
        reply.json()
    }

    fn reserve(&self, body: &Value) -> Value {
        self.post("/reserve", body, 200)
    }

    /// Reserves tokens for a client of /chat, and returns the token of the reservation.
    fn reserve_tokens(&self, client: &str, tokens: u64) -> String {
        let reserved = self.reserve(&chat(client, tokens));
        assert_eq!(reserved["allowed"], true, "{reserved}");
        token_of(&reserved)
    }

    fn settle(&self, token: &str, tokens: u64) -> Value {
        self.post("/settle", &json!({"reservation": token, "costs": {"tokens": tokens}}), 200)
    }

    /// Returns the remaining requests and tokens of a client of /chat.
    fn left(&self, client: &str) -> [u64; 2] {
        let peeked = self.post("/peek", &chat(client, 0), 200);
        [0, 1].map(|limit: usize| peeked["limits"][limit]["remaining"].as_u64().unwrap())
    }
}

fn chat(client: &str, tokens: u64) -> Value {
    json!({"facts": {"client": client, "path": "/chat"}, "costs": {"requests": 1, "tokens": tokens}})
}

fn job(client: &str, ttl_ms: u64) -> Value {
    json!({"facts": {"client": client, "path": "/jobs"}, "costs": {"tokens": 10}, "ttl_ms": ttl_ms})
}

fn token_of(reserved: &Value) -> String {
    reserved["reservation"].as_str().unwrap_or_else(|| panic!("none in {reserved}")).to_owned()
}

#[test]
fn unused_estimate_is_returned() {
    let setup = Setup::start();
    let reserved = setup.reserve(&chat("c1", 400));
    assert_eq!((&reserved["verdict"], &reserved["rule"]), (&json!("allow"), &json!("chat")));
    assert_eq!(reserved["repeated"], false);
    assert!(reserved["expires_at"].as_str().is_some_and(|time| time.ends_with('Z')), "{reserved}");
    assert_eq!(setup.left("c1"), [99, 600], "the estimate counts until it is settled");
    let token = token_of(&reserved);
    assert!(token.starts_with("r0-") && token.len() == 67, "{token}");
    let settled = setup.settle(&token, 100);
    let limits = settled["limits"].clone();
    let expected = json!({
        "settled": true, "repeated": false, "degraded": false,
        "charged": {"requests": 1, "tokens": 100},
        "refunded": {"requests": 0, "tokens": 300},
        "uncollected": {"requests": 0, "tokens": 0},
        "limits": limits,
    });
    assert_eq!(settled, expected);
    let _ = setup.settle(&token, 100);
    let metrics = setup.service.get("/metrics").body;
    for line in [
        "tollgate_settlements_total 1\n",
        "tollgate_settled_amount_total{unit=\"tokens\",part=\"charged\"} 100\n",
        "tollgate_settled_amount_total{unit=\"tokens\",part=\"refunded\"} 300\n",
    ] {
        assert!(metrics.contains(line), "{line} in {metrics}");
    }
    let limit = &limits[1];
    assert_eq!((&limit["unit"], &limit["count"]), (&json!("tokens"), &json!(100)));
    assert_eq!((&limit["limit"], &limit["remaining"]), (&json!(1000), &json!(900)));
    assert_eq!(
        (limit.get("allowed"), limit.get("retry_after_ms"), limit.get("debt")),
        (None, None, None)
    );
    assert_eq!(setup.left("c1"), [99, 900]);
}

#[test]
fn refused_reservation_takes_nothing_and_has_no_token() {
    let setup = Setup::start();
    let refused = setup.reserve(&chat("c1", 1001));
    assert_eq!((&refused["allowed"], &refused["verdict"]), (&json!(false), &json!("never")));
    assert_eq!(refused["limit_name"], "tokens");
    for field in ["reservation", "expires_at", "repeated"] {
        assert_eq!(refused.get(field), None, "{refused}");
    }
    assert_eq!(setup.left("c1"), [100, 1000]);
    setup.reserve_tokens("c1", 1000);
    let refused = setup.reserve(&chat("c1", 1));
    assert!(refused["retry_after_ms"].as_u64().is_some_and(|wait| wait > 0), "{refused}");
}

#[test]
fn only_the_first_settlement_counts() {
    let setup = Setup::start();
    let token = setup.reserve_tokens("c1", 400);
    let first = setup.settle(&token, 100);
    let settle_again = || {
        let mut client = setup.service.client();
        for tokens in 0..10 {
            let body = json!({"reservation": token, "costs": {"tokens": tokens}});
            let again = client.post("/settle", body.to_string()).json();
            assert_eq!(again["repeated"], true);
            assert_eq!(again["charged"], first["charged"]);
            assert_eq!(again["refunded"], first["refunded"]);
        }
    };
    thread::scope(|scope| {
        [(); 2].map(|()| scope.spawn(settle_again)).map(|thread| thread.join().unwrap())
    });
    assert_eq!(setup.left("c1"), [99, 900]);
}

#[test]
fn parallel_settlements_count_once() {
    let setup = Setup::start();
    for round in 1..=10 {
        let token = setup.reserve_tokens("c1", 100);
        let settle = || setup.settle(&token, 90)["repeated"] == false;
        let first = thread::scope(|scope| {
            [(); 2].map(|()| scope.spawn(settle)).map(|thread| thread.join().unwrap())
        });
        assert_eq!(first.iter().filter(|first| **first).count(), 1, "{first:?}");
        assert_eq!(setup.left("c1")[1], 1000 - 90 * round);
    }
}

#[test]
fn id_reserves_once_from_two_connections() {
    let setup = Setup::start();
    let mut body = chat("c1", 40);
    body["id"] = json!("order-1");
    let text = body.to_string();
    let reserve = || {
        let mut client = setup.service.client();
        let replies = [(); 10].map(|()| client.post("/reserve", &text).json());
        replies.map(|reply| {
            assert_eq!(reply["allowed"], true, "{reply}");
            (token_of(&reply), reply["repeated"] == true)
        })
    };
    let both = thread::scope(|scope| {
        [(); 2].map(|()| scope.spawn(reserve)).map(|thread| thread.join().unwrap())
    });
    let all = both.concat();
    assert!(all.iter().all(|(token, _)| *token == all[0].0), "{all:?}");
    assert_eq!(all.iter().filter(|(_, is_repeated)| !is_repeated).count(), 1, "{all:?}");
    assert_eq!(setup.left("c1"), [99, 960]);
    setup.settle(&all[0].0, 10);
    assert_eq!(setup.left("c1"), [99, 990]);
}

#[test]
fn id_is_scoped_to_its_client_and_to_its_costs() {
    let setup = Setup::start();
    let with_id = |client: &str, tokens: u64| {
        let mut body = chat(client, tokens);
        body["id"] = json!("order-1");
        body
    };
    let first = token_of(&setup.reserve(&with_id("c1", 40)));
    assert_ne!(token_of(&setup.reserve(&with_id("c2", 40))), first);
    let problem = setup.post("/reserve", &with_id("c1", 41), 409);
    assert_eq!(problem["field"], "id");
    assert_eq!(
        problem["detail"],
        "id: the id belongs to a reservation with other costs; use another id"
    );
    assert_eq!(setup.left("c1"), [99, 960]);
}

#[test]
fn repeated_id_is_allowed_while_its_limits_refuse() {
    let setup = Setup::start();
    let mut body = chat("c1", 400);
    body["id"] = json!("order-1");
    let first = setup.reserve(&body);
    let other = setup.reserve_tokens("c1", 600);
    setup.settle(&other, 1500);
    let again = setup.reserve(&body);
    assert_eq!((&again["allowed"], &again["verdict"]), (&json!(true), &json!("allow")));
    assert_eq!((&again["repeated"], &again["reservation"]), (&json!(true), &first["reservation"]));
    assert_eq!((&again["retry_after"], &again["limits"][1]["debt"]), (&json!(null), &json!(900)));
    let inline = |rate: &str| json!({"key": "k", "id": "order-1", "limits": [rate]});
    let first = setup.reserve(&inline("10/d"));
    // Now a block, which refuses everything.
    let again = setup.reserve(&inline("0"));
    assert_eq!((&again["allowed"], &again["verdict"]), (&json!(true), &json!("allow")));
    assert_eq!(again["reservation"], first["reservation"]);
}

#[test]
fn usage_above_the_estimate_becomes_a_debt() {
    let setup = Setup::start();
    let token = setup.reserve_tokens("c1", 400);
    let settled = setup.settle(&token, 1500);
    assert_eq!(settled["charged"]["tokens"], 1500);
    assert_eq!(
        (&settled["limits"][1]["debt"], &settled["limits"][1]["remaining"]),
        (&json!(500), &json!(0))
    );
    let refused = setup.post("/check", &chat("c1", 1), 200);
    let limit = &refused["limits"][1];
    assert_eq!(
        (&refused["allowed"], &limit["debt"], &limit["count"]),
        (&json!(false), &json!(500), &json!(1000))
    );
    assert_eq!(refused["limits"][0].get("debt"), None, "{refused}");
    let explained = setup.post("/explain", &chat("c1", 1), 200);
    assert_eq!(explained["takes"][1]["before"]["debt"], 500);
    let batch = json!({"requests": [chat("c1", 1)]});
    assert_eq!(setup.post("/check/batch", &batch, 200)["results"][0]["limits"][1]["debt"], 500);
    let token = setup.reserve_tokens("c2", 400);
    let settled = setup.settle(&token, 3000);
    assert_eq!(
        (&settled["charged"]["tokens"], &settled["uncollected"]["tokens"]),
        (&json!(2000), &json!(1000))
    );
    assert_eq!(settled["limits"][1]["debt"], 1000, "at most one further full limit");
}

#[test]
fn cancelled_reservation_returns_every_unit() {
    let setup = Setup::start();
    for cancel in ["/settle", "/release"] {
        let token = setup.reserve_tokens("c1", 400);
        let mut body = json!({"reservation": token});
        if cancel == "/settle" {
            body["cost"] = json!(0);
        }
        let cancelled = setup.post(cancel, &body, 200);
        if cancel == "/settle" {
            assert_eq!(cancelled["refunded"], json!({"requests": 1, "tokens": 400}));
        } else {
            assert_eq!(cancelled, json!({"released": true}));
        }
        assert_eq!(setup.left("c1"), [100, 1000]);
        let again = setup.post("/release", &json!({"reservation": token}), 200);
        assert_eq!(again, json!({"released": false}), "it is settled already");
    }
}

#[test]
fn cost_counts_requests_and_costs_keep_other_estimates() {
    let setup = Setup::start();
    let token = setup.reserve_tokens("c1", 400);
    let settled = setup.post("/settle", &json!({"reservation": token, "cost": 3}), 200);
    assert_eq!(settled["charged"], json!({"requests": 3, "tokens": 400}));
    assert_eq!(setup.left("c1"), [97, 600]);
    let token = setup.reserve_tokens("c1", 100);
    let settled =
        setup.post("/settle", &json!({"reservation": token, "costs": {"requests": 0}}), 200);
    assert_eq!(settled["charged"], json!({"requests": 0, "tokens": 100}));
    let token = setup.reserve_tokens("c1", 100);
    let settled = setup.post("/settle", &json!({"reservation": token, "costs": {}}), 200);
    assert_eq!(settled["charged"], json!({"requests": 1, "tokens": 100}));
    assert_eq!(setup.left("c1"), [96, 400]);
}

#[test]
fn unknown_and_forged_reservations_are_not_found() {
    let setup = Setup::start();
    let token = setup.reserve_tokens("c1", 400);
    let last = if token.ends_with('0') { "1" } else { "0" };
    let forged = format!("{}{last}", &token[..token.len() - 1]);
    let unknown = format!("r0-{}", "a".repeat(64));
    for text in [forged, unknown] {
        let problem = setup.post("/settle", &json!({"reservation": text, "cost": 0}), 404);
        assert_eq!(
            (&problem["field"], &problem["detail"]),
            (&json!("reservation"), &json!(UNKNOWN))
        );
        let body = json!({ "reservation": text });
        assert_eq!(setup.post("/release", &body, 200), json!({"released": false}));
        assert_eq!(setup.post("/renew", &body, 200), json!({"renewed": false, "expires_at": null}));
    }
    assert_eq!(setup.left("c1"), [99, 600], "nothing was returned");
    assert_eq!(setup.settle(&token, 1)["repeated"], false);
}

#[test]
fn tenant_of_a_settlement_must_be_that_of_the_reservation() {
    let setup = Setup::start();
    let mut body = chat("c1", 400);
    body["tenant"] = json!("acme");
    let token = token_of(&setup.reserve(&body));
    let settle = |tenant: Option<&str>, status: u16| {
        let mut body = json!({"reservation": token, "costs": {"tokens": 7}});
        if let Some(tenant) = tenant {
            body["tenant"] = json!(tenant);
        }
        setup.post("/settle", &body, status)
    };
    assert_eq!(settle(Some("other"), 404)["detail"], UNKNOWN);
    assert_eq!(settle(Some("acme"), 200)["charged"]["tokens"], 7);
    assert_eq!(settle(None, 200)["repeated"], true);
    let without = setup.reserve_tokens("c1", 1);
    let body = json!({"reservation": without, "cost": 0, "tenant": "acme"});
    setup.post("/settle", &body, 404);
}

#[test]
fn slots_are_held_until_the_reservation_is_settled() {
    let setup = Setup::start();
    let hour = 3_600_000;
    let reserved = setup.reserve(&job("c1", hour));
    assert_eq!(reserved.get("permit"), None, "the reservation has the slots: {reserved}");
    assert_eq!(setup.reserve(&job("c1", hour))["allowed"], false);
    let body = json!({"reservation": reserved["reservation"]});
    let renewed = setup.post("/renew", &body, 200);
    assert_eq!(renewed["renewed"], true);
    let before = reserved["expires_at"].as_str().unwrap();
    assert!(renewed["expires_at"].as_str().unwrap() >= before, "{reserved} {renewed}");
    setup.settle(&token_of(&reserved), 3);
    assert_eq!(setup.post("/renew", &body, 200)["renewed"], false, "it is settled");
    let next = setup.reserve(&job("c1", hour));
    assert_eq!(next["allowed"], true, "{next}");
}

#[test]
fn slots_return_when_the_reservation_expires() {
    let setup = Setup::start();
    let token = token_of(&setup.reserve(&job("c1", 1)));
    // The limit itself holds slots for an hour.
    eventually("the slot is free", || setup.reserve(&job("c1", 3_600_000))["allowed"] == true);
    assert_eq!(setup.settle(&token, 2)["charged"]["tokens"], 2, "it can still be settled");
    assert_eq!(setup.reserve(&job("c1", 1))["allowed"], false, "the slot of the other one is held");
}

#[test]
fn reservations_are_counted_and_listed_like_checks() {
    let setup = Setup::start();
    setup.reserve_tokens("c1", 1000);
    setup.reserve(&chat("c1", 1));
    let metrics = setup.service.get("/metrics").body;
    for series in [
        "ratelimiter_requests_checked_total{result=\"allowed\"} 1\n",
        "ratelimiter_requests_checked_total{result=\"blocked\"} 1\n",
        "tollgate_requests_total{frontend=\"http\"} 2\n",
    ] {
        assert!(metrics.contains(series), "{series} is missing in {metrics}");
    }
    let client = setup.service.get("/api/clients/c1").json();
    let refusal = &client["refusals"][0];
    assert_eq!((&refusal["rule"], &refusal["count"]), (&json!("chat"), &json!(1)), "{client}");
}

/// Returns a response without what differs in each run: the token, and times.
fn without_times(response: &str) -> String {
    let mut text = response.to_owned();
    for field in ["\"reservation\":\"", "\"expires_at\":\"", "\"reset_after_ms\":"] {
        let mut parts = text.split(field).map(str::to_owned).collect::<Vec<_>>();
        for part in &mut parts[1..] {
            let end = part.find(['"', ',']).expect("a field ends");
            part.replace_range(..end, "?");
        }
        text = parts.join(field);
    }
    text
}

#[test]
fn documented_calls_respond_as_shown() {
    let service = Service::start(&[]);
    let this_file = Tested::By("crates/tollgate-server/tests/it/reservations.rs".to_owned());
    let blocks: Vec<_> = blocks().into_iter().filter(|block| block.tested == this_file).collect();
    assert_eq!(blocks.len(), 1);
    let (mut documented, mut token) = (String::new(), String::new());
    for (command, expected) in blocks[0].commands() {
        let (body, path) = command
            .strip_prefix("curl --json '")
            .and_then(|rest| rest.split_once("' localhost:8080"))
            .expect("a call");
        let body =
            if token.is_empty() { body.to_owned() } else { body.replace(&documented, &token) };
        let response = service.post(path, &body).body;
        let expected: String = expected.lines().collect();
        assert_eq!(without_times(&response), without_times(&expected), "{command}");
        if path == "/reserve" {
            token = token_of(&serde_json::from_str(&response).unwrap());
            documented = token_of(&serde_json::from_str(&expected).unwrap());
        }
    }
}
