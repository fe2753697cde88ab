//! Units: costs by unit in every front end and on the command line, and the unit of each limit in responses.

use serde_json::{Value, json};
use tonic::{Code, Request};

use crate::admin_client::{admin, limits_of, start_with_admin};
use crate::grpc_client::{
    OVER_LIMIT, RateLimitDescriptor, descriptor, request, start as start_grpc,
};
use crate::resp_client::{RespClient, start as start_resp};
use crate::service::{Scratch, Service, run, run_with_input};

/// Windows that outlast any test.
const POLICY: &str = "
version: 1
rules:
  - name: chat
    match: { path: /chat }
    limits: [100/d, { rate: 90000/d, unit: tokens, name: tokens }]
  - { name: upload, match: { path: /upload }, limits: [{ rate: 50/d, unit: bytes }, { concurrency: 9 }] }
";

fn policy(scratch: &Scratch) -> String {
    scratch.write("policy.yaml", POLICY)
}

fn chat(costs: &Value) -> String {
    json!({"facts": {"client": "c1", "path": "/chat"}, "costs": costs}).to_string()
}

/// Returns unit and remaining amount of each limit of a decision.
fn left(decision: &Value) -> Vec<String> {
    let text =
        |limit: &Value| format!("{} {}", limit["unit"].as_str().unwrap(), limit["remaining"]);
    decision["limits"].as_array().unwrap().iter().map(text).collect()
}

#[test]
fn every_decision_call_accepts_costs_by_unit() {
    let scratch = Scratch::new();
    let service = Service::start(&["--policy", &policy(&scratch)]);
    let post = |path: &str, costs: Value| service.post(path, chat(&costs)).json();
    let both = post("/check", json!({"tokens": 1800, "requests": 1}));
    assert_eq!(left(&both), ["requests 99", "tokens 88200"]);
    let peeked = post("/peek", json!({"tokens": 88_201}));
    assert_eq!((&peeked["allowed"], &peeked["limit_name"]), (&json!(false), &json!("tokens")));
    let refunded = post("/refund", json!({"tokens": 800}));
    assert_eq!(left(&refunded), ["requests 99", "tokens 89000"]);
    let explained = post("/explain", json!({"tokens": 7}));
    assert_eq!(explained["takes"][1]["unit"], "tokens");
    assert_eq!(
        (&explained["takes"][0]["cost"], &explained["takes"][1]["cost"]),
        (&json!(0), &json!(7))
    );
    let item: Value = serde_json::from_str(&chat(&json!({"tokens": 1, "unknown": 9}))).unwrap();
    let batch = service.post("/check/batch", json!({"requests": [item]}).to_string()).json();
    assert_eq!(left(&batch["results"][0]), ["requests 99", "tokens 88999"]);
    let plain = r#"{"facts":{"client":"c1","path":"/chat"},"cost":2}"#;
    assert_eq!(left(&service.post("/check", plain).json()), ["requests 97", "tokens 88999"]);
    assert_eq!(left(&post("/check", json!({}))), ["requests 97", "tokens 88999"], "costs nothing");
}

#[test]
fn inline_limits_have_a_unit() {
    let service = Service::start(&[]);
    let short =
        r#"{"key":"k","limit":9,"window_ms":86400000,"unit":"tokens","costs":{"tokens":4}}"#;
    assert_eq!(left(&service.post("/check", short).json()), ["tokens 5"]);
    let without = r#"{"key":"k","limit":9,"window_ms":86400000,"unit":"tokens"}"#;
    assert_eq!(left(&service.post("/check", without).json()), ["tokens 5"], "0 tokens");
    let body = json!({
        "key": "k2", "costs": {"tokens": 8},
        "limits": [
            {"limit": 9, "window_ms": 86_400_000},
            {"limit": 9, "window_ms": 86_400_000, "unit": "tokens"},
            {"limit": 9, "algorithm": "concurrency"},
        ]
    });
    let decision = service.post("/check", body.to_string()).json();
    assert_eq!(left(&decision), ["requests 9", "tokens 1", "requests 8"], "one slot");
    let refused = service.post("/check", body.to_string()).json();
    assert_eq!((&refused["allowed"], &refused["limit_name"]), (&json!(false), &json!("86400s#2")));
}

#[test]
fn listings_and_overrides_show_the_unit() {
    let scratch = Scratch::new();
    let service = start_with_admin(&["--policy", &policy(&scratch)]);
    service.post("/check", chat(&json!({"requests": 1, "tokens": 90_000})));
    let limits = service.get("/api/limits").json();
    assert_eq!(limits["rules"][0]["limits"][1]["unit"], "tokens");
    let counters = service.get("/api/counters").json();
    let mut units: Vec<&str> = counters["counters"]
        .as_array()
        .unwrap()
        .iter()
        .map(|counter| counter["unit"].as_str().unwrap())
        .collect();
    units.sort_unstable();
    assert_eq!(units, ["requests", "tokens"]);
    let blocked = &service.get("/api/blocks").json()["blocked"][0];
    assert_eq!(
        (&blocked["unit"], &blocked["limit_text"]),
        (&json!("tokens"), &json!("90000 tokens/d"))
    );
    let reason = blocked["reason"].as_str().unwrap();
    assert!(reason.starts_with("rule chat, limit tokens: 90000 of 90000 tokens used"), "{reason}");
    let body = json!({
        "limits": [{"limit": 95_000, "window_ms": 86_400_000, "unit": "tokens"}],
        "rule": "chat", "reason": "tests", "author": "kim"
    });
    let set = admin(&service, "PUT", &limits_of("c1"), &body.to_string()).json();
    assert_eq!(set["limits"][0]["unit"], "tokens");
    assert_eq!(set["replaces"][0]["after"], "95000 tokens/d", "{set}");
    assert_eq!(set["replaces"][0]["before"], "90000 tokens/d");
    let stats = service.get("/api/clients/c1").json();
    assert_eq!(stats["counters"][0]["unit"], "tokens", "{stats}");
    let decision = service.post("/peek", chat(&json!({}))).json();
    assert_eq!(left(&decision), ["tokens 5000", "requests 99"]);
    let body = body.to_string().replace("95000", "0");
    let refused = admin(&service, "PUT", &limits_of("c1"), &body);
    assert_eq!((refused.status, &refused.json()["field"]), (400, &json!("limits[0].unit")));
}

#[test]
fn resp_commands_accept_costs_by_unit() {
    let scratch = Scratch::new();
    let (_service, address) = start_resp(&["--policy", &policy(&scratch)]);
    let mut client = RespClient::connect(address);
    let mut call = |command: &str| client.call(command);
    let facts = "client=c1 path=/chat";
    let checked = call(&format!("TOLLGATE.CHECK {facts} COST tokens=89990 COST requests=1"));
    assert!(checked.starts_with("[1 90000 10 ") || checked.starts_with("[1 100 99 "), "{checked}");
    let peeked = call(&format!("TOLLGATE.PEEK {facts} COST tokens=11"));
    assert!(peeked.starts_with("[0 90000 10 "), "{peeked}");
    let refunded = call(&format!("TOLLGATE.REFUND {facts} COST tokens=1"));
    assert!(refunded.starts_with("[1 90000 11 "), "{refunded}");
    for (arguments, error) in [
        ("COST tokens=", "-ERR cost: must be an integer from 0 to 9007199254740991"),
        ("COST tokens=-1", "-ERR cost: must be an integer from 0 to 9007199254740991"),
        ("COST =1", "-ERR cost: invalid unit \"\"; use 1 to 64 characters of A-Z a-z 0-9 . _ -"),
        ("COST 1 COST tokens=1", "-ERR cost: name the unit of each amount, as in requests=1"),
        ("COST a=1 COST a=1", "-ERR cost: the costs name the unit \"a\" twice"),
        ("COST 1 COST 1", "-ERR COST is given twice"),
    ] {
        assert_eq!(call(&format!("TOLLGATE.CHECK {facts} {arguments}")), error);
    }
}

#[test]
fn hits_of_envoy_count_in_the_unit_of_the_rule() {
    let scratch = Scratch::new();
    let (_service, client) = start_grpc(&["--policy", &scratch.write("policy.yaml", "
version: 1
rules:
  - { name: one, match: { facts: { 'entry:rule': one } }, limits: [{ rate: 100/d, unit: tokens }, { concurrency: 9 }] }
  - { name: two, match: { facts: { 'entry:rule': two } }, limits: [50/d, { rate: 100/d, unit: tokens }] }
")]);
    let hits = |rule: &str, hits| RateLimitDescriptor {
        hits_addend: Some(hits),
        ..descriptor(&[("rule", rule)])
    };
    let status = |descriptor, costs: Option<&'static str>| {
        let mut call = Request::new(request("edge", [descriptor]));
        if let Some(costs) = costs {
            call.metadata_mut().insert("x-tollgate-costs", costs.parse().unwrap());
        }
        client.call_with(call).map(|response| response.into_inner().statuses.remove(0))
    };
    let remaining = |descriptor, costs| status(descriptor, costs).unwrap().limit_remaining;
    assert_eq!(status(hits("one", 101), None).unwrap().code, OVER_LIMIT);
    assert_eq!(remaining(hits("one", 99), None), 1, "tokens");
    assert_eq!(remaining(hits("two", 7), None), 43, "requests, because the rule counts two units");
    assert_eq!(
        remaining(hits("two", 7), Some("tokens=98, requests=1")),
        2,
        "the metadata overrides hits"
    );
    let refund = RateLimitDescriptor { is_negative_hits: true, ..hits("two", 1) };
    assert_eq!(remaining(refund, Some("tokens=60")), 42);
    for costs in ["", "tokens", "tokens=x", "a b=1", "tokens=1,tokens=2", "1,tokens=2"] {
        let error = status(hits("two", 1), Some(costs)).unwrap_err();
        assert_eq!(error.code(), Code::InvalidArgument, "{costs}");
        assert!(error.message().starts_with("x-tollgate-costs: "), "{}", error.message());
    }
}

#[test]
fn check_and_explain_accept_costs_by_unit() {
    let scratch = Scratch::new();
    let policy = policy(&scratch);
    let service = Service::start(&["--policy", &policy]);
    let url = service.url();
    let check = |costs: &[&str]| {
        let args = [&["check", "client=c1", "path=/chat", "--server", &url][..], costs].concat();
        let ended = run(&args);
        (ended.code, if ended.code == 2 { ended.stderr } else { ended.stdout })
    };
    let refused = check(&["--cost", "tokens=90001", "--cost", "requests=1"]);
    let expected =
        "refused: cost 90001 exceeds the limit of 90000 tokens (rule chat, limit tokens)\n";
    assert_eq!(refused, (1, expected.to_owned()));
    let allowed = check(&["--cost", "tokens=89999"]);
    let expected = "allowed: 1 of 90000 tokens left (rule chat, limit tokens)\n";
    assert_eq!(allowed, (0, expected.to_owned()));
    assert_eq!(check(&["--cost", "2"]).0, 0);
    let (code, error) = check(&["--cost", "1", "--cost", "tokens=1"]);
    assert_eq!(code, 2);
    assert!(error.contains("--cost: name the unit of each amount, as in requests=1"), "{error}");
    for invalid in ["tokens", "tokens=-1", "-1", "a b=1"] {
        let (code, error) = check(&["--cost", invalid]);
        assert!(code == 2 && error.contains("--cost"), "{invalid}: {error}");
    }
    let explained = run(&["policy", "explain", &policy, "path=/chat", "--cost", "tokens=1800"]);
    for line in [
        "takes 0 from {:%-}:chat/86400s: 100 per 86400000 ms, sliding_window, enforce",
        "takes 1800 from {:%-}:chat/tokens: 90000 tokens per 86400000 ms, sliding_window, enforce",
    ] {
        assert!(explained.stdout.contains(line), "{line:?} is not in {}", explained.stdout);
    }
}

#[test]
fn simulated_lines_have_costs_by_unit() {
    let scratch = Scratch::new();
    let chat = |costs: Value| json!({"facts": {"path": "/chat"}, "costs": costs}).to_string();
    let lines = [chat(json!({"tokens": 5})), chat(json!({"requests": 1}))].join("\n");
    let ended = run_with_input(&["simulate", "--policy", &policy(&scratch)], &lines);
    let decisions: Vec<Value> =
        ended.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(left(&decisions[0]), ["requests 100", "tokens 89995"]);
    assert_eq!(left(&decisions[1]), ["requests 99", "tokens 89995"]);
}

#[test]
fn the_gauge_of_remaining_quota_does_not_mix_units() {
    let scratch = Scratch::new();
    let service = Service::start(&["--policy", &policy(&scratch)]);
    let upload = r#"{"facts":{"path":"/upload"},"costs":{"bytes":50}}"#;
    assert_eq!(service.post("/check", upload).json()["remaining"], 0);
    let gauge = |service: &Service| {
        let page = service.get("/metrics").body;
        let line = page.lines().find(|line| line.starts_with("rate_limit_tokens_remaining{"));
        line.map(str::to_owned)
    };
    assert_eq!(gauge(&service), None, "bytes do not set it");
    service.post("/check", chat(&json!({"requests": 1})));
    let expected = "rate_limit_tokens_remaining{scope=\"route\"} 99";
    assert_eq!(gauge(&service).as_deref(), Some(expected));
}
