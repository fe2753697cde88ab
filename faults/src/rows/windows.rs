//! Windows of no length, and of a century.

use serde_json::{Value, json};

use super::common::on_both_stores;
use crate::endpoints::assert_refused;
use crate::node::Node;
use crate::stage::Stage;

/// The longest window: 100 years of 365.25 days.
const CENTURY_MS: u64 = 3_155_760_000_000;

/// What a row may take, in which a window goes on.
const MOMENT_MS: u64 = 600_000;

const LIMIT: u64 = 5;

const ALGORITHMS: [&str; 4] = ["token_bucket", "sliding_window", "sliding_counter", "fixed_window"];

/// Windows of a policy that are not refused.
const LONGEST: &str = "version: 1
rules:
  - { name: century, match: { path: /century }, limits: [5/36525d] }
";

fn inline(algorithm: &str, window: u64) -> String {
    let limit = json!({ "algorithm": algorithm, "limit": LIMIT, "window_ms": window });
    json!({ "key": algorithm, "limits": [limit] }).to_string()
}

pub(super) fn window_of_zero_is_refused_and_a_century_is_exact(stage: &Stage) -> String {
    on_both_stores(stage, LONGEST, |node| {
        let mut client = node.client();
        for algorithm in ALGORITHMS {
            for window in [0, CENTURY_MS + 1, 1 << 52] {
                let wrong = inline(algorithm, window);
                assert_refused(&mut client, wrong, 400, "limits[0].window_ms");
            }
            assert_lasts(node, &inline(algorithm, CENTURY_MS));
        }
        assert_lasts(node, &json!({ "facts": { "client": "c", "path": "/century" } }).to_string());
        for ttl in [0, CENTURY_MS + 1] {
            let slots = json!([{ "algorithm": "concurrency", "limit": 1, "ttl_ms": ttl }]);
            let wrong = json!({ "key": "k", "limits": slots }).to_string();
            assert_refused(&mut client, wrong, 400, "limits[0].ttl_ms");
        }
    });
    for rate in ["5/0s", "5/0h", "5/36526d", "5/99999999w", "5/18446744073709551616ms"] {
        let policy = format!("version: 1\nrules:\n  - {{ name: a, limits: [{rate}] }}\n");
        let reply = stage.node().policy(&policy).fails_to_start();
        assert!(reply.contains(":3:") && reply.contains("rules[0].limits[0]"), "{rate}: {reply}");
    }
    format!(
        "0 and {} ms are refused by name, in requests and policies; {CENTURY_MS} ms (100 years) admit {LIMIT} of \
         {LIMIT} by {} algorithms in memory and on Redis, and tell how long that lasts",
        CENTURY_MS + 1,
        ALGORITHMS.len()
    )
}

/// Exactly the limit passes, and the wait is what the window says.
fn assert_lasts(node: &Node, question: &str) {
    for count in 1..=LIMIT {
        let reply = node.post("/check", question);
        assert!(reply.is_exact() && reply.is_allowed(), "{question}: {}", reply.body);
        assert_eq!(reply.json()["count"], count, "{question}");
    }
    let reply = node.post("/check", question).json();
    assert_eq!((&reply["allowed"], &reply["verdict"]), (&false.into(), &"deny".into()), "{reply}");
    let [retry, reset] = ["retry_after_ms", "reset_after_ms"].map(|field| read(&reply, field));
    let lasts = |time: u64, length: u64| (length - MOMENT_MS..=length).contains(&time);
    let is_right = match reply["limits"][0]["algorithm"].as_str() {
        Some("token_bucket") => lasts(retry, CENTURY_MS / LIMIT) && lasts(reset, CENTURY_MS),
        // Its windows are those of the clock: nobody knows how much of this one is left. Of the next one a
        // part must pass until one fits, and all of it until nothing counts.
        Some("sliding_counter") => {
            reset - retry == CENTURY_MS - CENTURY_MS / LIMIT && reset <= 2 * CENTURY_MS
        }
        _ => lasts(retry, CENTURY_MS) && lasts(reset, CENTURY_MS),
    };
    assert!(is_right, "{reply}");
}

fn read(reply: &Value, field: &str) -> u64 {
    reply[field].as_u64().unwrap_or_else(|| panic!("no {field}: {reply}"))
}
