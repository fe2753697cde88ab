//! Failures of commands: structured with `--json`, and with the name of a wrong environment variable.

use serde_json::Value;

use crate::service::{Ended, Scratch, eventually, run, run_with_input, tollgate};
use crate::settings::{refused, start};

/// A server address that refuses connections.
const CLOSED: &str = "127.0.0.1:1";

/// Asserts that a failure is one JSON object on standard output and one message on standard error.
fn assert_failure(ended: &Ended, kind: &str, words: &str) {
    assert_eq!(ended.stdout.lines().count(), 1, "{ended:?}");
    let object: Value = serde_json::from_str(&ended.stdout).expect("one JSON object");
    let error = &object["error"];
    assert_eq!(
        (error["kind"].as_str(), error["exit_code"].as_i64()),
        (Some(kind), Some(ended.code.into()))
    );
    assert!(error["message"].as_str().unwrap().contains(words), "{object}");
    assert!(ended.stderr.contains(words), "{}", ended.stderr);
}

#[test]
fn failures_are_json_with_the_json_flag() {
    let admin = |args: &[&str]| {
        let mut command = tollgate(args);
        let command =
            command.env("TOLLGATE_ADMIN_TOKEN", "0123456789").env("TOLLGATE_SERVER", CLOSED);
        Ended::from(command.output().expect("the binary runs"))
    };
    for ended in [
        run(&["check", "k", "--json", "--server", CLOSED]),
        run(&["top", "--once", "--json", "--server", CLOSED]),
        admin(&["override", "set", "c", "1/min", "--rule", "r", "--json"]),
        admin(&["override", "get", "c", "--json"]),
        admin(&["override", "list", "--json"]),
    ] {
        assert_eq!(ended.code, 3, "{ended:?}");
        assert_failure(&ended, "no_response", CLOSED);
    }
    for (args, words) in [
        (&["check", "k", "--json", "--cost", "x"][..], "--cost"),
        (&["check", "a", "b", "--json"], "FACT=VALUE"),
        (&["policy", "explain", "/no/such/file", "client=c", "--json"], "/no/such/file"),
        (&["policy", "explain", "--json", "--unknown"], "--unknown"),
        (&["replay", "--policy", "/no/such/file", "/no/such/log", "--json"], "/no/such/file"),
        (&["override", "get", "c", "--json", "--server", CLOSED], "TOLLGATE_ADMIN_TOKEN"),
    ] {
        let ended = run(args);
        assert_eq!(ended.code, 2, "{args:?}");
        assert_failure(&ended, "usage", words);
    }
}

#[test]
fn validate_reads_several_files_and_standard_input() {
    let scratch = Scratch::new();
    let good = scratch.write("good.yaml", "version: 1\nrules: [{ name: a, limits: 10/min }]\n");
    let bad =
        scratch.write("bad.yaml", "version: 1\nrules: [{ name: a, limits: 10/minute, cots: 1 }]\n");
    let ended = run_with_input(&["policy", "validate", &good, &bad, "-"], "version: 1\n");
    assert_eq!(ended.code, 2, "one file is invalid");
    let lines: Vec<&str> = ended.stdout.lines().collect();
    assert!(lines[0].starts_with(&format!("{good}: valid (1 rule)")), "{lines:?}");
    assert!(lines[1].starts_with("stdin: valid (0 rules)") && lines.len() == 2, "{lines:?}");
    let source = "2 | rules: [{ name: a, limits: 10/minute, cots: 1 }]\n";
    assert_eq!(
        ended.stderr,
        format!(
            "{bad}:2:28: rules[0].limits: not a valid rate, did you mean 10/min?\n\
             {source}  |                            ^^^^^^^^^\n\
             {bad}:2:39: rules[0].cots: unknown field, did you mean \"cost\"?\n\
             {source}  |                                       ^^^^\n\
             {bad}: invalid (2 errors)\n"
        )
    );
    let ended = run(&["policy", "validate", "--json", &good, &bad]);
    let reports: Vec<Value> =
        ended.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((reports.len(), ended.code, ended.stderr.as_str()), (2, 2, ""));
    assert_eq!(reports[1]["errors"].as_array().unwrap().len(), 2);
}

#[test]
fn bad_variables_are_named() {
    for (variable, value, words) in [
        ("TOLLGATE_HTTP", "x", "\"x\" is not HOST:PORT"),
        ("TOLLGATE_MAX_KEYS", "many", "invalid value \"many\""),
        ("TOLLGATE_MAX_CONNECTIONS", "", "invalid value \"\""),
        ("TOLLGATE_REDIS_TIMEOUT_MS", "0", "out of range"),
        ("TOLLGATE_AT_CAP", "refuse", "(valid: allow, deny)"),
        ("TOLLGATE_TRACE_DECISIONS", "maybe", "invalid value \"maybe\""),
        ("REDIS_URL", "localhost", "scheme"),
    ] {
        let error = refused(&[], &[(variable, value)]).stderr;
        assert!(error.starts_with(&format!("tollgate: {variable}: ")), "{error}");
        assert!(error.contains(words) && error.lines().count() == 1, "{error}");
    }
    let mut check = tollgate(&["check", "k"]);
    let output = check.env("TOLLGATE_SERVER", "ftp://host").output().expect("the binary runs");
    let error = Ended::from(output).stderr;
    assert!(error.starts_with("tollgate: TOLLGATE_SERVER: \"ftp://host\" "), "{error}");
    let error = refused(&["--http", "y"], &[("TOLLGATE_HTTP", "127.0.0.1:0")]).stderr;
    assert!(error.starts_with("tollgate: --http: \"y\""), "{error}");
}

#[test]
fn port_without_host_is_on_the_loopback_address() {
    let service = start(&["--http", ":0", "--grpc", ":0", "--resp", ":0"], &[]);
    assert!(service.address().ip().is_loopback());
    eventually("all listeners are on the loopback address", || {
        service.log().matches("://127.0.0.1:").count() == 3
    });
}
