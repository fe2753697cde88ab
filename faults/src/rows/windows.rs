//! Windows of 0 and of 100 years.

use serde_json::{Value, json};

use super::common::on_both_stores;
use crate::endpoints::assert_refused;
use crate::front_end::{FrontEnd, Outcome, Query};
use crate::node::Node;
use crate::stage::Stage;

/// The longest window: 100 years of 365.25 days.
const CENTURY_MS: u64 = 3_155_760_000_000;

/// The maximum duration of the row, by which a measured time may be shorter.
const MAX_ROW_MS: u64 = 600_000;

const LIMIT: u64 = 5;

const ALGORITHMS: [&str; 4] = ["token_bucket", "sliding_window", "sliding_counter", "fixed_window"];

/// A policy with the longest window.
const LONGEST: &str = "version: 1
facts: { client: [{ header: x-client }] }
rules:
  - { name: century, match: { path: /century }, limits: [5/36525d] }
  - { name: grpc, match: { facts: { domain: faults } }, per: [\"entry:client\"], limits: [5/36525d] }
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
                let invalid = inline(algorithm, window);
                assert_refused(&mut client, invalid, 400, "limits[0].window_ms");
            }
            assert_exact_century(node, &inline(algorithm, CENTURY_MS));
        }
        assert_exact_century(
            node,
            &json!({ "facts": { "client": "c", "path": "/century" } }).to_string(),
        );
        assert_others_exact(node);
        for ttl in [0, CENTURY_MS + 1] {
            let slots = json!([{ "algorithm": "concurrency", "limit": 1, "ttl_ms": ttl }]);
            let invalid = json!({ "key": "k", "limits": slots }).to_string();
            assert_refused(&mut client, invalid, 400, "limits[0].ttl_ms");
        }
    });
    for rate in ["5/0s", "5/0h", "5/36526d", "5/99999999w", "5/18446744073709551616ms"] {
        let policy = format!("version: 1\nrules:\n  - {{ name: a, limits: [{rate}] }}\n");
        let reply = stage.node().policy(&policy).fails_to_start();
        assert!(reply.contains(":3:") && reply.contains("rules[0].limits[0]"), "{rate}: {reply}");
    }
    format!(
        "0 and {} ms are refused naming the field, in requests and policies; {CENTURY_MS} ms (100 years) admit {LIMIT} \
         of {LIMIT} with {} algorithms in memory and on Redis, with exact retry times, also over \
         RESP, gRPC and /auth",
        CENTURY_MS + 1,
        ALGORITHMS.len()
    )
}

/// Asserts that exactly the limit is admitted, and that the times match the window.
fn assert_exact_century(node: &Node, body: &str) {
    for count in 1..=LIMIT {
        let reply = node.post("/check", body);
        assert!(reply.is_exact() && reply.is_allowed(), "{body}: {}", reply.body);
        assert_eq!(reply.json()["count"], count, "{body}");
    }
    let reply = node.post("/check", body).json();
    assert_eq!((&reply["allowed"], &reply["verdict"]), (&false.into(), &"deny".into()), "{reply}");
    let [retry, reset] = ["retry_after_ms", "reset_after_ms"].map(|field| read(&reply, field));
    let is_about = |time: u64, length: u64| (length - MAX_ROW_MS..=length).contains(&time);
    let is_expected = match reply["limits"][0]["algorithm"].as_str() {
        Some("token_bucket") => is_about(retry, CENTURY_MS / LIMIT) && is_about(reset, CENTURY_MS),
        // Its windows are aligned to the clock, so the rest of the current one is unknown. A request fits after a part
        // of the next window; the count is 0 after all of it.
        Some("sliding_counter") => {
            reset - retry == CENTURY_MS - CENTURY_MS / LIMIT && reset <= 2 * CENTURY_MS
        }
        _ => is_about(retry, CENTURY_MS) && is_about(reset, CENTURY_MS),
    };
    assert!(is_expected, "{reply}");
}

fn read(reply: &Value, field: &str) -> u64 {
    reply[field].as_u64().unwrap_or_else(|| panic!("no {field}: {reply}"))
}

/// Asserts that the other front ends admit exactly the limit in the longest window, and that RESP refuses windows of 0 and
/// longer ones.
fn assert_others_exact(node: &Node) {
    for front_end in FrontEnd::OTHERS {
        let (name, mut connection) = (front_end.name(), node.connect(front_end));
        let query = Query::on(format!("over {name}"), "/century");
        let mut check = || connection.check(&query).expect("the node responds");
        for count in 1..=LIMIT {
            let answer = check();
            let seen = (answer.is_allowed(), answer.remaining);
            assert_eq!(seen, (true, Some(LIMIT - count)), "{name}");
        }
        assert_eq!(check().outcome, Outcome::Refused, "{name}");
    }
    let mut resp = node.resp();
    let mut throttle =
        |period: u64| resp.call(&["CL.THROTTLE", "a century", "4", "5", &period.to_string()]);
    for period in [0, CENTURY_MS / 1000 + 1, 1 << 52] {
        let reply = throttle(period);
        assert!(reply.error().starts_with("Cell error: "), "{period}: {reply:?}");
    }
    for count in 1..=LIMIT {
        let reply = throttle(CENTURY_MS / 1000);
        let remaining = i64::try_from(LIMIT - count).expect("a small number");
        assert_eq!((reply.array()[0].int(), reply.array()[2].int()), (0, remaining), "{reply:?}");
    }
    assert_eq!(throttle(CENTURY_MS / 1000).array()[0].int(), 1, "the limit is used up");
}
