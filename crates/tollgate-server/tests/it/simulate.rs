//! `tollgate simulate`: decisions on a clock that the input sets.

use std::fmt::Write as _;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::service::{Ended, Scratch, run, run_with_input, tollgate};

/// Feeds these lines; returns the responses and the finished process.
fn simulate(lines: &[Value]) -> (Vec<Value>, Ended) {
    let mut input = String::new();
    for line in lines {
        writeln!(input, "{line}").unwrap();
    }
    let ended = run_with_input(&["simulate"], &input);
    (responses(&ended.stdout), ended)
}

fn responses(stdout: &str) -> Vec<Value> {
    let parse =
        |line: &str| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
    stdout.lines().map(parse).collect()
}

fn simulate_ok(lines: &[Value]) -> Vec<Value> {
    let (responses, ended) = simulate(lines);
    assert_eq!((ended.code, ended.stderr.as_str()), (0, ""), "{}", ended.stdout);
    assert_eq!(responses.len(), lines.len(), "one response per line");
    responses
}

#[test]
fn lines_set_the_clock() {
    let one = json!([{"limit": 1, "window_ms": 1000}]);
    let replies = simulate_ok(&[
        json!({"at_ms": 0, "key": "k", "limits": one}),
        json!({"at_ms": 999, "key": "k", "limits": one}),
        json!({"at_us": 999_999, "key": "k", "limits": one}),
        json!({"at_ms": 1000, "key": "k", "limits": one}),
        json!({"key": "k", "limits": one}),
        json!({"at_us": 1_999_999, "key": "k", "limits": one}),
        json!({"at_us": 2_000_000, "key": "k", "limits": one}),
    ]);
    let seen: Vec<(bool, Option<u64>)> = replies
        .iter()
        .map(|reply| (reply["allowed"] == true, reply["retry_after_ms"].as_u64()))
        .collect();
    let expected = [
        (true, None),
        (false, Some(1)),
        (false, Some(1)),
        (true, None),
        (false, Some(1000)),
        (false, Some(1)),
        (true, None),
    ];
    assert_eq!(seen, expected);
}

#[test]
fn clock_starts_at_the_epoch_and_keeps_its_time() {
    let slots = json!([{"algorithm": "concurrency", "limit": 9, "ttl_ms": 1500}]);
    let replies = simulate_ok(&[
        json!({"key": "k", "limits": slots}),
        json!({"at_ms": 86_400_000, "key": "k", "limits": slots}),
        json!({"key": "k", "limits": slots}),
        json!({"at_us": 1, "key": "other", "limits": slots}),
    ]);
    let expires: Vec<&str> =
        replies.iter().map(|reply| reply["expires_at"].as_str().unwrap()).collect();
    let day = "1970-01-02T00:00:01.5Z";
    assert_eq!(expires, ["1970-01-01T00:00:01.5Z", day, day, "1970-01-01T00:00:01.500001Z"]);
}

#[test]
fn supports_every_operation() {
    let replies = simulate_ok(&[
        json!({"op": "check", "key": "k", "cost": 30}),
        json!({"op": "peek", "key": "k", "cost": 71}),
        json!({"op": "refund", "key": "k", "cost": 10}),
        json!({"op": "reset", "key": "k"}),
        json!({"op": "check", "key": "k"}),
    ]);
    let remaining: Vec<u64> =
        replies.iter().map(|reply| reply["remaining"].as_u64().unwrap()).collect();
    assert_eq!(remaining, [70, 70, 80, 100, 99]);
    assert_eq!(
        (&replies[1]["allowed"], &replies[1]["retry_after_ms"]),
        (&json!(false), &json!(60_000))
    );
    assert_eq!((&replies[3]["count"], &replies[3]["reset_after_ms"]), (&json!(0), &json!(0)));
}

#[test]
fn permits_are_numbered() {
    let slots = json!([{"algorithm": "concurrency", "limit": 2, "ttl_ms": 1000}]);
    let take = |at_ms: u64| json!({"at_ms": at_ms, "key": "k", "limits": slots});
    let permit =
        |at_ms: u64, op: &str, permit: &str| json!({"at_ms": at_ms, "op": op, "permit": permit});
    let replies = simulate_ok(&[
        take(0),
        json!({"key": "k"}),
        take(1),
        take(2),
        permit(3, "release", "l1"),
        permit(3, "release", "l1"),
        take(4),
        permit(500, "renew", "l2"),
        permit(1004, "renew", "l3"),
        permit(1499, "renew", "l2"),
        permit(2499, "renew", "l2"),
        permit(2499, "release", "l2"),
    ]);
    let names: Vec<&str> = replies.iter().filter_map(|reply| reply["permit"].as_str()).collect();
    assert_eq!(names, ["l1", "l2", "l3"], "refusals and other limits have no permit");
    assert_eq!(replies[3]["retry_after_ms"], 998, "until the first slot expires");
    assert_eq!(
        (&replies[4], &replies[5]),
        (&json!({"released": true}), &json!({"released": false}))
    );
    assert_eq!(replies[7], json!({"renewed": true, "expires_at": "1970-01-01T00:00:01.5Z"}));
    let expired = json!({"renewed": false, "expires_at": null});
    assert_eq!(replies[8], expired, "the slot expired at this moment");
    assert_eq!(replies[9], json!({"renewed": true, "expires_at": "1970-01-01T00:00:02.499Z"}));
    assert_eq!((&replies[10], &replies[11]), (&expired, &json!({"released": false})));
}

#[test]
fn reset_frees_slots_and_invalidates_permits() {
    let slots = json!([{"algorithm": "concurrency", "limit": 1, "ttl_ms": 1000}]);
    let replies = simulate_ok(&[
        json!({"key": "k", "limits": slots}),
        json!({"op": "reset", "key": "k", "limits": slots}),
        json!({"op": "release", "permit": "l1"}),
        json!({"key": "k", "limits": slots}),
    ]);
    assert_eq!(replies[1]["remaining"], 1);
    assert_eq!(replies[2], json!({"released": false}));
    assert_eq!(replies[3]["permit"], "l2");
}

#[test]
fn decides_by_a_policy_file() {
    let scratch = Scratch::new();
    let policy = scratch.write(
        "policy.yaml",
        "version: 1\nrules:\n  - { name: search, match: { path: /s }, per: [user], limits: [2/min] }\n",
    );
    let line = json!({"facts": {"path": "/s", "user": "u"}}).to_string();
    let input = format!("{line}\n{line}\n{line}\n");
    let ended = run_with_input(&["simulate", "--policy", &policy], &input);
    let replies = responses(&ended.stdout);
    assert_eq!((ended.code, replies.len()), (0, 3));
    assert_eq!(
        (&replies[2]["allowed"], &replies[2]["rule"], &replies[2]["retry_after_ms"]),
        (&json!(false), &json!("search"), &json!(60_000))
    );
    let bad = scratch.write("bad.yaml", "version: 9\n");
    let ended = run_with_input(&["simulate", "--policy", &bad], &input);
    assert_eq!((ended.code, ended.stdout.as_str()), (2, ""));
    assert!(ended.stderr.contains("bad.yaml:1:10"), "{}", ended.stderr);
}

#[test]
fn invalid_line_yields_a_problem_in_its_place() {
    let long = format!(r#"{{"key":"{}"}}"#, "x".repeat(70_000));
    let invalid = [
        ("{", None),
        ("nonsense", None),
        ("[]", None),
        (r#"[0]"#, None),
        (r#"{"key":"a"} {"key":"b"}"#, None),
        (r#"{"at_ms":5}"#, Some("key")),
        (r#"{"key":""}"#, Some("key")),
        (r#"{"key":"k","cost":-1}"#, Some("cost")),
        (r#"{"key":"k","op":"take"}"#, Some("op")),
        (r#"{"key":"k","at_ms":-1}"#, Some("at_ms")),
        (r#"{"key":"k","at_ms":1.5}"#, Some("at_ms")),
        (r#"{"key":"k","at_ms":"1"}"#, Some("at_ms")),
        (r#"{"key":"k","at_ms":9007199254740991}"#, Some("at_ms")),
        (r#"{"key":"k","at_us":9007199254740992}"#, Some("at_us")),
        (r#"{"key":"k","at_ms":7,"at_us":7}"#, Some("at_ms")),
        (r#"{"key":"k","when":7}"#, Some("when")),
        (r#"{"key":"k","permit":"l1"}"#, Some("permit")),
        (r#"{"op":"release"}"#, Some("permit")),
        (r#"{"op":"release","permit":"l1"}"#, Some("permit")),
        (
            r#"{"op":"renew","permit":"00000000000000000000000000000001@ninline/c{:k}"}"#,
            Some("permit"),
        ),
        (r#"{"op":"renew","permit":"l1","key":"k"}"#, Some("key")),
        (r#"{"op":"release","permit":"l1","cost":1}"#, Some("cost")),
        (&long, None),
    ];
    let mut input = String::from("\n");
    for (line, _) in invalid {
        input.push_str(&format!("{line}\r\n  \n{{\"key\":\"good\"}}\n"));
    }
    let ended = run_with_input(&["simulate"], &input);
    assert_eq!(ended.code, 2);
    let replies = responses(&ended.stdout);
    assert_eq!(replies.len(), 2 * invalid.len(), "blank lines have no response");
    for (place, (line, field)) in invalid.iter().enumerate() {
        let (problem, reply) = (&replies[2 * place], &replies[2 * place + 1]);
        assert_eq!(problem["line"], json!(3 * place + 2), "{line:.80}: {problem}");
        assert_eq!(problem["status"], 400, "{line:.80}: {problem}");
        assert_eq!(problem.get("field").and_then(Value::as_str), *field, "{line:.80}: {problem}");
        assert_eq!(reply["count"], json!(place + 1), "{line:.80}: {reply}");
        assert_eq!(reply["reset_after_ms"], 60_000, "an invalid line does not move the clock");
    }
}

#[test]
fn invalid_utf8_is_a_problem() {
    let scratch = Scratch::new();
    let path = scratch.path().join("lines");
    std::fs::write(&path, b"{\"key\":\"\xff\"}\n\0\n{\"key\":\"k\"}").unwrap();
    let ended = run(&["simulate", path.to_str().unwrap()]);
    let replies = responses(&ended.stdout);
    assert_eq!((ended.code, replies.len()), (2, 3));
    assert_eq!((&replies[0]["line"], &replies[1]["line"]), (&json!(1), &json!(2)));
    assert_eq!(replies[2]["remaining"], 99, "the last line needs no line end");
}

#[test]
fn reads_file_or_standard_input() {
    let scratch = Scratch::new();
    let input = "{\"key\":\"a\"}\n{\"key\":\"a\"}\n";
    let file = scratch.write("lines", input);
    let from_file = run(&["simulate", &file]);
    assert_eq!((from_file.code, responses(&from_file.stdout).len()), (0, 2));
    for args in [&["simulate"][..], &["simulate", "-"]] {
        assert_eq!(run_with_input(args, input).stdout, from_file.stdout, "{args:?}");
    }
    assert_eq!(run(&["simulate"]).stdout, "", "empty input has empty output");
}

#[test]
fn missing_file_is_named() {
    let ended = run(&["simulate", "/no/such/lines"]);
    assert_eq!((ended.code, ended.stdout.as_str()), (2, ""));
    assert!(ended.stderr.contains("/no/such/lines"), "{}", ended.stderr);
    let ended = run(&["simulate", "/"]);
    assert_eq!((ended.code, ended.stdout.as_str()), (2, ""));
    assert!(!ended.stderr.is_empty());
}

#[test]
fn closed_pipe_is_not_an_error() {
    use std::io::{BufRead, BufReader};
    let scratch = Scratch::new();
    let file = scratch.write("lines", &"{\"key\":\"a\"}\n".repeat(20_000));
    let mut command = tollgate(&["simulate", &file]);
    let mut process = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut first = String::new();
    BufReader::new(process.stdout.take().unwrap()).read_line(&mut first).unwrap();
    assert!(first.contains("\"remaining\":99"), "{first}");
    let ended = Ended::from(process.wait_with_output().unwrap());
    assert_eq!((ended.code, ended.stderr.as_str()), (0, ""));
}

#[test]
fn decides_100_000_lines_in_seconds() {
    let mut input = String::new();
    for number in 0..100_000_u64 {
        let (at, key) = (number * 10, number % 1000);
        writeln!(input, r#"{{"at_ms":{at},"facts":{{"client":"c{key}","path":"/x"}}}}"#).unwrap();
    }
    let began = Instant::now();
    let ended = run_with_input(&["simulate"], &input);
    assert_eq!((ended.code, ended.stdout.lines().count()), (0, 100_000));
    assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
}

#[test]
fn overlong_line_is_a_problem_and_is_skipped() {
    let long = format!(r#"{{"key":"{}"}}"#, "x".repeat(5_000_000));
    let lines = format!("{{\"key\":\"a\"}}\n{long}\n{{\"key\":\"a\"}}\n{long}");
    let ended = run_with_input(&["simulate"], &lines);
    let replies = responses(&ended.stdout);
    assert_eq!(replies.len(), 4, "{}", ended.stdout);
    assert_eq!((&replies[1]["status"], &replies[1]["line"]), (&json!(400), &json!(2)));
    assert_eq!(replies[2]["remaining"], 98);
    assert_eq!(replies[3]["line"], 4);
}

#[test]
fn accepts_rates_and_the_short_form() {
    let short = json!({"key": "k", "limit": 2, "window_ms": 1000});
    let replies = simulate_ok(&[
        short.clone(),
        json!({"key": "k", "limits": ["2/s"]}),
        short,
        json!({"at_ms": 500, "key": "k", "limit": 2, "window_ms": 1000, "algorithm": "token_bucket"}),
    ]);
    let seen: Vec<_> = replies.iter().map(|reply| reply["allowed"] == true).collect();
    assert_eq!(seen, [true, true, false, true], "one counter for all forms");
    assert!(replies.iter().all(|reply| reply["limit_name"] == "1s"), "{replies:?}");
    let (replies, ended) = simulate(&[
        json!({"key": "k", "limit": 2}),
        json!({"op": "release", "permit": "l1", "limit": 2, "window_ms": 1000}),
    ]);
    assert_eq!(ended.code, 2);
    assert_eq!(
        (&replies[0]["field"], &replies[1]["field"]),
        (&json!("window_ms"), &json!("limit"))
    );
}
