//! Limits of 0.

use serde_json::{Value, json};

use super::common::on_both_stores;
use crate::endpoints::send;
use crate::front_end::{CLIENT_HEADER, FrontEnd, Outcome, Query};
use crate::node::Node;
use crate::stage::Stage;

const POLICY: &str = "version: 1
defaults: { limit: 100/h }
facts: { client: [{ header: x-client }] }
rules:
  - { name: grpc, match: { facts: { domain: faults, \"entry:path\": /banned } }, per: [\"entry:client\"], limits: [0] }
  - { name: banned, match: { path: /banned/** }, limits: [0] }
  - { name: never, match: { path: /never }, limits: [0/min, 10/h] }
  - { name: bucket, match: { path: /bucket }, limits: [{ rate: 0/s, algorithm: token_bucket }] }
";

/// Paths that match the blocks.
const BLOCKED_PATHS: [&str; 4] = ["/banned", "/banned/deep/down", "/never", "/bucket"];

/// A concurrency of 0, which is an error: a block is written as `0`.
const NO_SLOTS: &str = "version: 1
rules: [{ name: slots, limits: [{ concurrency: 0 }] }]
";

const ALGORITHMS: [&str; 5] =
    ["token_bucket", "sliding_window", "sliding_counter", "fixed_window", "concurrency"];

pub(super) fn limit_of_zero_admits_nothing(stage: &Stage) -> String {
    let tries = stage.scale().pick(3, 100);
    on_both_stores(stage, POLICY, |node| {
        for _ in 0..tries {
            for path in BLOCKED_PATHS {
                assert_denied(node, &json!({ "facts": { "client": "c", "path": path } }));
            }
            for algorithm in ALGORITHMS {
                assert_denied(node, &inline(algorithm, 1));
                assert_denied(node, &inline(algorithm, 1000));
            }
        }
        for _ in 0..tries {
            assert_others_denied(node);
        }
        // Other requests are not affected.
        let reply = node.post("/check", json!({ "key": "c" }).to_string());
        assert!(reply.is_allowed() && reply.json()["count"] == 1, "{}", reply.body);
    });
    let reply = stage.node().policy(NO_SLOTS).fails_to_start();
    assert!(reply.contains("rules[0].limits[0].concurrency"), "{reply}");
    format!(
        "{} paths and {} inline limits, {tries} times, in memory and on Redis: never allowed, no retry time; also over \
         RESP, gRPC and /auth",
        BLOCKED_PATHS.len(),
        ALGORITHMS.len()
    )
}

fn inline(algorithm: &str, cost: u64) -> Value {
    let window = if algorithm == "concurrency" { "ttl_ms" } else { "window_ms" };
    let limit = json!({ "algorithm": algorithm, "limit": 0, window: 60_000 });
    json!({ "key": "c", "cost": cost, "limits": [limit] })
}

/// Asserts that every endpoint refuses a query with the verdict `never` and without a retry time.
fn assert_denied(node: &Node, query: &Value) {
    for reply in send(&mut node.client(), query.to_string().as_bytes()) {
        let (path, body) = (reply.path, &reply.body);
        // A refund is not refused.
        if path == "/explain" || path == "/refund" {
            continue;
        }
        assert_eq!(reply.status, 200, "{path} {query}: {body}");
        assert_eq!(body["allowed"], false, "{path} {query}: {body}");
        assert_eq!(body["verdict"], "never", "{path} {query}: {body}");
        assert_eq!(body["retry_after_ms"], Value::Null, "{path} {query}: {body}");
    }
}

/// Asserts that the other front ends refuse, without a retry time.
fn assert_others_denied(node: &Node) {
    for front_end in FrontEnd::OTHERS {
        let answer = node.check_over(front_end, &Query::on("c", "/banned"));
        assert_eq!(answer.outcome, Outcome::Refused, "{}: {answer:?}", front_end.name());
    }
    let reply = node.resp().call(&["TOLLGATE.CHECK", "client=c", "path=/banned"]);
    assert_eq!(reply.array()[3].int(), -1, "no retry time: {reply:?}");
    let reply = node.auth(&[("x-forwarded-uri", b"/banned"), (CLIENT_HEADER, b"c")]);
    assert_eq!((reply.status, reply.header("retry-after")), (429, None), "{}", reply.head);
    let (status, shown) = node.auth_of_nginx(&Query::on("c", "/banned"));
    assert_eq!((status, shown.as_deref()), (403, Some("429")), "/auth/nginx");
}
