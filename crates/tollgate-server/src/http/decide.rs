//! Handlers of the decision paths.

use std::sync::Arc;

use axum::body::HttpBody;
use bytes::Bytes;
use futures_util::future::join_all;
use hyper::Request;
use serde::Deserialize;
use serde_json::value::RawValue;
use tollgate::{Distributed, FallbackStore, Outcome, Permit, Refusal, Verb};

use super::body::{MAX_BATCH_BODY, MAX_BODY, MAX_PERMIT_BODY, read};
use super::reply::{Reply, json, json_bytes, or_problem, unavailable};
use crate::api::admin::Client;
use crate::app::App;
use crate::error::{ApiError, ApiErrorKind};
use crate::telemetry::Span;
use crate::wire::decision::decision_json;
use crate::wire::explanation::ExplainResponse;
use crate::wire::override_view::OverrideResponse;
use crate::wire::parse::parse;
use crate::wire::permit::{ReleaseResponse, RenewResponse};
use crate::wire::query;
use crate::wire::scalar::Text;

/// Maximum number of items in a batch.
const MAX_BATCH: usize = 1000;

/// POST /check, /peek, /refund.
pub(super) async fn decide<B>(app: &App, verb: Verb, request: Request<B>, span: &mut Span) -> Reply
where
    B: HttpBody<Data = Bytes> + Unpin,
{
    or_problem(match read(request, MAX_BODY).await {
        Ok(body) => decide_one(app, verb, &body, span).await,
        Err(error) => Err(error),
    })
}

async fn decide_one(
    app: &App,
    verb: Verb,
    body: &[u8],
    span: &mut Span,
) -> Result<Reply, ApiError> {
    let query = query::read(body)?;
    let encode = |outcome: &Outcome<'_, '_>| {
        span.decided(outcome);
        decision_reply(outcome)
    };
    let reply = app.decide(verb, &query, encode).await;
    reply.map_err(|error| ApiError::from(&error))
}

/// Encodes a decision: status 200 whether it allows or refuses, 503 for `on_store_loss: deny` without the store.
fn decision_reply(outcome: &Outcome<'_, '_>) -> Reply {
    let reply = json_bytes(decision_json(outcome));
    match Refusal::of(outcome.decision) {
        Some(refusal) if refusal.is_unavailable() => {
            unavailable(reply, refusal.retry_after_seconds())
        }
        _ => reply,
    }
}

/// POST /explain.
pub(super) async fn explain<B>(app: Arc<App>, request: Request<B>) -> Result<Reply, ApiError>
where
    B: HttpBody<Data = Bytes> + Unpin,
{
    let body = read(request, MAX_BODY).await?;
    let query = query::read(&body)?;
    let max_distribution =
        app.backend().fallback().map_or(Distributed::On, FallbackStore::max_distribution);
    let active = app.limiter().active_policy();
    let client = Client::of_query(&query, active.policy());
    let override_ = client.as_ref().and_then(|client| {
        let override_ = active.overrides().get(&client.subject())?;
        Some(
            OverrideResponse::new(&client.id, &client.tenant, override_, active.policy())
                .without_reasons(),
        )
    });
    let reply = app.limiter().explain(&query, |explanation| {
        json(&ExplainResponse::new(explanation, max_distribution, override_))
    });
    reply.await.map_err(|error| ApiError::from(&error))
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Batch<'a> {
    #[serde(borrow)]
    requests: Vec<&'a RawValue>,
}

/// POST /check/batch: decides each item independently, in order. An invalid item yields a problem in its position.
pub(super) async fn batch<B>(app: Arc<App>, request: Request<B>) -> Result<Reply, ApiError>
where
    B: HttpBody<Data = Bytes> + Unpin,
{
    let body = read(request, MAX_BATCH_BODY).await?;
    let batch: Batch<'_> = parse(&body)?;
    if batch.requests.len() > MAX_BATCH {
        let detail = format!("has {} items; the maximum is {MAX_BATCH}", batch.requests.len());
        return Err(ApiError::invalid(detail).at("requests"));
    }
    let results = decide_all(&app, &batch.requests).await;
    Ok(json_bytes([br#"{"results":["#, &*results.join(&b','), b"]}"].concat()))
}

/// Decides the items in order. With Redis they are decided concurrently, so that they share calls and the batch takes
/// about as long as one item.
async fn decide_all(app: &App, items: &[&RawValue]) -> Vec<Vec<u8>> {
    let decide = async |item: &&RawValue| {
        let result = decide_item(app, item).await;
        result.unwrap_or_else(|error| error.to_json(None))
    };
    if app.backend().redis().is_some() {
        return join_all(items.iter().map(decide)).await;
    }
    let mut results = Vec::with_capacity(items.len());
    for item in items {
        results.push(decide(item).await);
    }
    results
}

async fn decide_item(app: &App, item: &RawValue) -> Result<Vec<u8>, ApiError> {
    let text = item.get().as_bytes();
    if text.len() > MAX_BODY {
        let detail = format!("the batch item exceeds {MAX_BODY} bytes");
        return Err(ApiError::new(ApiErrorKind::TooLarge, detail));
    }
    let query = query::read(text)?;
    let decision = app.decide(Verb::Take, &query, decision_json).await;
    decision.map_err(|error| ApiError::from(&error))
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PermitBody<'a> {
    #[serde(borrow)]
    permit: Text<'a>,
}

/// POST /release: releases concurrency slots before they expire.
pub(super) async fn release<B>(app: Arc<App>, request: Request<B>) -> Result<Reply, ApiError>
where
    B: HttpBody<Data = Bytes> + Unpin,
{
    let permit = read_permit(request).await?;
    let released = app.limiter().release(&permit).await.map_err(|error| ApiError::from(&error))?;
    Ok(json(&ReleaseResponse { released }))
}

/// POST /renew: extends concurrency slots by their full lifetime from now.
pub(super) async fn renew<B>(app: Arc<App>, request: Request<B>) -> Result<Reply, ApiError>
where
    B: HttpBody<Data = Bytes> + Unpin,
{
    let permit = read_permit(request).await?;
    let expires_at = app.limiter().renew(&permit).await.map_err(|error| ApiError::from(&error))?;
    Ok(json(&RenewResponse::new(expires_at)))
}

async fn read_permit<B>(request: Request<B>) -> Result<Permit, ApiError>
where
    B: HttpBody<Data = Bytes> + Unpin,
{
    let body = read(request, MAX_PERMIT_BODY).await?;
    let body: PermitBody<'_> = parse(&body)?;
    body.permit
        .as_str()
        .parse()
        .map_err(|error: tollgate::PermitError| ApiError::invalid(error.to_string()).at("permit"))
}
