//! Counters and blocks that are stored in Redis, listed by any node.

use serde_json::json;
use tollgate_testkit::server::{Flavor, Server};

use crate::listings::{all_pages, keys, take};
use crate::openapi::{check, description};
use crate::read_api::{get, parse_time};
use crate::redis::{node, policy};
use crate::service::Scratch;

#[test]
fn node_lists_counters_of_another_node() {
    let scratch = Scratch::new();
    let file = policy(&scratch, "5/d");
    let server = Server::start(Flavor::Redis);
    let [one, other] = [(); 2].map(|()| node(&server, &["--policy", &file]));
    take(&one, &json!({"key": "a", "cost": 2}));
    let inline = json!([{"name": "m", "unit": "requests", "algorithm": "token_bucket", "limit": 10, "window_ms": 86_400_000, "burst": 20}]);
    take(&one, &json!({"key": "b", "cost": 3, "limits": inline}));
    for path in ["/api/counters", "/api/blocks", "/api/nodes", "/api/status"] {
        check(&description(), path, "get", &other.get(path));
    }
    let page = get(&other, "/api/counters");
    let mut counters = page["counters"].as_array().unwrap().clone();
    counters.sort_by_key(|counter| counter["key"].to_string());
    assert_eq!(page["cursor"], json!(null));
    assert_eq!(
        counters,
        [
            json!({"key": "a", "tenant": "", "rule": "default", "name": "86400s", "unit": "requests", "algorithm": "sliding_window",
                "count": 2, "remaining": 3, "limit": 5, "window_ms": 86_400_000}),
            json!({"key": "b", "tenant": "", "rule": "inline", "name": "m", "unit": "requests", "algorithm": "token_bucket",
                "count": 3, "remaining": 17, "limit": 20, "burst": 20, "window_ms": 86_400_000}),
        ]
    );
}

#[test]
fn node_lists_keys_blocked_by_another_node() {
    let scratch = Scratch::new();
    let file = policy(&scratch, "2/d");
    let server = Server::start(Flavor::Redis);
    let [one, other] = [(); 2].map(|()| node(&server, &["--policy", &file]));
    for (key, cost) in [("free", 1), ("full", 2)] {
        assert_eq!(take(&one, &json!({"key": key, "cost": cost}))["allowed"], true);
    }
    let blocked = get(&other, "/api/blocks")["blocked"].clone();
    assert_eq!(keys(blocked.as_array().unwrap()), ["full"]);
    assert!(parse_time(&blocked[0]["blocked_until"]) > jiff::Timestamp::now());
    let reason = blocked[0]["reason"].as_str().unwrap();
    assert!(reason.starts_with("rule default, limit 86400s: 2 of 2 used"), "{reason}");
    one.post("/refund", r#"{"key":"full"}"#);
    assert_eq!(get(&other, "/api/blocks")["blocked"], json!([]));
}

#[test]
fn pages_list_every_counter_with_few_calls() {
    let scratch = Scratch::new();
    let server = Server::start(Flavor::Redis);
    let service = node(&server, &["--policy", &policy(&scratch, "5/d")]);
    let items: Vec<_> = (0..500).map(|key| json!({"key": format!("k{key}")})).collect();
    let batch = service.post("/check/batch", json!({ "requests": items }).to_string());
    assert_eq!(batch.status, 200);
    server.raw().call(&["CONFIG", "RESETSTAT"]);
    let (counters, _) = all_pages(&service, "/api/counters", "counters", "limit=100");
    let scripts = calls(&server, "evalsha") + calls(&server, "eval");
    assert!(scripts < 250, "{scripts} calls for 500 counters");
    let mut seen = keys(&counters);
    // A key that moves during the scan may be listed twice.
    seen.dedup();
    assert_eq!(seen.len(), 500);
    assert!(counters.iter().all(|counter| counter["count"] == 1 && counter["remaining"] == 4));
    let (filtered, _) = all_pages(&service, "/api/counters", "counters", "limit=1000&prefix=k49");
    let mut filtered = keys(&filtered);
    filtered.dedup();
    assert_eq!(filtered.len(), 11, "k49 and k490 to k499: {filtered:?}");
}

/// Returns how often Redis has run a command.
fn calls(server: &Server, command: &str) -> u64 {
    let stats = server.raw().call(&["INFO", "commandstats"]);
    let begin = format!("cmdstat_{command}:calls=");
    let line = stats.text().lines().find_map(|line| line.strip_prefix(&begin));
    line.map_or(0, |rest| rest.split(',').next().unwrap().parse().unwrap())
}

#[test]
fn unknown_cursor_is_400_and_not_a_store_error() {
    let server = Server::start(Flavor::Redis);
    let service = node(&server, &[]);
    for path in ["/api/counters", "/api/blocks"] {
        let reply = service.get(&format!("{path}?cursor=nonsense"));
        assert_eq!((reply.status, &reply.json()["field"]), (400, &json!("cursor")));
    }
    let errors = crate::metrics_text::Scrape::of(&service).value("rate_limit_backend_errors_total");
    assert!(errors == 0.0, "{errors}");
}
