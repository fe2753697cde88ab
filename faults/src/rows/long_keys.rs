//! Keys, facts and tenants of a length.

use serde_json::json;

use super::common::on_both_stores;
use crate::client::Client;
use crate::endpoints::{assert_refused, send};
use crate::stage::Stage;

/// The most bytes, as they are counted: not as they are written in JSON, and not as they are kept.
const MOST: usize = 1024;

/// Where a text may stand, and what a problem calls that place.
const PLACES: [&str; 4] = ["key", "facts.client", "facts.user", "tenant"];

const POLICY: &str = "version: 1\ndefaults: { limit: 1000/h, per: [client, user] }\n";

fn question(place: &str, text: &str) -> String {
    let asked = match place {
        "key" => json!({ "key": text }),
        "facts.client" => json!({ "facts": { "client": text, "user": "u" } }),
        "facts.user" => json!({ "facts": { "client": "c", "user": text } }),
        _ => json!({ "key": "k", "tenant": text }),
    };
    asked.to_string()
}

pub(super) fn key_of_1024_bytes_is_accepted_and_1025_refused(stage: &Stage) -> String {
    on_both_stores(stage, POLICY, |node| {
        let mut client = node.client();
        for place in PLACES {
            for texts in [["x", "y"], ["é", "ü"], ["\0", "\n"], ["{", "%"]] {
                assert_longest(&mut client, place, texts);
            }
            for long in [MOST + 1, 2 * MOST, 60_000] {
                assert_refused(&mut client, question(place, &"x".repeat(long)), 400, place);
            }
            // Longer than any question may be, whatever is in it.
            assert_refused(&mut client, question(place, &"x".repeat(1_000_000)), 413, "-");
        }
        assert!(!node.log().contains("panicked"), "{}", node.log());
    });
    format!(
        "key, facts and tenant, on five paths, in memory and on Redis: {MOST} bytes pass, {} to 60000 are 400 \
         and named, 1 MB is 413 as the question that it is in",
        MOST + 1
    )
}

/// The longest text of this character passes, and counts apart from one that ends otherwise.
fn assert_longest(client: &mut Client, place: &str, [character, other]: [&str; 2]) {
    let most = character.repeat(MOST / character.len());
    let least = character.repeat(MOST / character.len() - 1);
    for text in [least.clone() + other, most.clone()] {
        // A take, a look, a refund and a batch's take: one is left.
        let counts: Vec<_> = send(client, question(place, &text).as_bytes())
            .into_iter()
            .inspect(|reply| assert_eq!(reply.status, 200, "{place}: {}", reply.body))
            .filter(|reply| reply.path != "/explain")
            .map(|reply| reply.body["count"].clone())
            .collect();
        assert_eq!(counts, [1, 1, 0, 1], "{place}: {}", text.len());
    }
    assert_refused(client, question(place, &(most + character)), 400, place);
}
