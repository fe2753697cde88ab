//! Fuzz target of batches. `scripts/fuzz json_batch` runs it for longer.

use serde_json::Value;
use tollgate_testkit::fuzz::Target;

use super::{Batch, read_item};
use crate::api::MAX_BATCH;
use crate::wire::fuzz_tests::{describe, refusal};
use crate::wire::parse::parse;
use crate::wire::query;

const WORDS: [&str; 20] = [
    "{\"requests\":[",
    "]}",
    "{\"key\":\"a\"}",
    "{\"key\":\"b\",\"cost\":2}",
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "\"",
    "null",
    "true",
    "7",
    "{}",
    "{\"key\":\"a\",\"limit\":3,\"window_ms\":1000}",
    "\\u0061",
    " ",
    "\u{0}",
    "\"facts\":{}",
];

#[test]
fn fuzz_json_batch() {
    let mut results = [0, 0];
    let summary = Target::new("json_batch", 4000).dictionary(&WORDS).run(|body| {
        let batch: Batch<'_> = match parse(body) {
            Ok(batch) => batch,
            Err(error) => return (refusal(&error, body), Vec::new()),
        };
        let Ok(value) = serde_json::from_slice::<Value>(body) else {
            // A number that no `f64` has is an error of its item, not of the batch.
            assert!(batch.requests.kept.iter().any(|item| read_item(item).is_err()));
            return ("number out of range".to_owned(), Vec::new());
        };
        let items = value["requests"].as_array().unwrap();
        assert_eq!(items.len(), batch.requests.count);
        assert_eq!(items.len().min(MAX_BATCH), batch.requests.kept.len());
        let outcomes = batch.requests.kept.iter().zip(items).map(|(item, value)| {
            let read = read_item(item);
            results[usize::from(read.is_ok())] += 1;
            match read {
                Err(error) => refusal(&error, item.get().as_bytes()),
                Ok(read) => {
                    // An item is decided as the same body of a check, whatever is beside it.
                    let alone = value.to_string();
                    let alone = query::read(alone.as_bytes()).unwrap();
                    assert_eq!(describe(&read), describe(&alone));
                    "query".to_owned()
                }
            }
        });
        (String::new(), outcomes.take(4).collect())
    });
    assert!(summary.outcomes > 50, "{summary:?}");
    assert!(results.iter().all(|count| *count > 10), "refused and accepted: {results:?}");
}
