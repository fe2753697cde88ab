//! The command line: exit codes, output and errors.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::thread::{self, JoinHandle};

use serde_json::{Value, json};

use crate::service::{Ended, Scratch, Service, run, tollgate};

const POLICY: &str = "\
version: 1
tiers: { internal: ['sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08'] }
rules:
  - { name: jobs, match: { tier: internal }, unlimited: true }
  - { name: search, match: { path: /search }, per: [user], limits: [{ rate: 2/h, name: hourly }] }
";

fn check(service: &Service, args: &[&str]) -> Ended {
    run(&[&["check", "--server", &service.url()], args].concat())
}

/// Starts a server that sends these bytes to one connection.
fn raw_server(response: &str) -> (String, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let url = format!("http://{}", listener.local_addr().expect("the listener is bound"));
    let response = response.to_owned();
    let serving = thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a client connects");
        let mut bytes = [0; 4096];
        let _ = stream.read(&mut bytes);
        let _ = stream.write_all(response.as_bytes());
    });
    (url, serving)
}

#[test]
fn check_prints_decision_and_exits_by_verdict() {
    let service = Service::start(&[]);
    let allowed = check(&service, &["user:1"]);
    assert_eq!((allowed.code, allowed.stderr.as_str()), (0, ""));
    assert_eq!(allowed.stdout, "allowed: 99 of 100 left (rule default, limit 60s)\n");
    let costly = check(&service, &["user:1", "--cost", "99"]);
    assert_eq!((costly.code, costly.stderr.as_str()), (0, ""));
    assert!(costly.stdout.starts_with("allowed: 0 of 100 left"), "{}", costly.stdout);
    let refused = check(&service, &["user:1"]);
    assert_eq!((refused.code, refused.stderr.as_str()), (1, ""));
    assert!(refused.stdout.starts_with("refused: retry in "), "{}", refused.stdout);
    assert!(refused.stdout.ends_with(" s (rule default, limit 60s)\n"), "{}", refused.stdout);
    let never = check(&service, &["user:1", "--cost", "101"]);
    assert_eq!((never.code, never.stderr.as_str()), (1, ""));
    assert!(
        never.stdout.starts_with("refused: cost 101 exceeds the limit of 100 (rule default"),
        "{}",
        never.stdout
    );
    let peek = check(&service, &["user:2", "--cost", "0"]);
    assert_eq!(peek.stdout, "allowed: 100 of 100 left (rule default, limit 60s)\n");
}

#[test]
fn check_by_facts_uses_the_policy() {
    let scratch = Scratch::new();
    let policy = scratch.write("policy.yaml", POLICY);
    let service = Service::start(&["--policy", &policy]);
    let allowed = check(&service, &["user=u1", "path=/search?q=a=b"]);
    assert_eq!(
        (allowed.code, allowed.stdout.as_str()),
        (0, "allowed: 1 of 2 left (rule search, limit hourly)\n")
    );
    assert_eq!(check(&service, &["user=u1", "path=/search"]).code, 0);
    assert_eq!(check(&service, &["user=u1", "path=/search"]).code, 1);
    assert_eq!(check(&service, &["path=/search", "user=u2"]).code, 0);
    let unlimited = check(&service, &["api_key=test"]);
    assert_eq!((unlimited.code, unlimited.stdout.as_str()), (0, "allowed: no limit (rule jobs)\n"));
}

#[test]
fn check_prints_the_response_as_json() {
    let service = Service::start(&[]);
    let allowed = check(&service, &["--json", "k"]);
    let reply: Value = serde_json::from_str(&allowed.stdout).expect("one JSON value");
    assert_eq!((allowed.code, &reply["remaining"], &reply["key"]), (0, &json!(99), &json!("k")));
    let refused = check(&service, &["--json", "k", "--cost", "100"]);
    let reply: Value = serde_json::from_str(&refused.stdout).expect("one JSON value");
    assert_eq!((refused.code, &reply["verdict"]), (1, &json!("deny")));
    let wrong = check(&service, &["--json", &"k".repeat(1025)]);
    let failure: Value = serde_json::from_str(&wrong.stdout).expect("one JSON value");
    assert_eq!((wrong.code, &failure["error"]["response"]["field"]), (2, &json!("key")));
}

#[test]
fn invalid_check_exits_with_two() {
    let service = Service::start(&[]);
    for args in [
        &[][..],
        &[""],
        &["a", "b"],
        &["client=a", "b"],
        &["client=a", "client=b"],
        &["client="],
        &["=a"],
        &["k", "--cost", "-1"],
        &["k", "--cost", "1.5"],
        &["k", "--cost", "18446744073709551616"],
        &["k", "--cost", "9007199254740992"],
        &["k", "--costs", "1"],
    ] {
        let ended = check(&service, args);
        assert_eq!((ended.code, ended.stdout.as_str()), (2, ""), "{args:?}: {}", ended.stderr);
        assert!(!ended.stderr.is_empty(), "{args:?}");
    }
    let negative = check(&service, &["k", "--cost", "-1"]).stderr;
    assert!(negative.contains("invalid value '-1' for '--cost <N|UNIT=N>'"), "{negative}");
    let long = "x".repeat(1025);
    assert_eq!(check(&service, &[&long]).code, 2);
}

#[test]
fn invalid_server_url_exits_with_two() {
    for (url, words) in [
        ("https://127.0.0.1:1/check", "path"),
        ("https://a_b!:1", "--server"),
        ("127.0.0.1:8080/check", "path"),
        ("ftp://127.0.0.1", "http://"),
        ("http://", "--server"),
        ("http://127.0.0.1:8080/check", "path"),
        ("", "--server"),
        ("http://127.0.0.1:99999", "--server"),
        ("http://127.0.0.1:80x", "--server"),
    ] {
        let ended = run(&["check", "k", "--server", url]);
        assert_eq!((ended.code, ended.stdout.as_str()), (2, ""), "{url}: {}", ended.stderr);
        assert!(ended.stderr.contains(words), "{url}: {}", ended.stderr);
    }
}

#[test]
fn unreachable_server_exits_with_three() {
    let unused = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let ended = run(&["check", "k", "--server", &format!("http://{unused}")]);
    assert_eq!((ended.code, ended.stdout.as_str()), (3, ""));
    assert!(ended.stderr.contains(&unused.to_string()), "{}", ended.stderr);
}

#[test]
fn silent_server_times_out() {
    // The kernel accepts the connection, and no response is ever sent.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", silent.local_addr().unwrap());
    let ended = run(&["check", "k", "--server", &url]);
    assert_eq!((ended.code, ended.stdout.as_str()), (3, ""), "{}", ended.stderr);
    assert!(ended.stderr.contains(&url), "{}", ended.stderr);
}

#[test]
fn response_of_other_server_exits_with_three() {
    let page = "<html>welcome</html>";
    for (status, kind, body) in [
        ("200 OK", "text/html", page),
        ("200 OK", "application/json", "{}"),
        ("200 OK", "application/json", r#"{"allowed":"yes"}"#),
        ("200 OK", "application/json", "[]"),
        ("500 Internal Server Error", "text/html", page),
        ("503 Service Unavailable", "text/html", page),
        ("301 Moved Permanently", "text/html", page),
        ("404 Not Found", "text/html", page),
        ("401 Unauthorized", "text/html", page),
    ] {
        let length = body.len();
        let response = format!(
            "HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\n\
             connection: close\r\n\r\n{body}"
        );
        let (url, serving) = raw_server(&response);
        let ended = run(&["check", "k", "--server", &url]);
        serving.join().unwrap();
        assert_eq!((ended.code, ended.stdout.as_str()), (3, ""), "{status}: {}", ended.stderr);
    }
    for noise in ["", "SSH-2.0-OpenSSH_9.9\r\n", "HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n{"] {
        let (url, serving) = raw_server(noise);
        let ended = run(&["check", "k", "--server", &url]);
        serving.join().unwrap();
        assert_eq!((ended.code, ended.stdout.as_str()), (3, ""), "{noise:?}: {}", ended.stderr);
    }
}

#[test]
fn server_is_read_from_the_environment() {
    let service = Service::start(&[]);
    let output = tollgate(&["check", "k"]).env("TOLLGATE_SERVER", service.url()).output();
    assert_eq!(Ended::from(output.unwrap()).code, 0);
    let without_scheme = service.address().to_string();
    assert_eq!(run(&["check", "k", "--server", &without_scheme]).code, 0, "http:// is assumed");
}

#[test]
fn validates_a_policy() {
    let scratch = Scratch::new();
    let path = scratch.write("policy.yaml", POLICY);
    let ended = run(&["policy", "validate", &path]);
    assert_eq!((ended.code, ended.stderr.as_str()), (0, ""));
    assert!(
        ended.stdout.starts_with(&format!("{path}: valid (2 rules), version ")),
        "{}",
        ended.stdout
    );
    let ended = run(&["policy", "validate", &path, "--json"]);
    let report: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!((&report["valid"], &report["rules"]), (&json!(true), &json!(2)));
    assert_eq!((&report["warnings"], ended.stderr.as_str()), (&json!([]), ""));
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/policy.yaml");
    let ended = run(&["policy", "validate", example]);
    assert_eq!((ended.code, ended.stderr.as_str()), (0, ""), "the example policy is valid");
}

#[test]
fn imports_configurations_of_other_rate_limiters() {
    let scratch = Scratch::new();
    let envoy = "domain: edge\ndescriptors:\n  - key: user\n    rate_limit: { unit: minute, requests_per_unit: 2 }\n";
    let limits = "- { namespace: shop, max_value: 2, seconds: 60, variables: [user] }\n";
    for (format, text, domain) in [("envoy", envoy, "edge"), ("limitador", limits, "shop")] {
        let path = scratch.write("config.yaml", text);
        let ended = run(&["policy", "import", "--from", format, &path]);
        assert_eq!((ended.code, ended.stderr.as_str()), (0, ""), "{format}");
        assert!(ended.stdout.contains("\ndefaults: { limit: unlimited }\n"), "{}", ended.stdout);
        let policy = scratch.write("imported.yaml", &ended.stdout);
        let validated = run(&["policy", "validate", &policy]);
        assert_eq!((validated.code, validated.stderr.as_str()), (0, ""), "{format}");
        assert!(validated.stdout.contains(": valid (1 rule), version "), "{}", validated.stdout);
        let service = Service::start(&["--policy", &policy]);
        let domain = format!("domain={domain}");
        let facts = [&domain, "descriptor=user=bob", "descriptor_index=0", "entry:user=bob"];
        let codes = [(); 3].map(|()| check(&service, &facts).code);
        assert_eq!(codes, [0, 0, 1], "{format}");
    }
}

#[test]
fn import_errors_have_file_and_line() {
    let scratch = Scratch::new();
    let valid = scratch.write("a.yaml", "domain: a\n");
    let invalid = scratch.write("b.yaml", "domain: b\ndescriptors:\n  - keys: user\n");
    let ended = run(&["policy", "import", "--from", "envoy", &valid, &invalid]);
    let message =
        format!("{invalid}:3:5: descriptors[0].keys: unknown field, did you mean \"key\"?\n");
    assert_eq!((ended.code, ended.stdout.as_str(), ended.stderr), (1, "", message));
    let ended = run(&["policy", "import", "--from", "envoy", "/no/such/file.yaml"]);
    assert_eq!((ended.code, ended.stdout.as_str()), (2, ""));
    assert!(ended.stderr.starts_with("/no/such/file.yaml: "), "{}", ended.stderr);
    assert_eq!(run(&["policy", "import", "--from", "nginx", &valid]).code, 2);
    let metric =
        scratch.write("c.yaml", "domain: c\ndescriptors:\n  - { key: k, detailed_metric: true }\n");
    let ended = run(&["policy", "import", "--from", "envoy", &metric]);
    let warning =
        format!("{metric}:3: warning: detailed_metric: ignored; it changes only metrics\n");
    assert_eq!((ended.code, ended.stderr), (0, warning));
    assert!(ended.stdout.ends_with("rules: []\n"), "{}", ended.stdout);
}

#[test]
fn suspicious_policy_is_a_warning() {
    let scratch = Scratch::new();
    let path = scratch.write(
        "policy.yaml",
        "version: 1\nrules:\n  - { name: all, limits: [1/s] }\n  - { name: lost, limits: [2/s] }\n",
    );
    let ended = run(&["policy", "validate", &path]);
    assert_eq!(ended.code, 0);
    assert!(ended.stderr.contains("warning") && ended.stderr.contains("lost"), "{}", ended.stderr);
    assert!(!ended.stdout.contains("warning"), "{}", ended.stdout);
    let report: Value =
        serde_json::from_str(&run(&["policy", "validate", "--json", &path]).stdout).unwrap();
    assert_eq!(report["warnings"].as_array().unwrap().len(), 1);
}

#[test]
fn policy_errors_have_file_line_and_column() {
    let scratch = Scratch::new();
    let path = scratch.write(
        "policy.yaml",
        "version: 1\nrules:\n  - name: api\n    limitss: [10/min]\n  - name: b\n    limits: [x]\n",
    );
    let ended = run(&["policy", "validate", &path]);
    assert_eq!((ended.code, ended.stdout.as_str()), (2, ""));
    let lines: Vec<&str> = ended.stderr.lines().collect();
    assert_eq!(lines.len(), 7, "two errors of three lines, and their number: {}", ended.stderr);
    assert!(lines[0].starts_with(&format!("{path}:4:5: rules[0].limitss: ")), "{}", lines[0]);
    assert!(lines[3].starts_with(&format!("{path}:6:14: rules[1].limits[0]: ")), "{}", lines[3]);
    let ended = run(&["policy", "validate", "--json", &path]);
    assert_eq!((ended.code, ended.stderr.as_str()), (2, ""));
    let report: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(
        (&report["valid"], &report["line"], &report["column"]),
        (&json!(false), &json!(4), &json!(5))
    );
    assert_eq!((&report["field"], &report["file"]), (&json!("rules[0].limitss"), &json!(path)));
}

#[test]
fn unreadable_policy_is_named() {
    for file in ["/no/such/policy.yaml", "/"] {
        for args in [&["policy", "validate", file][..], &["policy", "explain", file, "client=c"]] {
            let ended = run(args);
            assert_eq!((ended.code, ended.stdout.as_str()), (2, ""), "{args:?}");
            assert!(ended.stderr.contains(file), "{}", ended.stderr);
        }
        let ended = run(&["policy", "validate", file, "--json"]);
        let report: Value = serde_json::from_str(&ended.stdout).unwrap();
        assert_eq!(
            (ended.code, &report["valid"], &report["line"]),
            (2, &json!(false), &json!(null))
        );
    }
}

#[test]
fn explains_a_request_without_a_service() {
    let scratch = Scratch::new();
    let path = scratch.write("policy.yaml", POLICY);
    let ended = run(&["policy", "explain", &path, "user=u1", "path=/search"]);
    assert_eq!((ended.code, ended.stderr.as_str()), (0, ""));
    for words in
        ["jobs: no match", "search: matched", "takes 1 from", "2 per 3600000 ms", "allowed: "]
    {
        assert!(ended.stdout.contains(words), "{words:?} is not in {}", ended.stdout);
    }
    let ended =
        run(&["policy", "explain", &path, "user=u1", "path=/search", "--cost", "3", "--json"]);
    let reply: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!((ended.code, &reply["answer"]["verdict"]), (0, &json!("never")));
    assert_eq!(reply["rules"][1], json!({"rule": "search", "matched": true}));
    for args in [
        &["policy", "explain", &path][..],
        &["policy", "explain", &path, "a=1", "a=2"],
        &["policy", "explain", &path, "a b=1"],
    ] {
        let ended = run(args);
        assert_eq!((ended.code, ended.stdout.as_str()), (2, ""), "{args:?}");
    }
}

#[test]
fn explanation_hides_the_api_key() {
    let scratch = Scratch::new();
    let path = scratch.write("policy.yaml", POLICY);
    for json in [&["--json"][..], &[]] {
        let args = [&["policy", "explain", &path, "api_key=hunter2", "client=c"], json].concat();
        let ended = run(&args);
        assert_eq!(ended.code, 0, "{}", ended.stderr);
        assert!(!ended.stdout.contains("hunter2"), "{}", ended.stdout);
    }
}

#[test]
fn prints_completions_for_common_shells() {
    for shell in ["bash", "zsh", "fish"] {
        let ended = run(&["completions", shell]);
        assert_eq!((ended.code, ended.stderr.as_str()), (0, ""));
        for words in ["tollgate", "simulate", "max-keys"] {
            assert!(ended.stdout.contains(words), "{shell}: {words}");
        }
    }
    let ended = run(&["completions", "cmd"]);
    assert_eq!((ended.code, ended.stdout.as_str()), (2, ""));
}

#[test]
fn help_lists_all_flags() {
    for (command, words) in [
        (&[][..], &["serve", "check", "policy", "simulate", "completions", "man"][..]),
        (
            &["serve"],
            &[
                "--http",
                "--admin",
                "--policy",
                "--redis",
                "--require-redis",
                "--expected-nodes",
                "--data-dir",
                "--discard-bad-state",
                "--node-id",
                "--max-keys",
                "--at-cap",
                "--max-connections",
                "--drain-ms",
                "--allow-unprotected",
                "--trace-decisions",
                "--log-format",
                "--config",
                "127.0.0.1:8080",
                "TOLLGATE_HTTP",
                "TOLLGATE_ADMIN",
                "TOLLGATE_POLICY",
                "TOLLGATE_REDIS",
                "TOLLGATE_DATA_DIR",
                "TOLLGATE_NODE_ID",
                "TOLLGATE_MAX_KEYS",
                "TOLLGATE_AT_CAP",
                "TOLLGATE_MAX_CONNECTIONS",
                "TOLLGATE_DRAIN_MS",
                "TOLLGATE_TLS_CERT",
                "TOLLGATE_TLS_KEY",
                "TOLLGATE_TLS_CLIENT_CA",
                "TOLLGATE_TRACE_DECISIONS",
                "TOLLGATE_CONFIG",
            ],
        ),
        (
            &["check"],
            &[
                "--cost",
                "--server",
                "--json",
                "--ca",
                "--client-cert",
                "TOLLGATE_SERVER",
                "Exit code",
            ],
        ),
        (&["policy"], &["validate", "explain", "schema"]),
        (&["policy", "validate"], &["--json", "FILE"]),
        (&["policy", "explain"], &["--json", "--cost", "FACT=VALUE"]),
        (&["policy", "schema"], &["schema"]),
        (&["simulate"], &["--policy", "LINES", "at_ms"]),
        (&["completions"], &["bash", "zsh", "fish"]),
    ] {
        let ended = run(&[command, &["--help"]].concat());
        assert_eq!((ended.code, ended.stderr.as_str()), (0, ""), "{command:?}");
        for word in words {
            assert!(ended.stdout.contains(word), "{command:?}: {word} is not in {}", ended.stdout);
        }
        let short = run(&[command, &["-h"]].concat());
        assert_eq!(short.code, 0, "{command:?}");
    }
}

#[test]
fn prints_the_version() {
    let expected = format!("tollgate {}\n", env!("CARGO_PKG_VERSION"));
    for flag in ["--version", "-V"] {
        let ended = run(&[flag]);
        assert_eq!((ended.code, ended.stdout.as_str()), (0, expected.as_str()));
    }
    assert!(run(&["serve", "--version"]).stdout.contains(env!("CARGO_PKG_VERSION")));
}

#[test]
fn missing_command_prints_help_and_exits_with_two() {
    for args in [&[][..], &["policy"]] {
        let ended = run(args);
        assert_eq!((ended.code, ended.stdout.as_str()), (2, ""), "{args:?}");
        assert!(ended.stderr.contains("Usage:"), "{}", ended.stderr);
    }
    for args in [&["serv"][..], &["--http"], &["policy", "validat", "x"], &["replay", "x"]] {
        let ended = run(args);
        assert_eq!((ended.code, ended.stdout.as_str()), (2, ""), "{args:?}");
        assert!(!ended.stderr.is_empty());
    }
}

#[test]
fn service_prints_nothing_to_stdout() {
    let service = Service::start(&[]);
    let address = service.address().to_string();
    drop(service);
    let mut command = tollgate(&["serve", "--http", &address, "--drain-ms", "0"]);
    let output = command.stdout(std::process::Stdio::piped());
    let mut service = Service::start_as(output);
    service.check("k");
    service.signal("TERM");
    let stdout = service.take_stdout();
    assert_eq!(service.wait().0.code(), Some(0));
    assert_eq!(stdout, "");
}

#[test]
fn write_error_does_not_panic() {
    let full = || std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    for args in [&["policy", "schema"][..], &["completions", "bash"]] {
        let ended = tollgate(args).stdout(full()).output().unwrap();
        let stderr = String::from_utf8(ended.stderr).unwrap();
        assert_eq!(ended.status.code(), Some(0), "{args:?}: {stderr}");
        assert!(
            stderr.contains("cannot write the result") && !stderr.contains("panicked"),
            "{stderr}"
        );
    }
    let service = Service::start(&[]);
    let ended =
        tollgate(&["check", "k", "--server", &service.url()]).stdout(full()).output().unwrap();
    assert_eq!(ended.status.code(), Some(0), "the request was allowed although the output failed");
}

#[test]
fn key_may_contain_an_equals_sign() {
    let service = Service::start(&[]);
    let ended = run(&["check", "https://x/?a=b", "--json", "--server", &service.url()]);
    assert!(ended.stdout.contains(r#""key":"https://x/?a=b""#), "{}", ended.stdout);
}

#[test]
fn rejects_server_url_with_password_without_showing_it() {
    let ended = run(&["check", "k", "--server", "http://user:hunter2@127.0.0.1:1"]);
    assert_eq!(ended.code, 2);
    assert!(!ended.stderr.contains("hunter2"), "{}", ended.stderr);
}
