//! Costs above the limit, of 0 and below 0.

use serde_json::{Value as Json, json};
use tollgate_testkit::server::Value;

use super::common::on_both_stores;
use crate::endpoints::assert_refused;
use crate::front_end::DOMAIN;
use crate::grpc::{GrpcReply, request};
use crate::node::Node;
use crate::stage::Stage;

const LIMIT: u64 = 10;
const SPENT: u64 = 4;

const POLICY: &str = "version: 1
defaults: { limit: 10/h, algorithm: fixed_window }
rules:
  - { name: grpc, match: { facts: { domain: faults } }, per: [\"entry:client\"], limits: [10/h], algorithm: fixed_window }
";

const ALGORITHMS: [&str; 4] = ["token_bucket", "sliding_window", "sliding_counter", "fixed_window"];

/// The largest number that a request may contain.
const MAX_NUMBER: u64 = (1 << 53) - 1;

/// Sends one query with different costs.
struct CostClient<'a> {
    node: &'a Node,
    query: Json,
}

impl CostClient<'_> {
    fn body(&self, cost: &Json) -> String {
        let mut query = self.query.clone();
        query["cost"] = cost.clone();
        query.to_string()
    }

    fn send(&self, path: &str, cost: u64) -> Json {
        let reply = self.node.post(path, self.body(&cost.into()));
        assert!(reply.is_exact(), "{path} {cost}: {} {}", reply.status, reply.body);
        reply.json()
    }

    /// Asserts the usage.
    fn assert_spent(&self, spent: u64, after: &str) {
        let reply = self.send("/peek", 1);
        let seen = (reply["count"].as_u64(), reply["remaining"].as_u64());
        assert_eq!(seen, (Some(spent), Some(LIMIT - spent)), "after {after}: {reply}");
    }
}

pub(super) fn cost_above_the_limit_never_passes_and_takes_nothing(stage: &Stage) -> String {
    on_both_stores(stage, POLICY, |node| {
        assert_costs(&CostClient { node, query: json!({ "key": "by policy" }) });
        for algorithm in ALGORITHMS {
            let limit =
                json!({ "algorithm": algorithm, "limit": LIMIT, "window_ms": 360_000_000_u64 });
            assert_costs(&CostClient { node, query: json!({ "key": "k", "limits": [limit] }) });
        }
        assert_resp(node);
        assert_grpc(node);
    });
    format!(
        "above {LIMIT}: never allowed, no retry time; 0: only peeks; below 0: 400; by policy and with {} \
         algorithms, in memory and on Redis, also over RESP and gRPC; usage stays",
        ALGORITHMS.len()
    )
}

fn assert_costs(client: &CostClient<'_>) {
    assert_eq!(client.send("/check", SPENT)["allowed"], true);
    client.assert_spent(SPENT, "a take");
    for cost in [LIMIT + 1, 1_000_000, MAX_NUMBER] {
        for path in ["/check", "/peek"] {
            let reply = client.send(path, cost);
            assert_eq!(reply["verdict"], "never", "{path} {cost}: {reply}");
            let times = [&reply["retry_after"], &reply["retry_after_ms"]];
            assert_eq!(times, [&Json::Null; 2], "{path} {cost}: {reply}");
        }
        client.assert_spent(SPENT, "a cost that never fits");
    }
    let peeked = client.send("/check", 0);
    assert_eq!((&peeked["allowed"], &peeked["count"]), (&true.into(), &SPENT.into()));
    client.assert_spent(SPENT, "a cost of 0");
    let fits_later = client.send("/check", LIMIT - SPENT + 1);
    assert_eq!(fits_later["verdict"], "deny", "{fits_later}");
    assert!(fits_later["retry_after_ms"].is_u64(), "{fits_later}");
    client.assert_spent(SPENT, "a cost that fits later");
    let mut connection = client.node.client();
    for cost in [json!(-1), json!(i64::MIN), json!(-0.5), json!(MAX_NUMBER + 1)] {
        assert_refused(&mut connection, client.body(&cost), 400, "cost");
    }
    client.assert_spent(SPENT, "a cost below 0");
    // A cost of 0 only peeks, also when the limit is exhausted.
    assert_eq!(client.send("/check", LIMIT - SPENT)["allowed"], true);
    client.send("/check", 0);
    client.assert_spent(LIMIT, "a cost of 0 when the limit is exhausted");
    assert_eq!(
        client.send("/refund", MAX_NUMBER)["count"],
        0,
        "a refund does not exceed the limit"
    );
    client.assert_spent(0, "a refund of more than was taken");
}

/// Asserts the same over RESP: a cost above the limit has no retry time, 0 peeks, below 0 is an error.
fn assert_resp(node: &Node) {
    let mut resp = node.resp();
    let mut check =
        |command: &str, cost: &str| resp.call(&[command, "client=over RESP", "COST", cost]);
    let mut assert_reply = |cost: &str, allowed: i64, used: u64| {
        let reply = check("TOLLGATE.CHECK", cost);
        let fields: Vec<i64> = reply.array()[..4].iter().map(Value::int).collect();
        let remaining = i64::try_from(LIMIT - used).expect("a small number");
        assert_eq!(fields[0], allowed, "COST {cost}: {reply:?}");
        assert_eq!(fields[2], remaining, "COST {cost}: {reply:?}");
        fields[3]
    };
    assert_reply(&SPENT.to_string(), 1, SPENT);
    for cost in [LIMIT + 1, 1_000_000, MAX_NUMBER] {
        assert_eq!(assert_reply(&cost.to_string(), 0, SPENT), -1, "no retry time");
    }
    assert_reply("0", 1, SPENT);
    assert!(assert_reply(&(LIMIT - SPENT + 1).to_string(), 0, SPENT) > 0, "a retry time");
    for cost in ["-1", "-9223372036854775808", "-0.5", &(MAX_NUMBER + 1).to_string(), "", "x"] {
        let reply = check("TOLLGATE.CHECK", cost);
        let text = reply.error();
        assert!(text.starts_with("ERR ") && text.contains("cost"), "COST {cost}: {text}");
    }
    let reply = check("TOLLGATE.PEEK", "1");
    assert_eq!(reply.array()[2].int(), i64::try_from(LIMIT - SPENT).expect("a small number"));
}

/// Asserts the same over gRPC: hits above the limit are over it, an explicit 0 peeks.
fn assert_grpc(node: &Node) {
    let mut grpc = node.grpc();
    let mut send = |hits| {
        let reply = grpc.call(&request(DOMAIN, &[(b"client", b"over gRPC")], Some(hits)));
        reply.expect("the node responds")
    };
    let remaining = LIMIT - SPENT;
    assert_eq!(send(SPENT), GrpcReply::Decided { is_over: false, remaining });
    for hits in [LIMIT + 1, 1_000_000, MAX_NUMBER, remaining + 1] {
        // Nothing remains for a request that is refused.
        assert_eq!(send(hits), GrpcReply::Decided { is_over: true, remaining: 0 }, "{hits} hits");
        assert_eq!(send(0), GrpcReply::Decided { is_over: false, remaining }, "after {hits} hits");
    }
}
