//! Start with Redis: which setting selects it, and errors when it cannot be used.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::thread;

use serde_json::json;
use tollgate_testkit::server::{Flavor, Server};

use crate::redis::LONG_TIMEOUT;
use crate::service::{Scratch, Service};
use crate::settings::{refused, start};

const HTTP: [&str; 2] = ["--http", "127.0.0.1:0"];
const SECRET: &str = "hunter2";

/// No server listens on this port.
const NOWHERE: &str = "redis://:hunter2@127.0.0.1:1/0";

#[test]
fn strongest_setting_selects_the_redis() {
    let server = Server::start(Flavor::Redis);
    let url = server.url();
    let scratch = Scratch::new();
    let secret = scratch.write("url", &format!("{url}\n"));
    let good = scratch.write("good.yaml", &format!("redis: {url}\n"));
    let bad = scratch.write("bad.yaml", &format!("redis: {NOWHERE}\n"));
    let [own, others, usual] = ["TOLLGATE_REDIS", "RATE_LIMIT_REDIS_URL", "REDIS_URL"];
    let own_file = "TOLLGATE_REDIS_FILE";
    for (args, environment, by) in [
        (
            &["--redis", &url, "--config", &bad][..],
            &[(own, NOWHERE), (others, NOWHERE), (usual, NOWHERE)][..],
            "--redis",
        ),
        (&["--redis", &url], &[(own_file, "/no/such/file")], "--redis"),
        (&["--config", &bad], &[(own, &url), (others, NOWHERE), (usual, NOWHERE)], own),
        (&["--config", &bad], &[(own_file, &secret), (others, NOWHERE)], own_file),
        (&["--config", &bad], &[(others, &url), (usual, NOWHERE)], others),
        (&["--config", &bad], &[(usual, &url)], usual),
        (&["--config", &good], &[], "redis in the settings file"),
        (&[], &[("ENABLE_DISTRIBUTED_RATE_LIMITING", "true"), (usual, &url)], usual),
    ] {
        let service = start(&[&HTTP[..], &LONG_TIMEOUT, args].concat(), environment);
        let store = service.get("/api/status").json()["store"].clone();
        let why = format!("set by {by}");
        assert_eq!((&store["kind"], &store["why"]), (&json!("redis"), &json!(why)));
        assert!(service.log().contains(&why), "{}", service.log());
        assert_eq!(service.check("k")["allowed"], true);
    }
}

#[test]
fn start_logs_the_store_without_its_password() {
    let server = Server::builder(Flavor::Redis).arg("--requirepass").arg(SECRET).start();
    let url = server.url_with(":hunter2@", 0);
    let mut service = start(&[HTTP, LONG_TIMEOUT].concat(), &[("TOLLGATE_REDIS", &url)]);
    service.check("k");
    let shown = format!("redis://***@127.0.0.1:{}/0", server.port());
    let store = service.get("/api/status").json()["store"].clone();
    assert_eq!(store["address"], shown.as_str());
    let version = store["server"].as_str().unwrap().to_owned();
    assert!(version.starts_with("redis ") && version.contains('.'), "{version}");
    assert!(store["keys"].is_null() && store["warning"].is_null(), "{store}");
    let mut output: String = ["/api/status", "/api/nodes", "/metrics", "/api/limits"]
        .iter()
        .map(|path| service.get(path).body)
        .collect();
    service.signal("TERM");
    let (_, log) = service.wait();
    let starting = log.lines().find(|line| line.contains("starting")).expect("a start line");
    assert!(starting.contains(&shown) && starting.contains(&version), "{starting}");
    output.push_str(&log);
    assert!(!output.contains(SECRET), "{output}");
}

/// Returns the one line of a failed start.
fn failure(url: &str) -> String {
    let ended = refused(&[&HTTP[..], &["--redis", url]].concat(), &[]);
    assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
    assert!(ended.stderr.starts_with("tollgate: --redis: Redis at "), "{}", ended.stderr);
    assert!(!ended.stderr.contains(SECRET), "{}", ended.stderr);
    ended.stderr
}

#[test]
fn unusable_redis_is_one_line_and_exit_code_2() {
    let open = Server::start(Flavor::Redis);
    let guarded = Server::builder(Flavor::Redis).arg("--requirepass").arg("right").start();
    let no_redis = Service::start(&[]);
    for (url, reason) in [
        (guarded.url_with(":hunter2@", 0), "refused the password"),
        (guarded.url_with("someone:hunter2@", 0), "refused the password"),
        (guarded.url(), "requires a password"),
        (open.url_with(":hunter2@", 0), "refused the password"),
        (open.url_with("", 99), "has no database 99"),
        (format!("redis://:hunter2@{}", no_redis.address()), "does not speak the Redis protocol"),
    ] {
        let line = failure(&url);
        assert!(line.contains(reason), "{reason}: {line}");
    }
}

/// Starts a server that replies to each group of commands on a connection with the next of these. Returns its URL.
fn peer(replies: &'static [&'static str]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("redis://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        while let Ok((mut stream, _)) = listener.accept() {
            thread::spawn(move || {
                for reply in replies {
                    let _ = stream.read(&mut [0; 4096]);
                    let _ = stream.write_all(reply.as_bytes());
                }
                // Blocks until the client closes the connection.
                let _ = stream.read_to_end(&mut Vec::new());
            });
        }
    });
    url
}

#[test]
fn too_old_redis_fails_the_start() {
    // Replies to CLIENT SETNAME and INFO.
    let line = failure(&peer(&["+OK\r\n$21\r\nredis_version:5.0.7\r\n\r\n"]));
    assert!(line.contains("Redis 5.0.7 is too old"), "{line}");
}

#[test]
fn redis_of_another_role_fails_the_start() {
    let primary = Server::start(Flavor::Redis);
    let replica = Server::start(Flavor::Redis);
    let port = primary.port().to_string();
    replica.raw().call(&["REPLICAOF", "127.0.0.1", &port]);
    assert!(failure(&replica.url()).contains("is a replica"));
    let cluster = format!("redis+cluster://127.0.0.1:{port}");
    let ended = refused(&[&HTTP[..], &["--redis", &cluster]].concat(), &[]);
    assert!(ended.stderr.contains("is not a node of a cluster"), "{}", ended.stderr);
    let sentinel = format!("redis+sentinel://127.0.0.1:{port}/mymaster");
    let ended = refused(&[&HTTP[..], &["--redis", &sentinel]].concat(), &[]);
    assert!(ended.stderr.contains("does not reply like a sentinel"), "{}", ended.stderr);
}

#[test]
fn redis_that_is_not_ready_yet_does_not_fail_the_start() {
    const READY: &str = "+OK\r\n$21\r\nredis_version:7.0.0\r\n\r\n";
    for (replies, reason) in [
        (&[READY, "-LOADING Redis is loading\r\n"][..], "is still loading"),
        (&[READY, "-BUSY Redis is busy\r\n"], "is busy"),
        (&["+OK\r\n-MASTERDOWN Link with MASTER is down\r\n"], "lost its primary"),
        (&["-ERR max number of clients reached\r\n"], "maxclients"),
    ] {
        let service = start(&[&HTTP[..], &["--redis", &peer(replies)]].concat(), &[]);
        assert!(service.log().contains("started without Redis"), "{}", service.log());
        assert!(service.log().contains(reason), "{}", service.log());
        assert_eq!(service.check("k")["source"], "local");
    }
}

#[test]
fn bad_redis_setting_is_named_without_its_value() {
    let scratch = Scratch::new();
    let [empty, no_file] = [scratch.write("empty", "\n"), "/no/such/file".to_owned()];
    for (args, environment, words) in [
        (&["--redis", "http://:hunter2@localhost"][..], &[][..], &["--redis", "scheme"][..]),
        (&["--redis", "redis://:hunter2@localhost:x"], &[], &["--redis", "port"]),
        (&[], &[("REDIS_URL", "redis://:hunter2@localhost/x")], &["REDIS_URL", "database"]),
        (&[], &[("TOLLGATE_REDIS_FILE", &*no_file)], &["TOLLGATE_REDIS_FILE", &no_file]),
        (&[], &[("TOLLGATE_REDIS_FILE", &*empty)], &["TOLLGATE_REDIS_FILE", "empty"]),
        (
            &[],
            &[("TOLLGATE_REDIS_FILE", &*empty), ("TOLLGATE_REDIS", NOWHERE)],
            &["TOLLGATE_REDIS_FILE", "TOLLGATE_REDIS;"],
        ),
        (&["--redis-timeout-ms", "0"], &[], &["--redis-timeout-ms"]),
        (&["--redis-timeout-ms", "60001"], &[], &["--redis-timeout-ms"]),
        (&[], &[("TOLLGATE_REDIS_TIMEOUT_MS", "soon")], &["TOLLGATE_REDIS_TIMEOUT_MS"]),
        (&["--redis-prefix", "a{b}"], &[], &["--redis-prefix"]),
        (&["--report-ms", "0"], &[], &["--report-ms", "10 to 1000"]),
        (&["--report-ms", "1001"], &[], &["--report-ms", "10 to 1000"]),
        (
            &[],
            &[("TOLLGATE_NODE_LIFETIME_MS", "1000")],
            &["TOLLGATE_NODE_LIFETIME_MS", "--report-ms"],
        ),
    ] {
        let ended = refused(&[&HTTP[..], args].concat(), environment);
        for word in words {
            assert!(ended.stderr.contains(word), "{args:?} {environment:?}: {}", ended.stderr);
        }
        assert!(!ended.stderr.contains(SECRET), "{}", ended.stderr);
    }
}

#[test]
fn settings_file_can_contain_redis_settings() {
    let server = Server::start(Flavor::Redis);
    let scratch = Scratch::new();
    let config = scratch.write(
        "settings.yaml",
        &format!(
            "redis: {}\nredis_timeout_ms: 20000\nredis_prefix: 'shop:'\nreport_ms: 50\n\
             node_lifetime_ms: 60000\nnode_id: by-file\n",
            server.url()
        ),
    );
    let service = start(&[&HTTP[..], &["--config", &config]].concat(), &[]);
    service.check("k");
    assert_eq!(server.raw().call(&["KEYS", "shop:{:k}*"]).array().len(), 1);
    assert_eq!(service.get("/api/nodes").json()["nodes"][0]["id"], "by-file");
}
