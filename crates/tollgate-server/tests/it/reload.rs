//! Reloads of the policy file of a running service.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::metrics_text::Scrape;
use crate::service::{Scratch, Service, eventually};

const GOOD: &str = "version: 1\n\
                    rules:\n\
                    \x20 - { name: api, per: [client], limits: [{ rate: 1000/h, name: hourly }] }\n";
const OK: &str = r#"tollgate_policy_reloads_total{result="ok"}"#;
const ERROR: &str = r#"tollgate_policy_reloads_total{result="error"}"#;

fn hourly(count: u64, more: &str) -> String {
    format!(
        "version: 1\nrules:\n  - {{ name: api, per: [client], limits: [{{ rate: {count}/h, name: \
         hourly }}] }}\n{more}"
    )
}

fn policy_status(service: &Service) -> Value {
    service.get("/api/status").json()["policy"].clone()
}

fn peek(service: &Service, key: &str) -> Value {
    service.post("/peek", json!({ "key": key }).to_string()).json()
}

#[test]
fn changed_file_is_activated_and_usage_is_kept() {
    let scratch = Scratch::new();
    let path = scratch.write("policy.yaml", &hourly(10, ""));
    let service = Service::start(&["--policy", &path]);
    let old = policy_status(&service);
    for _ in 0..4 {
        service.check("c");
    }
    assert_eq!(peek(&service, "c")["remaining"], 6);
    let start = Instant::now();
    scratch.write(
        "policy.yaml",
        &hourly(20, "  - { name: more, match: { path: /x }, limits: [1/h] }\n"),
    );
    eventually("the new limit", || peek(&service, "c")["limit"] == 20);
    assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
    assert_eq!(
        (&peek(&service, "c")["count"], &peek(&service, "c")["remaining"]),
        (&json!(4), &json!(16))
    );
    let new = policy_status(&service);
    assert_ne!(old["version"], new["version"]);
    assert!(old["loaded_at"].as_str() < new["loaded_at"].as_str(), "{old} {new}");
    assert_eq!((&new["rules"], &new["error"]), (&json!(2), &json!(null)));
    scratch.write("policy.yaml", &hourly(3, ""));
    eventually("the lower limit", || peek(&service, "c")["limit"] == 3);
    let refused = service.check("c");
    assert_eq!((&refused["allowed"], &refused["remaining"]), (&json!(false), &json!(0)));
    scratch.write("policy.yaml", &hourly(10, ""));
    eventually("the first limit again", || peek(&service, "c")["limit"] == 10);
    assert_eq!(peek(&service, "c")["remaining"], 6, "a reload refills nothing");
}

#[test]
fn detects_a_change_right_after_the_start() {
    for _ in 0..40 {
        let scratch = Scratch::new();
        let path = scratch.write("policy.yaml", &hourly(10, ""));
        let service = Service::start(&["--policy", &path]);
        scratch.write("policy.yaml", &hourly(20, ""));
        eventually("the new limit", || peek(&service, "c")["limit"] == 20);
    }
}

#[test]
fn default_applies_after_a_rule_is_removed() {
    let scratch = Scratch::new();
    let path = scratch.write("policy.yaml", GOOD);
    let service = Service::start(&["--policy", &path]);
    assert_eq!(service.check("c")["rule"], "api");
    scratch.write("policy.yaml", "version: 1\n");
    eventually("the default", || peek(&service, "c")["rule"] == "default");
    scratch.write("policy.yaml", GOOD);
    eventually("the rule again", || peek(&service, "c")["rule"] == "api");
    assert_eq!(peek(&service, "c")["count"], 1, "the rule's counter is kept");
}

#[test]
fn sighup_reloads_an_unchanged_file() {
    let scratch = Scratch::new();
    let path = scratch.write("policy.yaml", GOOD);
    let service = Service::start(&["--policy", &path]);
    service.check("c");
    for times in 1..=3 {
        service.signal("HUP");
        eventually("a reload", || Scrape::of(&service).value(OK) >= f64::from(times));
    }
    assert_eq!(Scrape::of(&service).value(OK), 3.0, "once per signal");
    assert_eq!(peek(&service, "c")["count"], 1);
}

#[test]
fn sighup_without_a_policy_file_changes_nothing() {
    let service = Service::start(&[]);
    service.check("c");
    let before = policy_status(&service);
    service.signal("HUP");
    service.wait_for_log("no policy file");
    assert_eq!(policy_status(&service), before);
    assert_eq!(service.check("c")["remaining"], 98);
    let scrape = Scrape::of(&service);
    assert_eq!((scrape.value(OK), scrape.value(ERROR)), (0.0, 0.0));
}

/// Content that makes a policy file bad.
enum Bad {
    Text(String),
    Bytes(Vec<u8>),
    Deleted,
    Directory,
}

/// Returns descriptions, contents, and what the error must contain in addition to the path.
fn bad_files() -> Vec<(&'static str, Bad, &'static [&'static str])> {
    let text = |text: &str| Bad::Text(text.to_owned());
    let rule = |rule: &str| Bad::Text(format!("version: 1\nrules:\n  - {rule}\n"));
    vec![
        ("not YAML", text("version: 1\nrules: [\n"), &["policy.yaml:"]),
        ("prose", text("Dear operator,\nplease allow this.\n"), &["policy.yaml:1:1"]),
        ("tabs", text("version: 1\nrules:\n\t- name: x\n"), &["policy.yaml:3:"]),
        (
            "an unknown field",
            text("version: 1\nrules:\n  - name: api\n    limitss: [10/min]\n"),
            &["policy.yaml:4:5", "rules[0].limitss", "\"limits\""],
        ),
        ("a wrong version", text("version: 2\n"), &["policy.yaml:1:10", "version"]),
        ("no version", text("rules: []\n"), &["policy.yaml:1:1", "version"]),
        (
            "a rule twice",
            text(
                "version: 1\nrules:\n  - { name: a, limits: [1/s] }\n  - { name: a, limits: [1/s] }\n",
            ),
            &["policy.yaml:4:", "rules[1].name"],
        ),
        (
            "a bad rate",
            rule("{ name: a, limits: [ten/min] }"),
            &["policy.yaml:3:", "rules[0].limits[0]"],
        ),
        ("a negative rate", rule("{ name: a, limits: [-1/s] }"), &["rules[0].limits[0]"]),
        ("a rate that is no number", rule("{ name: a, limits: [NaN/s] }"), &["rules[0].limits[0]"]),
        ("a window of no length", rule("{ name: a, limits: [1/0s] }"), &["rules[0].limits[0]"]),
        ("an empty file", text(""), &["policy.yaml:1:1"]),
        ("only a comment", text("# later\n"), &["policy.yaml:"]),
        ("a deleted file", Bad::Deleted, &["policy.yaml"]),
        ("binary", Bad::Bytes(b"\x7fELF\x02\x01\x00\xff\xfe".to_vec()), &["policy.yaml"]),
        ("nothing but zeroes", Bad::Bytes(vec![0; 4096]), &["policy.yaml:"]),
        ("five megabytes", Bad::Text("# \n".repeat(5 << 20 >> 1)), &["policy.yaml"]),
        ("a directory in its place", Bad::Directory, &["policy.yaml"]),
        (
            "an unknown algorithm",
            rule("{ name: a, limits: [1/s], algorithm: leaky_bucket }"),
            &["policy.yaml:3:", "rules[0].algorithm"],
        ),
        ("a reserved name", rule("{ name: inline, limits: [1/s] }"), &["rules[0].name"]),
        ("a field twice", text("version: 1\nversion: 1\n"), &["policy.yaml:2:1", "version"]),
        ("an alias", text("version: 1\nrules: &r []\n"), &["policy.yaml:2:"]),
        ("two documents", text("version: 1\n---\nversion: 1\n"), &["policy.yaml:"]),
    ]
}

fn make_bad(path: &str, scratch: &Scratch, bad: &Bad) {
    match bad {
        Bad::Text(text) => drop(scratch.write("policy.yaml", text)),
        Bad::Bytes(bytes) => {
            let new = scratch.path().join("new");
            fs::write(&new, bytes).unwrap();
            fs::rename(new, path).unwrap();
        }
        Bad::Deleted => fs::remove_file(path).unwrap(),
        Bad::Directory => {
            fs::remove_file(path).unwrap();
            fs::create_dir(path).unwrap();
        }
    }
}

fn make_good(path: &str, scratch: &Scratch) {
    if PathBuf::from(path).is_dir() {
        fs::remove_dir(path).unwrap();
    }
    scratch.write("policy.yaml", GOOD);
}

#[test]
fn bad_file_keeps_the_previous_policy_and_is_reported() {
    let scratch = Scratch::new();
    let path = scratch.write("policy.yaml", GOOD);
    let service = Service::start(&["--policy", &path]);
    let version = policy_status(&service)["version"].clone();
    for (number, (what, bad, expected)) in (1_u32..).zip(bad_files()) {
        let logged = service.log().len();
        make_bad(&path, &scratch, &bad);
        eventually(what, || Scrape::of(&service).value(ERROR) >= f64::from(number));
        let status = policy_status(&service);
        let error = status["error"].as_str().unwrap_or_else(|| panic!("{what}: {status}"));
        // The service logs before it counts, but the test may receive the log line later.
        let is_logged = |words: &str| service.log()[logged..].contains(words);
        for words in [&[path.as_str()], expected].concat() {
            assert!(error.contains(words), "{what}: {words:?} is not in {error:?}");
            eventually(&format!("{what}: {words:?} in the log"), || is_logged(words));
        }
        assert!(is_logged("ERROR") && is_logged("the previous policy stays active"), "{what}");
        assert_eq!(status["version"], version, "{what}");
        let decision = service.check("c");
        let counted = (&decision["rule"], &decision["count"]);
        assert_eq!(counted, (&json!("api"), &json!(number)), "{what}");
        assert_eq!(service.get("/readyz").status, 200, "{what}");
        make_good(&path, &scratch);
        eventually("recovered", || policy_status(&service)["error"].is_null());
        let scrape = Scrape::of(&service);
        assert_eq!(scrape.value(ERROR), f64::from(number), "{what}: one failed reload");
        assert_eq!(scrape.value(OK), f64::from(number), "{what}: one successful reload");
    }
    assert!(!service.log().contains("panicked"));
}

#[test]
fn status_shows_the_error_of_the_current_file() {
    let scratch = Scratch::new();
    let path = scratch.write("policy.yaml", GOOD);
    let service = Service::start(&["--policy", &path]);
    make_bad(&path, &scratch, &Bad::Deleted);
    eventually("no file", || policy_status(&service)["error"].is_string());
    let no_file = policy_status(&service)["error"].clone();
    make_bad(&path, &scratch, &bad_files().into_iter().find(|bad| bad.0 == "binary").unwrap().1);
    eventually("the file exists again and has a different error", || {
        policy_status(&service)["error"] != no_file
    });
}

#[test]
fn pipe_instead_of_the_file_blocks_nothing() {
    let scratch = Scratch::new();
    let path = scratch.write("policy.yaml", GOOD);
    let service = Service::start(&["--policy", &path]);
    let pipe = scratch.path().join("pipe");
    let mkfifo = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(mkfifo.expect("mkfifo is installed").success());
    fs::rename(pipe, &path).unwrap();
    eventually("a failed reload", || Scrape::of(&service).value(ERROR) > 0.0);
    assert_eq!(service.check("c")["rule"], "api");
    assert_eq!(Scrape::of(&service).value(ERROR), 1.0, "a pipe is not a policy file");
    make_good(&path, &scratch);
    eventually("recovered", || policy_status(&service)["error"].is_null());
    assert_eq!(service.stop().0.code(), Some(0));
}

#[test]
fn detects_a_replaced_directory_link() {
    let scratch = Scratch::new();
    let link = |to: &str| {
        std::os::unix::fs::symlink(to, scratch.path().join("new")).unwrap();
        fs::rename(scratch.path().join("new"), scratch.path().join("live")).unwrap();
    };
    for (directory, count) in [("v1", 10), ("v2", 20)] {
        fs::create_dir(scratch.path().join(directory)).unwrap();
        fs::write(scratch.path().join(directory).join("policy.yaml"), hourly(count, "")).unwrap();
    }
    link("v1");
    let path = scratch.path().join("live/policy.yaml");
    let service = Service::start(&["--policy", path.to_str().unwrap()]);
    assert_eq!(service.check("c")["limit"], 10);
    link("v2");
    eventually("the new limit", || peek(&service, "c")["limit"] == 20);
    assert_eq!(peek(&service, "c")["count"], 1);
}

#[test]
fn recovers_with_the_original_text_after_two_bad_files() {
    let scratch = Scratch::new();
    let path = scratch.write("policy.yaml", GOOD);
    let service = Service::start(&["--policy", &path]);
    let version = policy_status(&service)["version"].clone();
    for bad in ["version: 3\n", "version: 4\n"] {
        scratch.write("policy.yaml", bad);
        service.signal("HUP");
        eventually(bad, || policy_status(&service)["error"].is_string());
    }
    scratch.write("policy.yaml", GOOD);
    eventually("recovered", || policy_status(&service)["error"].is_null());
    assert_eq!(policy_status(&service)["version"], version);
}

#[test]
fn bad_file_fails_the_start() {
    let scratch = Scratch::new();
    let path = scratch.write("policy.yaml", "version: 1\nrules:\n  - { nam: x }\n");
    let ended = crate::service::run(&["serve", "--http", "127.0.0.1:0", "--policy", &path]);
    assert_eq!(ended.code, 2);
    assert!(ended.stderr.contains("policy.yaml:3:7: rules[0].nam"), "{}", ended.stderr);
    assert!(!ended.stderr.contains("listening on"), "{}", ended.stderr);
    assert_eq!(ended.stdout, "");
}

#[test]
fn reloads_under_load_admit_exactly_the_limit() {
    let scratch = Scratch::new();
    let path = scratch.write("policy.yaml", GOOD);
    let service = Service::start(&["--policy", &path]);
    let (admitted, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    thread::scope(|threads| {
        for _ in 0..4 {
            threads.spawn(|| {
                let mut client = service.client();
                while !stop.load(Ordering::Relaxed) {
                    let decision = client.post("/check", r#"{"key":"hot"}"#).json();
                    assert_eq!(decision["rule"], "api", "{decision}");
                    admitted.fetch_add(u64::from(decision["allowed"] == true), Ordering::Relaxed);
                }
            });
        }
        for round in 1..=50_u32 {
            let before = format!(
                "  - {{ name: before-{round}, match: {{ path: /{round} }}, limits: [1/h] }}\n"
            );
            let after = format!("  - {{ name: after-{round}, limits: [{round}/h] }}\n");
            let api =
                "  - { name: api, per: [client], limits: [{ rate: 1000/h, name: hourly }] }\n";
            scratch.write("policy.yaml", &format!("version: 1\nrules:\n{before}{api}{after}"));
            service.signal("HUP");
            eventually("a reload", || Scrape::of(&service).value(OK) >= f64::from(round));
        }
        eventually("the limit is used up", || peek(&service, "hot")["remaining"] == 0);
        stop.store(true, Ordering::Relaxed);
    });
    assert_eq!(admitted.load(Ordering::Relaxed), 1000);
    assert_eq!(Scrape::of(&service).value(ERROR), 0.0);
}

#[test]
fn sighup_during_the_start_does_not_stop_the_service() {
    let scratch = Scratch::new();
    let directory = scratch.path().to_str().unwrap();
    for _ in 0..10 {
        let mut starting =
            crate::service::tollgate(&["serve", "--http", "127.0.0.1:0", "--data-dir", directory])
                .stderr(std::process::Stdio::piped())
                .spawn()
                .unwrap();
        // The signal handlers are installed before the first output.
        let mut output = [0];
        std::io::Read::read_exact(starting.stderr.as_mut().unwrap(), &mut output).unwrap();
        crate::service::signal(starting.id(), "HUP");
        crate::service::signal(starting.id(), "TERM");
        let ended = starting.wait().unwrap();
        assert_eq!(ended.code(), Some(0), "{ended:?}");
    }
}
