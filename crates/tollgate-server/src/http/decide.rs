//! Handlers of the decision paths.

#[cfg(test)]
mod fuzz_tests;

use hyper::Request;
use serde::Deserialize;
use serde_json::value::RawValue;
use tollgate::{Outcome, Query, Refusal, Verb};

use super::body::{MAX_BATCH_BODY, MAX_BODY, RequestBody, read};
use super::delivery::undelivered;
use super::reply::{Reply, json, json_bytes, problem, unavailable};
use crate::api::{ExplainReply, MAX_BATCH, Service, ensure_batch_size};
use crate::error::{ApiError, ApiErrorKind};
use crate::telemetry::Span;
use crate::wire::batch::Items;
use crate::wire::decision::decision_json;
use crate::wire::explanation::ExplainResponse;
use crate::wire::override_view::OverrideResponse;
use crate::wire::parse::parse;
use crate::wire::query;

/// POST /check, /peek, /refund.
pub(super) async fn decide<B>(
    service: &Service,
    verb: Verb,
    request: Request<B>,
    span: &mut Span,
) -> Reply
where
    B: RequestBody,
{
    let decided = async {
        let body = read(request, MAX_BODY).await?;
        let query = query::read(&body)?;
        if verb == Verb::Take {
            let (reply, permit) = service.check_undelivered(&query, span, decision_reply).await?;
            return Ok(undelivered(reply, permit));
        }
        service.decide(verb, &query, span, decision_reply).await
    };
    decided.await.unwrap_or_else(|error| problem(&error))
}

/// Encodes an item of a batch. A refusal by `on_store_loss: deny` is a problem, because an item has no status line.
fn item_json(outcome: &Outcome<'_, '_>) -> Vec<u8> {
    match ApiError::of_store_loss(outcome) {
        Some(error) => error.to_json(None),
        None => decision_json(outcome),
    }
}

/// Encodes a decision: status 200 whether it allows or refuses, 503 for `on_store_loss: deny` without the store.
pub(super) fn decision_reply(outcome: &Outcome<'_, '_>) -> Reply {
    let reply = json_bytes(decision_json(outcome));
    match unavailable_refusal(outcome) {
        Some(refusal) => unavailable(reply, refusal.retry_after_seconds()),
        None => reply,
    }
}

/// Returns whether the response has status 200.
pub(super) fn is_decided(outcome: &Outcome<'_, '_>) -> bool {
    unavailable_refusal(outcome).is_none()
}

/// Returns the refusal by `on_store_loss: deny` without the store.
fn unavailable_refusal<'d>(outcome: &Outcome<'d, '_>) -> Option<Refusal<'d>> {
    if outcome.decision.is_allowed() {
        return None;
    }
    Refusal::of(outcome.decision).filter(Refusal::is_unavailable)
}

/// POST /explain.
pub(super) async fn explain<B>(service: &Service, request: Request<B>) -> Result<Reply, ApiError>
where
    B: RequestBody,
{
    let body = read(request, MAX_BODY).await?;
    service.explain(&query::read(&body)?, explain_reply).await
}

fn explain_reply(reply: &ExplainReply<'_, '_, '_>) -> Reply {
    let view = |override_| {
        let (client, all) = (reply.client?, reply.overrides);
        let response =
            OverrideResponse::new((&client.id, &client.tenant), override_, all, reply.policy);
        Some(response.without_reasons())
    };
    let overrides = reply.overrides.iter().filter_map(|override_| view(override_)).collect();
    let applied = reply.applied.and_then(view);
    let explanation =
        ExplainResponse::new(reply.explanation, reply.max_distribution).with_leased(&reply.leased);
    json(&explanation.with_overrides(applied, overrides))
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Batch<'a> {
    /// Each item is a Query. Any other value yields a problem in its position.
    #[serde(borrow)]
    #[cfg_attr(test, schemars(with = "Vec<crate::reference_tests::names::BatchItem>", length(max = crate::api::MAX_BATCH)))]
    requests: Items<'a, MAX_BATCH>,
}

/// POST /check/batch: decides each item independently, in order. An item that is invalid or not decided yields a
/// problem in its position.
pub(super) async fn batch<B>(service: &Service, request: Request<B>) -> Result<Reply, ApiError>
where
    B: RequestBody,
{
    let body = read(request, MAX_BATCH_BODY).await?;
    let batch: Batch<'_> = parse(&body)?;
    ensure_batch_size(batch.requests.count)?;
    let queries = batch.requests.kept.into_iter().map(read_item).collect();
    let results = service.batch_undelivered(queries, item_json).await?;
    let (items, permits): (Vec<Vec<u8>>, Vec<_>) = results
        .into_iter()
        .map(|result| result.unwrap_or_else(|error| (error.to_json(None), None)))
        .unzip();
    let reply = json_bytes([br#"{"results":["#, &*items.join(&b','), b"]}"].concat());
    Ok(undelivered(reply, permits.into_iter().flatten()))
}

fn read_item(item: &RawValue) -> Result<Query<'_>, ApiError> {
    let text = item.get().as_bytes();
    if text.len() > MAX_BODY {
        let detail = format!("the batch item exceeds {MAX_BODY} bytes");
        return Err(ApiError::new(ApiErrorKind::TooLarge, detail));
    }
    query::read(text)
}
