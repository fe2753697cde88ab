//! Decisions: check, peek, refund, explain, batches and permits.

use schemars::JsonSchema;
use serde_json::{Value, json};

use super::super::schemas::Schemas;
use super::{Operation, PROBLEM, retry_after};
use crate::error::Problem;
use crate::http::{Batch, PermitBody};
use crate::wire::decision_schema::Decision;
use crate::wire::explanation::ExplainResponse;
use crate::wire::permit::{ReleaseResponse, RenewResponse};
use crate::wire::query::QueryBody;

const TAG: &str = "decisions";
const ACCESS: [&str; 2] = ["", "check"];
const INVALID: &str = "The request is invalid; no quota was taken.";

/// Response of `/check/batch`.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "only the schema is used")]
struct BatchResponse {
    /// The results in the order of the requests; a request that is invalid or not decided yields a problem.
    results: Vec<BatchResult>,
}

#[derive(JsonSchema)]
#[schemars(untagged, inline)]
#[expect(dead_code, reason = "only the schema is used")]
enum BatchResult {
    Decision(Box<Decision>),
    Problem(Problem<'static>),
}

pub(super) fn operations(schemas: &mut Schemas) -> Vec<Operation> {
    vec![
        decision(schemas, "/check", "Check and consume quota", "The decision.").description(
            "Returns 200 whether the request is allowed or refused. Takes the cost from all limits, or from none if \
             one of them refuses.",
        ),
        decision(schemas, "/peek", "Check without consuming quota", "The decision.")
            .description("Returns the decision that /check would return."),
        decision(schemas, "/refund", "Return consumed quota", "The state after the refund.").description(
            "Returns the cost to all limits, never above full, and responds with the state after the refund. Use \
             /release for the slots of concurrency limits.",
        ),
        explain(schemas),
        batch(schemas),
        permit::<ReleaseResponse>(schemas, "/release", "Release concurrency slots", "Whether the permit still held slots.")
            .description("Releases the slots of a permit before they expire."),
        permit::<RenewResponse>(schemas, "/renew", "Renew concurrency slots", "The new expiry, if the permit still held slots.")
            .description("Extends the slots of a permit by their full lifetime from now."),
    ]
}

/// An example of a query.
pub(super) fn query_example() -> Value {
    json!({ "key": "user:1" })
}

fn post(path: &'static str, id: &str, summary: &str) -> Operation {
    Operation::new("post", path, id, TAG, summary).access(&ACCESS).invalid(INVALID)
}

fn decision(schemas: &mut Schemas, path: &'static str, summary: &str, ok: &str) -> Operation {
    let lost = json!({
        "description": "The store is unavailable and the rule has `on_store_loss: deny`: the body is the decision, \
                        with allowed false and degraded true. Or the request is shed, because too many wait for the \
                        store: the body is a problem with the reason overloaded, and no quota was taken.",
        "content": {
            "application/json": { "schema": schemas.response::<Decision>() },
            "application/problem+json": { "schema": PROBLEM },
        },
        "headers": retry_after(),
    });
    post(path, path.trim_start_matches('/'), summary)
        .body::<QueryBody<'_>>(schemas, &query_example())
        .json::<Decision>(schemas, 200, ok)
        .response(503, lost)
}

fn explain(schemas: &mut Schemas) -> Operation {
    post("/explain", "explain", "Explain a decision")
        .description(
            "Returns the rules tried and matched, and each take with its state before and after. Does not consume quota.",
        )
        .body::<QueryBody<'_>>(schemas, &query_example())
        .json::<ExplainResponse<'_, '_>>(schemas, 200, "The explanation.")
        .store_errors()
}

fn batch(schemas: &mut Schemas) -> Operation {
    let limit = json!({ "name": "m", "algorithm": "token_bucket", "limit": 10, "window_ms": 60_000, "burst": 10 });
    let second = json!({ "key": "user:1", "cost": 2, "limits": [limit] });
    let max = crate::api::MAX_BATCH;
    let description = format!(
        "Decides up to {max} requests in order, each independently. An item that is invalid, shed (reason overloaded) \
         or denied without the store (reason store_lost) yields a problem in its position."
    );
    post("/check/batch", "checkBatch", "Check many requests")
        .description(&description)
        .body::<Batch<'_>>(schemas, &json!({ "requests": [query_example(), second] }))
        .json::<BatchResponse>(schemas, 200, "One result per request.")
        .store_errors()
}

fn permit<T: JsonSchema>(
    schemas: &mut Schemas,
    path: &'static str,
    summary: &str,
    ok: &str,
) -> Operation {
    let example =
        json!({ "permit": "00000000000000000000000000000001@ninline/concurrency{:jobs}" });
    post(path, path.trim_start_matches('/'), summary)
        .body::<PermitBody<'_>>(schemas, &example)
        .json::<T>(schemas, 200, ok)
        .store_errors()
}
