//! Costs that never fit, that are nothing, and that are less.

use serde_json::{Value, json};

use super::common::on_both_stores;
use crate::endpoints::assert_refused;
use crate::node::Node;
use crate::stage::Stage;

const LIMIT: u64 = 10;
const SPENT: u64 = 4;

const POLICY: &str = "version: 1
defaults: { limit: 10/h, algorithm: fixed_window }
";

const ALGORITHMS: [&str; 4] = ["token_bucket", "sliding_window", "sliding_counter", "fixed_window"];

/// The greatest number that a request may have.
const GREATEST: u64 = (1 << 53) - 1;

/// Questions that differ in their cost only.
struct Asker<'a> {
    node: &'a Node,
    question: Value,
}

impl Asker<'_> {
    fn question(&self, cost: &Value) -> String {
        let mut question = self.question.clone();
        question["cost"] = cost.clone();
        question.to_string()
    }

    fn ask(&self, path: &str, cost: u64) -> Value {
        let reply = self.node.post(path, self.question(&cost.into()));
        assert!(reply.is_exact(), "{path} {cost}: {} {}", reply.status, reply.body);
        reply.json()
    }

    /// Asserts what is spent.
    fn assert_spent(&self, spent: u64, after: &str) {
        let reply = self.ask("/peek", 1);
        let seen = (reply["count"].as_u64(), reply["remaining"].as_u64());
        assert_eq!(seen, (Some(spent), Some(LIMIT - spent)), "after {after}: {reply}");
    }
}

pub(super) fn cost_above_the_limit_never_passes_and_takes_nothing(stage: &Stage) -> String {
    on_both_stores(stage, POLICY, |node| {
        assert_costs(&Asker { node, question: json!({ "key": "by policy" }) });
        for algorithm in ALGORITHMS {
            let limit =
                json!({ "algorithm": algorithm, "limit": LIMIT, "window_ms": 360_000_000_u64 });
            assert_costs(&Asker { node, question: json!({ "key": "k", "limits": [limit] }) });
        }
    });
    format!(
        "above {LIMIT}: refused for good, without a time; 0: only asks; below 0: 400; by policy and {} \
         algorithms, in memory and on Redis, and what was spent stays",
        ALGORITHMS.len()
    )
}

fn assert_costs(asker: &Asker<'_>) {
    assert_eq!(asker.ask("/check", SPENT)["allowed"], true);
    asker.assert_spent(SPENT, "a take");
    for cost in [LIMIT + 1, 1_000_000, GREATEST] {
        for path in ["/check", "/peek"] {
            let reply = asker.ask(path, cost);
            assert_eq!(reply["verdict"], "never", "{path} {cost}: {reply}");
            let times = [&reply["retry_after"], &reply["retry_after_ms"]];
            assert_eq!(times, [&Value::Null; 2], "{path} {cost}: {reply}");
        }
        asker.assert_spent(SPENT, "a cost that never fits");
    }
    let nothing = asker.ask("/check", 0);
    assert_eq!((&nothing["allowed"], &nothing["count"]), (&true.into(), &SPENT.into()));
    asker.assert_spent(SPENT, "a cost of nothing");
    let fits_later = asker.ask("/check", LIMIT - SPENT + 1);
    assert_eq!(fits_later["verdict"], "deny", "{fits_later}");
    assert!(fits_later["retry_after_ms"].is_u64(), "{fits_later}");
    asker.assert_spent(SPENT, "a cost that fits later");
    let mut client = asker.node.client();
    for cost in [json!(-1), json!(i64::MIN), json!(-0.5), json!(GREATEST + 1)] {
        assert_refused(&mut client, asker.question(&cost), 400, "cost");
    }
    asker.assert_spent(SPENT, "a cost below nothing");
    // Nothing is left, and to ask for nothing is still no taking.
    assert_eq!(asker.ask("/check", LIMIT - SPENT)["allowed"], true);
    asker.ask("/check", 0);
    asker.assert_spent(LIMIT, "a cost of nothing where nothing is left");
    assert_eq!(asker.ask("/refund", GREATEST)["count"], 0, "not above full");
    asker.assert_spent(0, "a refund of more than was taken");
}
