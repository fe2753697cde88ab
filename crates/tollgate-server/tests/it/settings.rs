//! Settings of a service: flag, environment variable, settings file, default.

use std::process::{Command, Stdio};

use serde_json::{Value, json};
use tollgate_testkit::server::{Flavor, Server};

use crate::redis::LONG_TIMEOUT;
use crate::service::{Ended, Scratch, Service, eventually, run, tollgate};

const SECRET: &str = "hunter2";
const REDIS: &str = "redis://:hunter2@127.0.0.1:1/0";

/// Writes a policy with this default limit.
fn policy(scratch: &Scratch, name: &str, limit: &str) -> String {
    scratch.write(name, &format!("version: 1\ndefaults: {{ limit: {limit} }}\n"))
}

fn serve(args: &[&str], environment: &[(&str, &str)]) -> Command {
    let mut command = tollgate(&[&["serve"], args].concat());
    command.envs(environment.iter().copied());
    command
}

pub(crate) fn start(args: &[&str], environment: &[(&str, &str)]) -> Service {
    Service::start_as(&mut serve(args, environment))
}

/// Runs a service that must fail to start, and kills it if it starts.
pub(crate) fn refused(args: &[&str], environment: &[(&str, &str)]) -> Ended {
    let mut command = serve(args, environment);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut process = command.spawn().expect("the binary starts");
    let began = std::time::Instant::now();
    eventually("the process exits", || {
        let running = process.try_wait().expect("the process can be polled").is_none();
        if running && began.elapsed().as_secs() > 20 {
            let _ = process.kill();
            panic!("{args:?} {environment:?} was accepted");
        }
        !running
    });
    let ended = Ended::from(process.wait_with_output().expect("its output can be read"));
    assert_eq!(ended.code, 2, "{args:?} {environment:?}: {}", ended.stderr);
    assert_eq!(ended.stdout, "", "{args:?}: stdout is for results only");
    assert!(!ended.stderr.contains("listening on"), "{}", ended.stderr);
    assert!(!ended.stderr.contains("panicked"), "{}", ended.stderr);
    ended
}

fn status(service: &Service) -> Value {
    service.get("/api/status").json()
}

#[test]
fn flag_beats_environment_beats_file_beats_default() {
    let scratch = Scratch::new();
    let paths = ["flag", "environment", "file"]
        .map(|name| policy(&scratch, &format!("{name}.yaml"), "5/1s"));
    let [by_flag, by_environment, by_file] = &paths;
    let file = scratch.write(
        "settings.yaml",
        &format!("http: 127.0.0.4:0\nmax_keys: 4000\nnode_id: by-file\npolicy: {by_file}\n"),
    );
    let flags = [
        "--http",
        "127.0.0.2:0",
        "--max-keys",
        "2000",
        "--node-id",
        "by-flag",
        "--policy",
        by_flag,
    ];
    let environment = [
        ("TOLLGATE_HTTP", "127.0.0.3:0"),
        ("TOLLGATE_MAX_KEYS", "3000"),
        ("TOLLGATE_NODE_ID", "by-environment"),
        ("TOLLGATE_POLICY", by_environment),
    ];
    let config = ["--config", &file];
    let seen = |service: &Service| {
        let status = status(service);
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let host = service.address().ip().to_string();
        let keys = status["store"]["max_keys"].as_u64().unwrap();
        (host, keys, text(&status["node"]["id"]), text(&status["policy"]["file"]))
    };
    let expected = |host: &str, keys: u64, id: &str, policy: &str| {
        (host.to_owned(), keys, id.to_owned(), policy.to_owned())
    };
    let all = start(&[&config[..], &flags].concat(), &environment);
    assert_eq!(seen(&all), expected("127.0.0.2", 2000, "by-flag", by_flag));
    let no_flag = start(&config, &environment);
    assert_eq!(seen(&no_flag), expected("127.0.0.3", 3000, "by-environment", by_environment));
    let only_file = start(&config, &[]);
    assert_eq!(seen(&only_file), expected("127.0.0.4", 4000, "by-file", by_file));
    let named_by_environment = start(&[], &[("TOLLGATE_CONFIG", &file)]);
    assert_eq!(seen(&named_by_environment), seen(&only_file));
    let nothing = Service::start(&[]);
    let (host, keys, id, policy) = seen(&nothing);
    assert_eq!((host.as_str(), keys, policy.as_str()), ("127.0.0.1", 1_000_000, ""));
    assert!(!id.is_empty());
}

#[test]
fn empty_settings_file_sets_nothing() {
    let scratch = Scratch::new();
    for text in ["", "\n", "# nothing yet\n"] {
        let file = scratch.write("settings.yaml", text);
        let service = Service::start(&["--config", &file]);
        assert_eq!(status(&service)["store"]["max_keys"], 1_000_000, "{text:?}");
    }
}

#[test]
fn invalid_flag_is_named() {
    let here = ["--http", "127.0.0.1:0"];
    let long = "x".repeat(65);
    for (flags, named) in [
        (&["--http", "nonsense"][..], "--http"),
        (&["--http", "127.0.0.1"], "--http"),
        (&["--http", "127.0.0.1:99999"], "--http"),
        (&["--http", ""], "--http"),
        (&["--http", "0.0.0.0:0"], "--http"),
        (&["--http", "[::]:0"], "--http"),
        (&[here[0], here[1], "--admin", "nonsense"], "--admin"),
        (&[here[0], here[1], "--admin", "0.0.0.0:0"], "--admin"),
        (&[here[0], here[1], "--max-keys", "0"], "--max-keys"),
        (&[here[0], here[1], "--max-keys=-1"], "--max-keys"),
        (&[here[0], here[1], "--max-keys", "1.5"], "--max-keys"),
        (&[here[0], here[1], "--max-connections", "0"], "--max-connections"),
        (&[here[0], here[1], "--at-cap", "maybe"], "--at-cap"),
        (&[here[0], here[1], "--node-id", "node 7"], "--node-id"),
        (&[here[0], here[1], "--node-id", ""], "--node-id"),
        (&[here[0], here[1], "--node-id", "nöde"], "--node-id"),
        (&[here[0], here[1], "--node-id", &long], "--node-id"),
        (&[here[0], here[1], "--drain-ms", "soon"], "--drain-ms"),
        (&[here[0], here[1], "--log-format", "xml"], "--log-format"),
        (&[here[0], here[1], "--policy", "/no/such/policy.yaml"], "/no/such/policy.yaml"),
        (&[here[0], here[1], "--config", "/no/such/settings.yaml"], "--config"),
        (&[here[0], here[1], "--config", "/"], "--config"),
        (&[here[0], here[1], "--data-dir", "/dev/null/x"], "--data-dir"),
        (&[here[0], here[1], "--max-kees", "1"], "--max-kees"),
        (&[here[0], here[1], "surplus"], "surplus"),
    ] {
        let ended = refused(flags, &[]);
        assert!(ended.stderr.contains(named), "{flags:?}: {}", ended.stderr);
    }
}

#[test]
fn invalid_variable_is_named() {
    for (name, value, named) in [
        ("TOLLGATE_HTTP", "nonsense", "TOLLGATE_HTTP: "),
        ("TOLLGATE_MAX_KEYS", "many", "TOLLGATE_MAX_KEYS: "),
        ("TOLLGATE_MAX_KEYS", "0", "TOLLGATE_MAX_KEYS: "),
        ("TOLLGATE_AT_CAP", "maybe", "TOLLGATE_AT_CAP: "),
        ("TOLLGATE_NODE_ID", "a b", "TOLLGATE_NODE_ID: "),
        ("TOLLGATE_DRAIN_MS", "-1", "TOLLGATE_DRAIN_MS: "),
        ("RATE_LIMIT_GLOBAL_CAPACITY", "0", "RATE_LIMIT_GLOBAL_CAPACITY"),
        ("RATE_LIMIT_GLOBAL_CAPACITY", "1e308", "RATE_LIMIT_GLOBAL_CAPACITY"),
        ("RATE_LIMIT_GLOBAL_REFILL_PER_SEC", "NaN", "RATE_LIMIT_GLOBAL_REFILL_PER_SEC"),
        ("RATE_LIMIT_GLOBAL_REFILL_PER_SEC", "-1", "RATE_LIMIT_GLOBAL_REFILL_PER_SEC"),
        ("RATE_LIMIT_RULES_PATH", "/no/such/rules.yaml", "/no/such/rules.yaml"),
        ("ENABLE_DISTRIBUTED_RATE_LIMITING", "maybe", "ENABLE_DISTRIBUTED_RATE_LIMITING"),
    ] {
        let args: &[&str] = if name == "TOLLGATE_HTTP" { &[] } else { &["--http", "127.0.0.1:0"] };
        let ended = refused(args, &[(name, value)]);
        assert!(ended.stderr.contains(named), "{name}={value}: {}", ended.stderr);
    }
}

#[test]
fn invalid_settings_file_is_named_with_line_and_key() {
    let scratch = Scratch::new();
    for (text, line, named) in [
        ("max_keys: 5\nmax_kees: 6\n", 2, "max_kees"),
        ("max_keys: many\n", 1, "max_keys"),
        ("node_id: a\nmax_keys: -1\n", 2, "max_keys"),
        ("node_id: a\n\nat_cap: sometimes\n", 3, "at_cap"),
        ("drain_ms: 1.5\n", 1, "drain_ms"),
        ("max_keys: 5\nmax_keys: 6\n", 2, "max_keys"),
    ] {
        let file = scratch.write("settings.yaml", text);
        let ended = refused(&["--http", "127.0.0.1:0", "--config", &file], &[]);
        for words in ["--config", &file, &format!("line {line}"), named] {
            assert!(ended.stderr.contains(words), "{text:?}: {words:?} not in {}", ended.stderr);
        }
    }
    for (text, named) in [("max_keys: 0\n", "--max-keys"), ("node_id: a b\n", "--node-id")] {
        let file = scratch.write("settings.yaml", text);
        let ended = refused(&["--http", "127.0.0.1:0", "--config", &file], &[]);
        assert!(ended.stderr.contains(named), "{text:?}: {}", ended.stderr);
    }
}

#[test]
fn settings_file_error_hides_the_password() {
    let scratch = Scratch::new();
    for text in [format!("redis: {REDIS}\nmax_kees: 6\n"), format!("redis: [{REDIS}]\n")] {
        let file = scratch.write("settings.yaml", &text);
        let ended = refused(&["--http", "127.0.0.1:0", "--config", &file], &[]);
        assert!(!ended.stderr.contains(SECRET), "{}", ended.stderr);
    }
}

#[test]
fn port_in_use_is_named() {
    let service = Service::start(&[]);
    let address = service.address().to_string();
    let ended = refused(&["--http", &address], &[]);
    assert!(ended.stderr.contains("--http") && ended.stderr.contains(&address), "{}", ended.stderr);
    let ended = refused(&["--http", "127.0.0.1:0", "--admin", &address], &[]);
    assert!(
        ended.stderr.contains("--admin") && ended.stderr.contains(&address),
        "{}",
        ended.stderr
    );
    assert_eq!(service.check("k")["remaining"], 99);
}

#[test]
fn non_loopback_listener_requires_allow_unprotected() {
    let ended = refused(&["--http", "0.0.0.0:0"], &[]);
    assert!(ended.stderr.contains("--allow-unprotected"), "{}", ended.stderr);
    let off = [("TOLLGATE_ALLOW_UNPROTECTED", "false")];
    assert!(refused(&["--http", "0.0.0.0:0"], &off).stderr.contains("--allow-unprotected"));
    let scratch = Scratch::new();
    let file = scratch.write("settings.yaml", "allow_unprotected: true\n");
    for (args, environment) in [
        (&["--http", "0.0.0.0:0", "--allow-unprotected"][..], &[][..]),
        (&["--http", "0.0.0.0:0"], &[("TOLLGATE_ALLOW_UNPROTECTED", "true")]),
        (&["--http", "0.0.0.0:0", "--config", &file], &[]),
    ] {
        let service = start(args, environment);
        assert!(service.address().ip().is_unspecified());
    }
}

#[test]
fn global_variables_make_the_default_a_bucket() {
    let capacity = ("RATE_LIMIT_GLOBAL_CAPACITY", "7");
    let refill = ("RATE_LIMIT_GLOBAL_REFILL_PER_SEC", "0.5");
    let http = ["--http", "127.0.0.1:0"];
    for (environment, burst, limit, window_ms) in
        [(&[capacity][..], 7, 1, 1000), (&[refill], 60, 1, 2000), (&[capacity, refill], 7, 1, 2000)]
    {
        let service = start(&http, environment);
        let answer = service.check("k");
        let first = &answer["limits"][0];
        assert_eq!(
            (&answer["rule"], &first["algorithm"]),
            (&json!("default"), &json!("token_bucket"))
        );
        assert_eq!(
            (&first["burst"], &first["limit"], &first["window_ms"]),
            (&json!(burst), &json!(limit), &json!(window_ms)),
            "{environment:?}"
        );
        assert_eq!(answer["remaining"], burst - 1);
        assert_eq!(service.get("/api/limits").json()["default"]["limits"][0]["burst"], burst);
    }
}

/// A changed refill converts the bucket and does not begin a new one.
#[test]
fn global_limit_keeps_its_state_when_its_variables_change() {
    let server = Server::start(Flavor::Redis);
    let url = server.url();
    let node = |refill| {
        let environment =
            [("RATE_LIMIT_GLOBAL_CAPACITY", "5"), ("RATE_LIMIT_GLOBAL_REFILL_PER_SEC", refill)];
        let args = [&["--http", "127.0.0.1:0", "--redis", &url], &LONG_TIMEOUT[..]].concat();
        start(&args, &environment)
    };
    let first = node("0.00001");
    for _ in 0..5 {
        let decision = first.check("k");
        assert_eq!(
            (&decision["allowed"], &decision["limit_name"]),
            (&json!(true), &json!("global"))
        );
    }
    for refill in ["0.00002", "0.000025"] {
        assert_eq!(node(refill).check("k")["allowed"], false, "{refill}");
    }
}

#[test]
fn policy_default_beats_global_variables() {
    let scratch = Scratch::new();
    let environment = [("RATE_LIMIT_GLOBAL_CAPACITY", "7")];
    let with = policy(&scratch, "with.yaml", "9/1h");
    let service = start(&["--http", "127.0.0.1:0", "--policy", &with], &environment);
    assert_eq!(service.check("k")["limit"], 9);
    let without = scratch.write("without.yaml", "version: 1\ndefaults: { missing: share }\n");
    let service = start(&["--http", "127.0.0.1:0", "--policy", &without], &environment);
    assert_eq!(service.check("k")["burst"], 7);
}

#[test]
fn rules_path_has_lower_precedence_than_policy_flag() {
    let scratch = Scratch::new();
    let [theirs, ours, file] = [("theirs", "5/1h"), ("ours", "6/1h"), ("file", "8/1h")]
        .map(|(name, limit)| policy(&scratch, name, limit));
    let config = scratch.write("settings.yaml", &format!("policy: {file}\n"));
    let http = ["--http", "127.0.0.1:0"];
    let limit = |args: &[&str], environment: &[(&str, &str)]| {
        start(&[&http[..], args].concat(), environment).check("k")["limit"].clone()
    };
    let rules = ("RATE_LIMIT_RULES_PATH", theirs.as_str());
    assert_eq!(limit(&[], &[rules]), 5);
    assert_eq!(limit(&["--policy", &ours], &[rules]), 6);
    assert_eq!(limit(&[], &[rules, ("TOLLGATE_POLICY", &ours)]), 6);
    assert_eq!(limit(&["--config", &config], &[rules]), 5);
    assert_eq!(limit(&["--config", &config], &[]), 8);
    assert_eq!(limit(&[], &[("RATE_LIMIT_RULES_PATH", "")]), 100, "empty is unset");
}

#[test]
fn required_redis_is_named_by_its_setting_without_secret() {
    let scratch = Scratch::new();
    let file = scratch.write("settings.yaml", &format!("redis: {REDIS}\n"));
    let http = ["--http", "127.0.0.1:0", "--require-redis"];
    let switch = "ENABLE_DISTRIBUTED_RATE_LIMITING";
    for (args, environment, named) in [
        (&["--redis", REDIS][..], &[][..], "--redis"),
        (&[], &[("TOLLGATE_REDIS", REDIS)], "TOLLGATE_REDIS"),
        (&[], &[("RATE_LIMIT_REDIS_URL", REDIS)], "RATE_LIMIT_REDIS_URL"),
        (&[], &[("REDIS_URL", REDIS)], "REDIS_URL"),
        (&["--config", &file], &[], "redis"),
        (&["--redis", REDIS], &[(switch, "false")], switch),
        (&["--redis", REDIS, "--redis", REDIS], &[], "--redis"),
        (&["--redis", REDIS, "--max-keys", "x"], &[], "--max-keys"),
    ] {
        let ended = refused(&[&http[..], args].concat(), environment);
        assert!(ended.stderr.contains(named), "{args:?} {environment:?}: {}", ended.stderr);
        assert!(!ended.stderr.contains(SECRET), "{args:?} {environment:?}: {}", ended.stderr);
    }
}

#[test]
fn distributed_limiting_can_be_disabled() {
    let environment = [("ENABLE_DISTRIBUTED_RATE_LIMITING", "false"), ("REDIS_URL", REDIS)];
    let service = start(&["--http", "127.0.0.1:0"], &environment);
    assert_eq!(service.check("k")["remaining"], 99);
    let store = status(&service)["store"].clone();
    assert_eq!(store["kind"], "memory");
    assert_eq!(store["why"], "ENABLE_DISTRIBUTED_RATE_LIMITING is false");
    let log = service.log();
    assert!(log.contains("ENABLE_DISTRIBUTED_RATE_LIMITING is false"), "{log}");
    assert!(!log.contains(SECRET) && !store.to_string().contains(SECRET), "{log}");
}

#[test]
fn new_keys_at_the_cap_follow_at_cap() {
    let scratch = Scratch::new();
    let file = scratch.write("settings.yaml", "max_keys: 10\nat_cap: deny\n");
    for (args, environment, pass) in [
        (&["--max-keys", "10"][..], &[][..], true),
        (&["--max-keys", "10", "--at-cap", "allow"], &[], true),
        (&["--max-keys", "10", "--at-cap", "deny"], &[], false),
        (&["--max-keys", "10"], &[("TOLLGATE_AT_CAP", "deny")], false),
        (&["--config", &file], &[], false),
        (&["--config", &file, "--at-cap", "allow"], &[], true),
    ] {
        let service = start(&[&["--http", "127.0.0.1:0"], args].concat(), environment);
        let mut client = service.client();
        let mut check =
            |key: usize| client.post("/check", format!(r#"{{"key":"k{key}","cost":60}}"#)).json();
        for key in 0..10 {
            assert_eq!(check(key)["allowed"], true);
        }
        for key in 10..30 {
            assert_eq!(check(key)["allowed"], pass, "{args:?} {environment:?}");
        }
        assert_eq!(check(3)["allowed"], false, "a known key is still limited");
        let store = status(&service)["store"].clone();
        assert_eq!((&store["keys"], &store["untracked"]), (&json!(10), &json!(20)), "{args:?}");
        assert!(store["warning"].as_str().unwrap().contains("--max-keys"), "{store}");
        assert_eq!(service.get("/readyz").status, 200);
    }
}

#[test]
fn logs_json_on_request() {
    let scratch = Scratch::new();
    let file = scratch.write("settings.yaml", "log_format: json\n");
    for args in [["--log-format", "json"], ["--config", &file]] {
        let (_, log) = Service::start(&args).stop();
        let objects = log.lines().filter(|line| !line.starts_with("listening on "));
        let messages: Vec<Value> = objects
            .map(|line| {
                serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))
            })
            .map(|mut object: Value| object["message"].take())
            .collect();
        assert_eq!(messages, ["starting", "draining", "stopped"], "{args:?}");
    }
    let (_, log) = Service::start(&["--config", &file, "--log-format", "text"]).stop();
    assert!(!log.contains("\"message\""), "{log}");
}

#[cfg(not(feature = "otel"))]
#[test]
fn build_without_traces_logs_a_warning() {
    let mut command = tollgate(&["serve", "--http", "127.0.0.1:0", "--drain-ms", "0"]);
    let command = command.env("OTEL_EXPORTER_OTLP_ENDPOINT", "http://user:canary@127.0.0.1:1");
    let (_, log) = Service::start_as(command).stop();
    assert!(log.contains("no traces") && log.contains("OTEL_EXPORTER_OTLP_ENDPOINT"), "{log}");
    assert!(!log.contains("canary"), "{log}");
    assert!(
        !Service::start(&[]).stop().1.contains("traces"),
        "no warning without a request for traces"
    );
    assert!(Service::start(&["--trace-decisions"]).stop().1.contains("no traces"));
}

#[test]
fn json_log_stays_valid_with_hostile_text() {
    let scratch = Scratch::new();
    let name = "a\"},{\n\u{1b}[31m\\policy.yaml";
    let path = scratch.write(name, "version: 1\nrules: []\n");
    let service = Service::start(&["--log-format", "json", "--policy", &path]);
    scratch.write(name, "version: 1\nrules: [{name: \"x\\n\\\"}\", limits: [1/s]}]\n");
    service.signal("HUP");
    service.wait_for_log("policy not reloaded");
    let (_, log) = service.stop();
    for line in log.lines().filter(|line| !line.starts_with("listening on ")) {
        let entry: Result<Value, _> = serde_json::from_str(line);
        assert!(entry.is_ok_and(|entry| entry.is_object()), "{line}");
    }
}

#[test]
fn rejects_numbers_out_of_range() {
    let huge = u64::MAX.to_string();
    for flag in ["--max-connections", "--max-keys", "--drain-ms"] {
        let ended = run(&["serve", "--http", "127.0.0.1:0", flag, &huge]);
        assert_eq!(ended.code, 2, "{}", ended.stderr);
        assert!(ended.stderr.contains(flag), "{}", ended.stderr);
    }
}

#[test]
fn environment_beats_file_for_booleans() {
    let scratch = Scratch::new();
    let config = scratch.write("config.yaml", "allow_unprotected: true\nhttp: 0.0.0.0:0\n");
    let ended = tollgate(&["serve", "--config", &config])
        .env("TOLLGATE_ALLOW_UNPROTECTED", "false")
        .output()
        .unwrap();
    assert_eq!(ended.status.code(), Some(2));
    let stderr = String::from_utf8(ended.stderr).unwrap();
    assert!(stderr.contains("--allow-unprotected"), "{stderr}");
}
