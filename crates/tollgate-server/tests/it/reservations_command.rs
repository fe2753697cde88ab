//! `tollgate reserve` and `tollgate settle`: output and exit codes.

use serde_json::{Value, json};

use crate::reservations::POLICY;
use crate::service::{Ended, Scratch, Service, run, run_with_input, tollgate};

struct Setup {
    service: Service,
    _scratch: Scratch,
}

fn start() -> Setup {
    let scratch = Scratch::new();
    let service = Service::start(&["--policy", &scratch.write("policy.yaml", POLICY)]);
    Setup { service, _scratch: scratch }
}

const CHAT: [&str; 4] = ["client=c1", "path=/chat", "--cost", "requests=1"];

impl Setup {
    fn run(&self, args: &[&str]) -> Ended {
        run(&[args, &["--server", &self.service.url()]].concat())
    }

    /// Reserves tokens and returns the lines of the output.
    fn reserve(&self, tokens: &str) -> Vec<String> {
        let ended = self.run(&[&["reserve"][..], &CHAT, &["--cost", tokens]].concat());
        assert_eq!((ended.code, ended.stderr.as_str()), (0, ""), "{}", ended.stdout);
        ended.stdout.lines().map(str::to_owned).collect()
    }
}

#[test]
fn reserve_prints_the_reservation_and_settle_the_amounts() {
    let setup = start();
    let lines = setup.reserve("tokens=990");
    assert!(lines[0].starts_with("r0-") && lines[0].len() == 67, "{lines:?}");
    let decision = "allowed: 10 of 1000 tokens left (rule chat, limit tokens), expires at 20";
    assert!(lines.len() == 2 && lines[1].starts_with(decision), "{lines:?}");
    let settle = |args: &[&str]| {
        let ended = setup.run(&[&["settle", &lines[0]][..], args].concat());
        (ended.code, ended.stdout, ended.stderr)
    };
    let line = "settled: charged requests=1 tokens=420; refunded requests=0 tokens=570\n";
    assert_eq!(settle(&["--cost", "tokens=420"]), (0, line.to_owned(), String::new()));
    assert_eq!(settle(&["--cancel"]), (0, format!("already {line}"), String::new()));
    let over = setup.reserve("tokens=100");
    let ended = setup.run(&["settle", &over[0], "--cost", "tokens=2000"]);
    let line = "settled: charged requests=1 tokens=1580; uncollected requests=0 tokens=420\n";
    assert_eq!((ended.code, ended.stdout.as_str()), (0, line));
}

#[test]
fn refused_and_unknown_reservations_have_exit_code_1() {
    let setup = start();
    let refused = setup.run(&[&["reserve"][..], &CHAT, &["--cost", "tokens=1001"]].concat());
    let line = "refused: cost 1001 exceeds the limit of 1000 tokens (rule chat, limit tokens)\n";
    assert_eq!((refused.code, refused.stdout.as_str()), (1, line));
    let unknown = format!("r0-{}", "a".repeat(64));
    let ended = setup.run(&["settle", &unknown, "--cancel", "--json"]);
    assert_eq!(ended.code, 1);
    let object: Value = serde_json::from_str(&ended.stdout).expect("one object");
    assert_eq!(object["error"]["kind"], "not_found");
    assert_eq!(object["error"]["response"]["status"], 404);
    let message = "tollgate: 404: reservation: no reservation with this token: it is wrong, of another tenant, or its record has ended\n";
    assert_eq!(ended.stderr, message);
}

#[test]
fn json_is_the_response_of_the_service() {
    let setup = start();
    let options = ["--cost", "tokens=5", "--ttl", "90s", "--id", "a", "--json"];
    let reserve = [&["reserve"][..], &CHAT, &options].concat();
    let first: Value = serde_json::from_str(&setup.run(&reserve).stdout).expect("JSON");
    let again: Value = serde_json::from_str(&setup.run(&reserve).stdout).expect("JSON");
    assert_eq!((&first["repeated"], &again["repeated"]), (&json!(false), &json!(true)));
    assert_eq!(first["reservation"], again["reservation"]);
    let token = first["reservation"].as_str().expect("it is allowed");
    let settled = setup.run(&["settle", token, "--cost", "3", "--json"]);
    let settled: Value = serde_json::from_str(&settled.stdout).expect("JSON");
    assert_eq!(settled["charged"], json!({"requests": 3, "tokens": 5}));
    for (cost, charged) in [("requests=0", [0, 7]), ("0", [0, 0]), ("requests=2", [2, 7])] {
        let lines = setup.reserve("tokens=7");
        let settled = setup.run(&["settle", &lines[0], "--cost", cost, "--json"]);
        let settled: Value = serde_json::from_str(&settled.stdout).expect("JSON");
        let [requests, tokens] = charged;
        assert_eq!(settled["charged"], json!({"requests": requests, "tokens": tokens}), "{cost}");
    }
}

#[test]
fn usage_errors_have_exit_code_2() {
    let setup = start();
    let token = format!("r0-{}", "a".repeat(64));
    for (args, message) in [
        (&["reserve"][..], "required arguments"),
        (&["reserve", "k", "--cost", "tokens=x"], "must be an integer"),
        (&["reserve", "k", "--cost", "1", "--cost", "tokens=1"], "--cost: name the unit"),
        (&["reserve", "k", "--ttl", "soon"], "--ttl: "),
        (&["reserve", "k", "--ttl", "2d"], "400: ttl_ms: the time to live must be between"),
        (&["reserve", "k", "--id", ""], "400: id: the id must have 1 to 64 bytes"),
        (&["settle", &token], "--cost"),
        (&["settle"], "required arguments"),
        (&["settle", &token, "--cancel", "--cost", "1"], "cannot be used with"),
        (&["settle", "abc", "--cancel"], "400: reservation: invalid reservation token"),
    ] {
        let ended = setup.run(args);
        assert_eq!(ended.code, 2, "{args:?}: {}", ended.stderr);
        assert!(ended.stderr.contains(message), "{args:?}: {}", ended.stderr);
    }
    let ok = setup.run(&["reserve", "k", "--id", "a"]);
    assert_eq!(ok.code, 0);
    let conflict = setup.run(&["reserve", "k", "--id", "a", "--cost", "2"]);
    assert_eq!(conflict.code, 2, "{}", conflict.stderr);
}

#[test]
fn missing_service_has_exit_code_3() {
    let token = format!("r0-{}", "a".repeat(64));
    for args in [&["reserve", "k"][..], &["settle", &token, "--cancel"]] {
        let ended = run(&[args, &["--server", "localhost:1"]].concat());
        assert_eq!(ended.code, 3, "{args:?}: {}", ended.stderr);
    }
}

#[test]
fn check_token_protects_reservations() {
    let service = Service::start_with(&[], &[("TOLLGATE_CHECK_TOKEN", "secret-check-token-0001")]);
    let reserve = |token: &str| {
        let mut command = tollgate(&["reserve", "k", "--server", &service.url()]);
        Ended::from(command.env("TOLLGATE_CHECK_TOKEN", token).output().expect("the binary runs"))
    };
    assert_eq!(reserve("secret-check-token-0001").code, 0);
    assert_eq!(reserve("another-check-token").code, 2);
    for path in ["/reserve", "/settle"] {
        assert_eq!(service.post(path, "{}").status, 401, "{path}");
    }
}

/// Feeds lines to `tollgate simulate` and returns its responses.
fn simulate(lines: &[Value]) -> (i32, Vec<Value>) {
    let input: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let ended = run_with_input(&["simulate"], &input);
    let parse = |line: &str| serde_json::from_str(line).expect("JSON");
    (ended.code, ended.stdout.lines().map(parse).collect())
}

#[test]
fn simulated_reservations_are_named_like_permits() {
    let limits = json!([
        {"limit": 100, "window_ms": 1000, "unit": "tokens", "algorithm": "fixed_window"},
        {"limit": 2, "algorithm": "concurrency", "ttl_ms": 900},
    ]);
    let line = |at_ms: u64, op: &str| json!({"at_ms": at_ms, "op": op, "key": "k", "costs": {"tokens": 40}, "limits": limits});
    let mut with_id = line(1, "reserve");
    with_id["id"] = json!("a");
    with_id["ttl_ms"] = json!(500);
    let mut again = with_id.clone();
    again["at_ms"] = json!(2);
    let held =
        |at_ms: u64, op: &str, name: &str| json!({"at_ms": at_ms, "op": op, "reservation": name});
    let (code, replies) = simulate(&[
        line(0, "check"),
        with_id,
        again,
        line(3, "reserve"),
        held(500, "renew", "l2"),
        json!({"at_ms": 999, "op": "peek", "key": "k", "costs": {"tokens": 21}, "limits": limits}),
        json!({"at_ms": 999, "op": "settle", "reservation": "l2", "costs": {"tokens": 10}}),
        json!({"at_ms": 999, "op": "settle", "reservation": "l2", "cost": 0}),
        held(999, "release", "l2"),
        line(999, "reserve"),
        held(999, "release", "l3"),
        held(999, "renew", "l3"),
    ]);
    assert_eq!(code, 0, "{replies:?}");
    assert_eq!((&replies[0]["permit"], &replies[1]["reservation"]), (&json!("l1"), &json!("l2")));
    assert_eq!((&replies[2]["reservation"], &replies[2]["repeated"]), (&json!("l2"), &json!(true)));
    assert_eq!(replies[1]["expires_at"], "1970-01-01T00:00:00.501Z");
    assert_eq!((&replies[3]["allowed"], replies[3].get("reservation")), (&json!(false), None));
    assert_eq!(replies[4], json!({"renewed": true, "expires_at": "1970-01-01T00:00:01Z"}));
    assert_eq!(replies[5]["remaining"], 20);
    assert_eq!(replies[6]["refunded"], json!({"tokens": 30}));
    assert_eq!(replies[6]["limits"][0]["remaining"], 50);
    assert_eq!(replies[7]["repeated"], true);
    assert_eq!(replies[8], json!({"released": false}));
    assert_eq!(replies[9]["reservation"], "l3", "{}", replies[9]);
    assert_eq!(replies[10], json!({"released": true}));
    assert_eq!(replies[11], json!({"renewed": false, "expires_at": null}));
}

#[test]
fn simulated_slots_return_exactly_at_the_expiry() {
    let limits = json!([{"limit": 1, "algorithm": "concurrency", "ttl_ms": 60_000}]);
    let reserve = |at_us: u64| json!({"at_us": at_us, "op": "reserve", "key": "k", "limits": limits, "ttl_ms": 5});
    let (code, replies) = simulate(&[reserve(0), reserve(4_999), reserve(5_000)]);
    let allowed: Vec<bool> = replies.iter().map(|reply| reply["allowed"] == true).collect();
    assert_eq!((code, allowed), (0, vec![true, false, true]), "{replies:?}");
}

#[test]
fn invalid_lines_about_reservations_name_the_field() {
    let settle = |fields: Value| {
        let mut line = json!({"op": "settle", "reservation": "l1"});
        line.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        line
    };
    let slots = json!([{"algorithm": "concurrency", "limit": 9}]);
    let lines = [
        (json!({"op": "reserve", "key": "k"}), ""),
        (json!({"key": "k", "limits": slots}), ""),
        (json!({"key": "k", "reservation": "l1"}), "reservation"),
        (json!({"key": "k", "ttl_ms": 5}), "ttl_ms"),
        (json!({"key": "k", "id": "a", "op": "peek"}), "id"),
        (json!({"op": "reserve", "key": "k", "ttl_ms": 0}), "ttl_ms"),
        (json!({"op": "reserve", "key": "k", "permit": "l2"}), "permit"),
        (json!({"op": "settle", "cost": 0}), "reservation"),
        (json!({"op": "settle", "cost": 0, "reservation": "l2"}), "reservation"),
        (json!({"op": "settle", "cost": 0, "reservation": "l3"}), "reservation"),
        (settle(json!({})), "costs"),
        (settle(json!({"cost": 0, "costs": {}})), "cost"),
        (settle(json!({"cost": 0, "key": "k"})), "key"),
        (settle(json!({"cost": 0, "ttl_ms": 1})), "ttl_ms"),
        (settle(json!({"cost": 0, "permit": "l2"})), "permit"),
        (settle(json!({"cost": 0, "tenant": "other"})), "reservation"),
        (json!({"op": "release", "reservation": "l1", "permit": "l2"}), "permit"),
        (json!({"op": "release", "permit": "l1"}), "permit"),
        (json!({"op": "renew", "reservation": "l1", "cost": 0}), "cost"),
        (json!({"op": "release"}), "permit"),
        (json!({"op": "release", "reservation": "l1"}), ""),
    ];
    let (code, replies) = simulate(&lines.each_ref().map(|(line, _)| line.clone()));
    assert_eq!(code, 2);
    for ((line, field), reply) in lines.iter().zip(&replies) {
        assert_eq!(reply["field"].as_str().unwrap_or(""), *field, "{line}: {reply}");
    }
    assert_eq!(replies.last(), Some(&json!({"released": true})), "it was still open");
}
