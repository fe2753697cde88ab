//! The data directory of a node with Redis: node count and overrides for a start without Redis.

use std::fs;
use std::os::unix::fs::symlink;

use serde_json::{Value, json};
use tollgate_testkit::server::{Flavor, Server};

use crate::admin_client::{TOKEN, admin, daily_limit, limits_of, put};
use crate::metrics_text::Scrape;
use crate::redis::policy;
use crate::redis_late::{line, node, wait_exact};
use crate::service::{Scratch, Service, eventually};

fn limit(node: &Service, key: &str) -> Value {
    node.post("/peek", format!(r#"{{"key":"{key}"}}"#)).json()["limit"].clone()
}

#[test]
fn data_directory_keeps_node_count_and_overrides() {
    let (scratch, server) = (Scratch::new(), Server::start(Flavor::Redis));
    let file = policy(&scratch, "90/d");
    let [data, other] = ["a", "b"].map(|name| scratch.path().join(name).display().to_string());
    let args = ["--policy", &file, "--expected-nodes", "9", "--data-dir", &data];
    let service = node(&server.url(), &args);
    let second = node(&server.url(), &["--policy", &file, "--data-dir", &other]);
    put(&service, "vip", 300);
    let soon = jiff::Timestamp::now() + jiff::SignedDuration::from_secs(5);
    let body =
        json!({"limits": [{"limit": 7, "window_ms": 86_400_000}], "expires_at": soon.to_string()});
    assert_eq!(admin(&second, "PUT", &limits_of("brief"), &body.to_string()).status, 200);
    put(&second, "gone", 200);
    let saved =
        |name: &str| fs::read_to_string(scratch.path().join("a").join(name)).unwrap_or_default();
    eventually("both files are saved", || {
        let overrides = saved("redis-overrides.json");
        saved("redis-nodes.json").contains("2")
            && ["vip", "brief", "gone"].iter().all(|client| overrides.contains(client))
    });
    assert!(!scratch.path().join("a/counters").exists(), "counters are only in Redis");
    service.kill();
    server.kill();
    eventually("the override expires", || jiff::Timestamp::now() > soon);

    let service = node(&server.url(), &args);
    assert!(line(&service, "started without Redis").contains("nodes=2"), "{}", service.log());
    assert_eq!(["vip", "brief", "gone"].map(|client| limit(&service, client)), [300, 90, 200]);
    let decision = service.check("vip");
    assert_eq!((&decision["share"], &decision["source"]), (&json!(150), &json!("local")));
    let reply = admin(&service, "PUT", &limits_of("new"), &daily_limit(5));
    assert_eq!(reply.status, 503, "overrides are changed in Redis only: {}", reply.body);
    // The server restarts empty: Redis is the truth.
    server.restart();
    wait_exact(&service);
    eventually("Redis has no overrides", || limit(&service, "vip") == 90);
    eventually("the file has no overrides", || !saved("redis-overrides.json").contains("vip"));
    drop(second);
}

#[test]
fn damaged_data_files_are_ignored_with_a_warning() {
    let scratch = Scratch::new();
    let data = scratch.path().display().to_string();
    for content in [
        &b""[..],
        b"{",
        b"\xff\xfe",
        b"[]",
        br#"{"version":2}"#,
        br#"{"version":1,"nodes":0}"#,
        br#"{"version":1,"nodes":-3,"overrides":7}"#,
        br#"{"version":1,"overrides":[{"client":"a","text":"nonsense"}]}"#,
    ] {
        for name in ["redis-nodes.json", "redis-overrides.json"] {
            fs::write(scratch.path().join(name), content).unwrap();
        }
        let args = ["--data-dir", &data, "--expected-nodes", "4"];
        let service = node("redis://127.0.0.1:1", &args);
        for name in ["redis-nodes.json", "redis-overrides.json"] {
            let warning = line(&service, name);
            assert!(warning.contains("WARN") && warning.contains(&data), "{warning}");
        }
        assert!(line(&service, "started without Redis").contains("nodes=4"), "{}", service.log());
        assert_eq!(service.check("k")["allowed"], true);
        let (exit, log) = service.stop();
        assert!(exit.success() && !log.contains("panicked"), "{log}");
    }
    for name in ["redis-nodes.json", "redis-overrides.json"] {
        fs::remove_file(scratch.path().join(name)).unwrap();
        fs::create_dir(scratch.path().join(name)).unwrap();
    }
    let service = node("redis://127.0.0.1:1", &["--data-dir", &data]);
    assert_eq!(service.check("k")["allowed"], true);
}

#[test]
fn full_disk_fails_no_check_and_saving_is_retried() {
    let (scratch, server) = (Scratch::new(), Server::start(Flavor::Redis));
    let data = scratch.path().display().to_string();
    // The first temporary file is a full device. A failed save removes the link.
    symlink("/dev/full", scratch.path().join("redis-overrides.json.new")).unwrap();
    let service = node(&server.url(), &["--data-dir", &data]);
    put(&service, "vip", 300);
    service.wait_for_log("node count or overrides not saved to --data-dir");
    assert_eq!(service.check("k")["source"], "store");
    service.wait_for_log("node count and overrides are saved again");
    let saved = fs::read_to_string(scratch.path().join("redis-overrides.json")).unwrap();
    assert!(saved.contains("vip"), "{saved}");
    assert!(Scrape::of(&service).value("tollgate_state_save_errors_total") >= 1.0);
}

#[test]
fn overrides_of_the_memory_store_are_kept_apart() {
    let scratch = Scratch::new();
    let data = scratch.path().display().to_string();
    let memory = Service::start_with(&["--data-dir", &data], &[("TOLLGATE_ADMIN_TOKEN", TOKEN)]);
    put(&memory, "c1", 7);
    memory.stop();
    let service = node("redis://127.0.0.1:1", &["--data-dir", &data]);
    assert_eq!(limit(&service, "c1"), 100, "overrides of the memory store do not apply");
    service.check("c1");
    service.stop();
    let memory = Service::start_with(&["--data-dir", &data], &[("TOLLGATE_ADMIN_TOKEN", TOKEN)]);
    assert_eq!(limit(&memory, "c1"), 7, "and are kept");
}
