//! Long keys, facts and tenants.

use serde_json::json;

use super::common::on_both_stores;
use crate::client::Client;
use crate::endpoints::{assert_refused, send};
use crate::stage::Stage;

/// The maximum length in bytes of UTF-8, before JSON or key escaping.
const MAX_LENGTH: usize = 1024;

/// The fields, as errors name them.
const FIELDS: [&str; 4] = ["key", "facts.client", "facts.user", "tenant"];

const POLICY: &str = "version: 1\ndefaults: { limit: 1000/h, per: [client, user] }\n";

fn body(field: &str, text: &str) -> String {
    let query = match field {
        "key" => json!({ "key": text }),
        "facts.client" => json!({ "facts": { "client": text, "user": "u" } }),
        "facts.user" => json!({ "facts": { "client": "c", "user": text } }),
        _ => json!({ "key": "k", "tenant": text }),
    };
    query.to_string()
}

pub(super) fn key_of_1024_bytes_is_accepted_and_1025_refused(stage: &Stage) -> String {
    on_both_stores(stage, POLICY, |node| {
        let mut client = node.client();
        for field in FIELDS {
            for texts in [["x", "y"], ["é", "ü"], ["\0", "\n"], ["{", "%"]] {
                assert_longest(&mut client, field, texts);
            }
            for length in [MAX_LENGTH + 1, 2 * MAX_LENGTH, 60_000] {
                assert_refused(&mut client, body(field, &"x".repeat(length)), 400, field);
            }
            // Longer than the maximum body.
            assert_refused(&mut client, body(field, &"x".repeat(1_000_000)), 413, "-");
        }
        assert!(!node.log().contains("panicked"), "{}", node.log());
    });
    format!(
        "key, facts and tenant, on five endpoints, in memory and on Redis: {MAX_LENGTH} bytes pass, {} to 60000 are \
         400 naming the field, 1 MB is 413 for the whole body",
        MAX_LENGTH + 1
    )
}

/// Asserts that the longest text of a character passes, and has another counter than one with a different end.
fn assert_longest(client: &mut Client, field: &str, [character, other]: [&str; 2]) {
    let longest = character.repeat(MAX_LENGTH / character.len());
    let prefix = character.repeat(MAX_LENGTH / character.len() - 1);
    for text in [prefix.clone() + other, longest.clone()] {
        // The counts after a take, a peek, a refund and the take of a batch.
        let counts: Vec<_> = send(client, body(field, &text).as_bytes())
            .into_iter()
            .inspect(|reply| assert_eq!(reply.status, 200, "{field}: {}", reply.body))
            .filter(|reply| reply.path != "/explain")
            .map(|reply| reply.body["count"].clone())
            .collect();
        assert_eq!(counts, [1, 1, 0, 1], "{field}: {}", text.len());
    }
    assert_refused(client, body(field, &(longest + character)), 400, field);
}
