//! Decisions: check, peek, refund, explain, batches and permits.

use schemars::JsonSchema;
use serde_json::{Value, json};

use super::super::schemas::Schemas;
use super::{Operation, PROBLEM, retry_after};
use crate::error::{ApiErrorKind, Problem};
use crate::http::{Batch, HeldBody};
use crate::wire::decision_schema::{Decision, ReserveDecision};
use crate::wire::explanation::ExplainResponse;
use crate::wire::permit::{ReleaseResponse, RenewResponse};
use crate::wire::query::QueryBody;
use crate::wire::reservation::{ReserveBody, SettleBody};
use crate::wire::settled::SettleResponse;

const TAG: &str = "decisions";
const ACCESS: [&str; 2] = ["", "check"];
const NO_RESERVATIONS: &str = "The store has no reservations.";
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
        reserve(schemas),
        settle(schemas),
        held::<ReleaseResponse>(schemas, "/release", "Release slots, or cancel a reservation", "Whether there was anything to release.")
            .description("Releases the slots of a permit before they expire, or settles a reservation with costs of 0."),
        held::<RenewResponse>(schemas, "/renew", "Renew slots or a reservation", "The new expiry, if there was anything to renew.")
            .description("Extends the slots of a permit, or a reservation and its slots, by their full lifetime from now."),
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
    let lost = lost::<Decision>(schemas);
    post(path, path.trim_start_matches('/'), summary)
        .body::<QueryBody<'_>>(schemas, &query_example())
        .json::<Decision>(schemas, 200, ok)
        .response(503, lost)
}

/// The response without the store, or of a request that is shed.
fn lost<T: JsonSchema>(schemas: &mut Schemas) -> Value {
    json!({
        "description": "The store is unavailable and the rule has `on_store_loss: deny`: the body is the decision, \
                        with allowed false and degraded true. Or the request is shed, because too many wait for the \
                        store: the body is a problem with the reason overloaded, and no quota was taken.",
        "content": {
            "application/json": { "schema": schemas.response::<T>() },
            "application/problem+json": { "schema": PROBLEM },
        },
        "headers": retry_after(),
    })
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

fn reserve(schemas: &mut Schemas) -> Operation {
    let example =
        json!({ "key": "user:1", "costs": { "requests": 1, "tokens": 1800 }, "id": "chat-17" });
    post("/reserve", "reserve", "Reserve an estimate")
        .description(
            "Decides as /check does, and takes an estimate that /settle replaces by the amounts that were used. Returns \
             200 whether the reservation is allowed or refused. Until it is settled, the estimate stays charged.",
        )
        .body::<ReserveBody<'_>>(schemas, &example)
        .json::<ReserveDecision>(schemas, 200, "The decision.")
        .error(ApiErrorKind::Conflict, "The id belongs to a reservation with other costs.")
        .error(ApiErrorKind::Unsupported, NO_RESERVATIONS)
        .response(503, lost::<ReserveDecision>(schemas))
}

fn settle(schemas: &mut Schemas) -> Operation {
    let example = json!({
        "reservation": format!("r0-{}", "0".repeat(64)),
        "costs": { "tokens": 420 },
    });
    post("/settle", "settle", "Settle a reservation")
        .description(
            "Returns the part of the estimate that was not used, or takes what was used more, which can put a limit into \
             debt. Only the first settlement counts; a repeated one returns the first outcome.",
        )
        .body::<SettleBody<'_>>(schemas, &example)
        .json::<SettleResponse<'_>>(schemas, 200, "What the settlement did.")
        .error(
            ApiErrorKind::NotFound,
            "No reservation with this token: it is wrong, of another tenant, or its record has ended.",
        )
        .error(ApiErrorKind::Unsupported, NO_RESERVATIONS)
        .store_errors()
}

fn held<T: JsonSchema>(
    schemas: &mut Schemas,
    path: &'static str,
    summary: &str,
    ok: &str,
) -> Operation {
    let example =
        json!({ "permit": "00000000000000000000000000000001@ninline/concurrency{:jobs}" });
    post(path, path.trim_start_matches('/'), summary)
        .body::<HeldBody<'_>>(schemas, &example)
        .json::<T>(schemas, 200, ok)
        .store_errors()
}
