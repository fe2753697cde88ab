//! The deciding paths.

use std::sync::Arc;

use axum::body::HttpBody;
use bytes::Bytes;
use futures_util::future::join_all;
use hyper::Request;
use serde::Deserialize;
use serde_json::value::RawValue;
use tollgate::{Distributed, FallbackStore, Outcome, Permit, Refusal, Verb};

use super::body::{MAX_BATCH_BODY, MAX_BODY, MAX_PERMIT_BODY, read};
use super::reply::{Reply, json, or_problem, unavailable, written};
use crate::api::admin::Client;
use crate::app::App;
use crate::error::{ApiError, ApiErrorKind};
use crate::telemetry::Span;
use crate::wire::decision::decision_json;
use crate::wire::explanation::ExplainResponse;
use crate::wire::override_view::told as told_override;
use crate::wire::parse::parse;
use crate::wire::permit::{Released, Renewed};
use crate::wire::query;
use crate::wire::scalar::Text;

/// The most questions of a batch.
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
    let asked = query::read(body)?;
    let tell = |outcome: &Outcome<'_, '_>| {
        span.decided(outcome);
        told(outcome)
    };
    let told = app.decide(verb, &asked, tell).await;
    told.map_err(|error| ApiError::from(&error))
}

/// An answer is 200, whether allowed or not, unless it is that nobody may be asked.
fn told(outcome: &Outcome<'_, '_>) -> Reply {
    let reply = written(decision_json(outcome));
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
    let asked = query::read(&body)?;
    let max_distribution =
        app.backend().fallback().map_or(Distributed::On, FallbackStore::max_distribution);
    let current = app.limiter().active_policy();
    let client = Client::asking(&asked, current.policy());
    let own = client.as_ref().and_then(|client| {
        let own = current.overrides().get(&client.subject())?;
        let told = told_override((&client.id, &client.tenant), own, current.policy());
        Some(told.without_reasons())
    });
    let told = app
        .limiter()
        .explain(&asked, |explained| json(&ExplainResponse::new(explained, max_distribution, own)));
    told.await.map_err(|error| ApiError::from(&error))
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Batch<'a> {
    #[serde(borrow)]
    requests: Vec<&'a RawValue>,
}

/// POST /check/batch: each question by itself, in order; a bad one is a problem in its place.
pub(super) async fn batch<B>(app: Arc<App>, request: Request<B>) -> Result<Reply, ApiError>
where
    B: HttpBody<Data = Bytes> + Unpin,
{
    let body = read(request, MAX_BATCH_BODY).await?;
    let batch: Batch<'_> = parse(&body)?;
    if batch.requests.len() > MAX_BATCH {
        let detail = format!("{} questions are more than {MAX_BATCH}", batch.requests.len());
        return Err(ApiError::invalid(detail).at("requests"));
    }
    let results = decide_all(&app, &batch.requests).await;
    Ok(written([br#"{"results":["#, &*results.join(&b','), b"]}"].concat()))
}

/// Items are asked in their order. Over a network they share calls, and all wait as long as one would.
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
        let detail = format!("the question is longer than {MAX_BODY} bytes");
        return Err(ApiError::new(ApiErrorKind::TooLarge, detail));
    }
    let asked = query::read(text)?;
    let told = app.decide(Verb::Take, &asked, decision_json).await;
    told.map_err(|error| ApiError::from(&error))
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PermitBody<'a> {
    #[serde(borrow)]
    permit: Text<'a>,
}

/// POST /release: gives slots back before they expire.
pub(super) async fn release<B>(app: Arc<App>, request: Request<B>) -> Result<Reply, ApiError>
where
    B: HttpBody<Data = Bytes> + Unpin,
{
    let permit = read_permit(request).await?;
    let released = app.limiter().release(&permit).await.map_err(|error| ApiError::from(&error))?;
    Ok(json(&Released { released }))
}

/// POST /renew: holds slots for as long again.
pub(super) async fn renew<B>(app: Arc<App>, request: Request<B>) -> Result<Reply, ApiError>
where
    B: HttpBody<Data = Bytes> + Unpin,
{
    let permit = read_permit(request).await?;
    let until = app.limiter().renew(&permit).await.map_err(|error| ApiError::from(&error))?;
    Ok(json(&Renewed::until(until)))
}

async fn read_permit<B>(request: Request<B>) -> Result<Permit, ApiError>
where
    B: HttpBody<Data = Bytes> + Unpin,
{
    let body = read(request, MAX_PERMIT_BODY).await?;
    let given: PermitBody<'_> = parse(&body)?;
    given
        .permit
        .as_str()
        .parse()
        .map_err(|error: tollgate::PermitError| ApiError::invalid(error.to_string()).at("permit"))
}
