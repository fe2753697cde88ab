//! Nodes with one Redis enforce each limit exactly, also across restarts.

use serde_json::json;
use tollgate_testkit::server::{Flavor, Server};

use crate::redis::{LONG_TIMEOUT, admitted, node, policy};
use crate::service::{Scratch, Service};

#[test]
fn two_nodes_together_admit_exactly_the_limit() {
    let scratch = Scratch::new();
    let file = policy(&scratch, "100/d");
    for flavor in Flavor::ALL {
        let server = Server::start(flavor);
        let [one, other] = [(); 2].map(|()| node(&server, &["--policy", &file]));
        assert_eq!(admitted(&[&one, &other], "user:1", 50), 100, "{flavor}");
        assert_eq!(admitted(&[&one, &other], "user:2", 50), 100, "{flavor}");
    }
}

#[test]
fn restart_or_crash_of_a_node_keeps_counts() {
    let scratch = Scratch::new();
    let file = policy(&scratch, "100/d");
    let server = Server::start(Flavor::Redis);
    let [one, other] = [(); 2].map(|()| node(&server, &["--policy", &file]));
    assert_eq!(admitted(&[&one, &other], "user:1", 10), 60);
    let (status, _) = one.stop();
    assert!(status.success());
    let one = node(&server, &["--policy", &file]);
    assert_eq!(one.check("user:1")["remaining"], 39);
    other.kill();
    let other = node(&server, &["--policy", &file]);
    assert_eq!(admitted(&[&one, &other], "user:1", 30), 39);
}

#[test]
fn nodes_with_another_prefix_or_database_are_separate() {
    let server = Server::start(Flavor::Redis);
    let one = node(&server, &[]);
    let prefixed = node(&server, &["--redis-prefix", "shop:"]);
    let url = server.url_with("", 3);
    let apart = Service::start(&[&["--redis", &url], &LONG_TIMEOUT[..]].concat());
    for service in [&one, &prefixed, &apart] {
        assert_eq!(service.check("k")["remaining"], 99);
    }
    let kept = server.raw().call(&["KEYS", "*{:k}*"]);
    let mut kept: Vec<&str> = kept.array().iter().map(|key| key.text()).collect();
    kept.sort_unstable();
    assert!(kept[0].starts_with("rl:{:k}:") && kept[1].starts_with("shop:{:k}:"), "{kept:?}");
}

#[test]
fn permit_can_be_released_on_another_node() {
    let server = Server::start(Flavor::Redis);
    let [one, other] = [(); 2].map(|()| node(&server, &[]));
    let body = json!({"key": "k", "limits": [{"algorithm": "concurrency", "limit": 1, "ttl_ms": 86_400_000}]});
    let held = one.post("/check", body.to_string()).json();
    assert_eq!(other.post("/check", body.to_string()).json()["allowed"], false);
    let permit = json!({"permit": held["permit"]}).to_string();
    assert_eq!(other.post("/renew", &permit).json()["renewed"], true);
    assert_eq!(other.post("/release", &permit).json()["released"], true);
    assert_eq!(one.post("/check", body.to_string()).json()["allowed"], true);
}

#[test]
fn batch_is_decided_in_order() {
    let scratch = Scratch::new();
    let server = Server::start(Flavor::Redis);
    let service = node(&server, &["--policy", &policy(&scratch, "100/d")]);
    let items: Vec<_> = (0..200).map(|_| json!({"key": "k"})).collect();
    let reply = service.post("/check/batch", json!({ "requests": items }).to_string()).json();
    let results = reply["results"].as_array().unwrap();
    for (index, result) in results.iter().enumerate() {
        assert_eq!(result["allowed"], index < 100, "{index}: {result}");
        assert_eq!(result["count"], (index + 1).min(100));
    }
}
