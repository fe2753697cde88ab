//! Request handlers.

use std::error::Error;
use std::sync::Arc;

use axum::body::to_bytes;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Query, Request, State};
use axum::response::{IntoResponse, Response};
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, StatusCode, Uri};
use http_body_util::LengthLimitError;
use serde::Deserialize;
use serde_json::Value;
use tollgate::{ClientId, Clock, MAX_FACT_LENGTH, Observer, OverrideStorage, Store, SystemClock};

use super::audit_entry::{Action, Author, audit_entry};
use super::override_body::OverrideBody;
use super::problem::Problem;
use super::router::AdminState;
use super::views::{override_view, stats_view};
use crate::background::RunToCompletion;
use crate::facts::{RequestHead, peer_ip};

/// Maximum size of a body in bytes.
const MAX_BODY: usize = 64 * 1024;
/// Maximum lengths in bytes.
const MAX_REASON: usize = 1000;
const MAX_AUTHOR: usize = 200;
/// Maximum number of overrides, because every node holds all of them in memory.
const MAX_OVERRIDES: usize = 100_000;

type Shared<S, O, R> = State<Arc<AdminState<S, O, R>>>;
type ClientPath = Result<Path<String>, PathRejection>;

/// The query parameters.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Parameters {
    tenant: Option<String>,
    author: Option<String>,
    reason: Option<String>,
    rule: Option<String>,
}

impl Parameters {
    fn parse(uri: &Uri) -> Result<Self, Problem> {
        let query = Query::<Self>::try_from_uri(uri);
        let Query(parameters) = query
            .map_err(|rejection| Problem::new(StatusCode::BAD_REQUEST, rejection.body_text()))?;
        check_length("tenant", parameters.tenant.as_deref(), MAX_FACT_LENGTH)?;
        Ok(parameters)
    }

    /// Parses the parameters of an endpoint that has no `?rule=`.
    fn parse_without_rule(uri: &Uri) -> Result<Self, Problem> {
        let parameters = Self::parse(uri)?;
        match parameters.rule {
            Some(_) => Err(Problem::invalid("rule", "is a parameter of DELETE only")),
            None => Ok(parameters),
        }
    }
}

fn check_length(field: &str, text: Option<&str>, max: usize) -> Result<(), Problem> {
    match text {
        Some(text) if text.len() > max => {
            Err(Problem::invalid(field, format!("is longer than {max} bytes")))
        }
        _ => Ok(()),
    }
}

impl<S: Store, O: Observer, R> AdminState<S, O, R> {
    fn client(&self, path: ClientPath, parameters: &Parameters) -> Result<ClientId, Problem> {
        let Path(id) = path.map_err(|rejection| Problem::invalid("id", rejection.body_text()))?;
        let active = self.limiter.active_policy();
        let tenant = parameters.tenant.as_deref().unwrap_or(active.policy().tenant());
        ClientId::new(id, tenant).ok_or_else(|| {
            Problem::invalid("id", format!("must have 1 to {MAX_FACT_LENGTH} bytes"))
        })
    }

    fn author(
        &self,
        request: &RequestHead<'_>,
        (name, reason): (Option<String>, Option<String>),
    ) -> Result<Author, Problem> {
        check_length("author", name.as_deref(), MAX_AUTHOR)?;
        check_length("reason", reason.as_deref(), MAX_REASON)?;
        Ok(Author {
            name: name.unwrap_or_default(),
            reason: reason.unwrap_or_default(),
            token: self.guard.token.fingerprint(),
            peer: peer_ip(request),
            node: self.node.clone(),
        })
    }

    fn notify(&self, entry: &str) {
        if let Some(on_change) = &self.on_change {
            on_change(entry);
        }
    }

    async fn reset_client(&self, client: &ClientId) -> Result<(), Problem> {
        if self.limiter.reset_client(client).await? {
            return Ok(());
        }
        let detail = "reset incomplete: there was not enough time to search all keys; retry";
        Err(Problem::unavailable(detail))
    }
}

/// Finishes a change even if the caller disconnects.
async fn finish<T: Send + 'static>(
    change: impl Future<Output = Result<T, Problem>> + Send + 'static,
) -> Result<T, Problem> {
    RunToCompletion::new(change).await
}

fn json(body: &Value) -> Response {
    let mut response = body.to_string().into_response();
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

fn no_override(client: &ClientId) -> Problem {
    let id: String = client.id().chars().take(100).collect();
    Problem::new(StatusCode::NOT_FOUND, format!("client {id:?} has no override"))
}

fn other_rule(client: &ClientId, rule: &str) -> Problem {
    let shorten = |text: &str| text.chars().take(100).collect::<String>();
    let (id, rule) = (shorten(client.id()), shorten(rule));
    Problem::new(StatusCode::NOT_FOUND, format!("the override of {id:?} is not for rule {rule:?}"))
}

/// A body that is too long, or that the client did not finish.
fn body_problem(error: &axum::Error) -> Problem {
    if error.source().is_some_and(<dyn Error>::is::<LengthLimitError>) {
        let detail = format!("the body exceeds {MAX_BODY} bytes");
        return Problem::new(StatusCode::PAYLOAD_TOO_LARGE, detail);
    }
    Problem::new(StatusCode::BAD_REQUEST, "the body ended early")
}

/// Sets the override of a client.
pub(super) async fn put_limits<S, O, R>(
    State(state): Shared<S, O, R>,
    path: ClientPath,
    request: Request,
) -> Result<Response, Problem>
where
    S: Store + 'static,
    O: Observer + 'static,
    R: OverrideStorage + 'static,
{
    let parameters = Parameters::parse_without_rule(request.uri())?;
    let client = state.client(path, &parameters)?;
    check_content_type(request.headers())?;
    let (head, body) = request.into_parts();
    let body = to_bytes(body, MAX_BODY).await.map_err(|error| body_problem(&error))?;
    let body = OverrideBody::parse(&body)?;
    let stated =
        (body.author.clone().or(parameters.author), body.reason.clone().or(parameters.reason));
    let author = state.author(&RequestHead::from(&head), stated)?;
    let new_override = {
        let active = state.limiter.active_policy();
        let is_new = active.overrides().get(&client.subject()).is_none();
        if is_new && active.overrides().len() >= MAX_OVERRIDES {
            let detail = format!("there are already {MAX_OVERRIDES} overrides; remove some");
            return Err(Problem::new(StatusCode::BAD_REQUEST, detail));
        }
        let built = body.build(&client, active.policy(), SystemClock::new().now())?;
        built.recorded_by(author.name.as_str(), author.reason.as_str())
    };
    finish(async move {
        let entry = audit_entry(Action::SetOverride, &client, &author);
        let subject = client.subject();
        let stored = state.storage.set_override(&subject, Some(&new_override), &entry).await;
        stored.map_err(|error| Problem::write_failure(&error))?;
        state.notify(&entry);
        if body.fresh {
            let reset = state.reset_client(&client).await;
            reset.map_err(|problem| problem.context("override stored; usage not reset"))?;
        }
        let active = state.limiter.active_policy();
        Ok(json(&override_view(&client, &new_override, active.policy())))
    })
    .await
}

fn check_content_type(headers: &HeaderMap) -> Result<(), Problem> {
    let content_type = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let media_type = content_type.and_then(|value| value.split(';').next()).unwrap_or_default();
    if media_type.trim().eq_ignore_ascii_case("application/json") {
        return Ok(());
    }
    let detail = "the body must have Content-Type: application/json";
    Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, detail))
}

/// Returns the override of a client.
pub(super) async fn get_limits<S, O, R>(
    State(state): Shared<S, O, R>,
    path: ClientPath,
    uri: Uri,
) -> Result<Response, Problem>
where
    S: Store + 'static,
    O: Observer + 'static,
    R: OverrideStorage + 'static,
{
    let client = state.client(path, &Parameters::parse_without_rule(&uri)?)?;
    let active = state.limiter.active_policy();
    let stored = active.overrides().get(&client.subject()).ok_or_else(|| no_override(&client))?;
    Ok(json(&override_view(&client, stored, active.policy())))
}

/// Removes the override of a client, with `?rule=` only if it is for that rule.
pub(super) async fn delete_limits<S, O, R>(
    State(state): Shared<S, O, R>,
    path: ClientPath,
    request: Request,
) -> Result<Response, Problem>
where
    S: Store + 'static,
    O: Observer + 'static,
    R: OverrideStorage + 'static,
{
    let parameters = Parameters::parse(request.uri())?;
    let client = state.client(path, &parameters)?;
    let author =
        state.author(&RequestHead::from(&request), (parameters.author, parameters.reason))?;
    if let Some(rule) = parameters.rule {
        let active = state.limiter.active_policy();
        let stored = active.overrides().get(&client.subject());
        let Some(stored) = stored else { return Err(no_override(&client)) };
        if stored.rule.as_deref() != Some(rule.as_str()) {
            return Err(other_rule(&client, &rule));
        }
    }
    finish(async move {
        let entry = audit_entry(Action::RemoveOverride, &client, &author);
        let removed = state.storage.set_override(&client.subject(), None, &entry).await;
        if !removed.map_err(|error| Problem::write_failure(&error))? {
            return Err(no_override(&client));
        }
        state.notify(&entry);
        Ok(StatusCode::NO_CONTENT.into_response())
    })
    .await
}

/// Returns the usage of a client.
pub(super) async fn stats<S, O, R>(
    State(state): Shared<S, O, R>,
    path: ClientPath,
    uri: Uri,
) -> Result<Response, Problem>
where
    S: Store + 'static,
    O: Observer + 'static,
    R: OverrideStorage + 'static,
{
    let client = state.client(path, &Parameters::parse_without_rule(&uri)?)?;
    let usage = state.limiter.client_usage(&client).await?;
    let active = state.limiter.active_policy();
    let is_overridden = active.overrides().get(&client.subject()).is_some();
    Ok(json(&stats_view(&client, &usage, is_overridden)))
}

/// Resets the usage of a client.
pub(super) async fn reset<S, O, R>(
    State(state): Shared<S, O, R>,
    path: ClientPath,
    request: Request,
) -> Result<Response, Problem>
where
    S: Store + 'static,
    O: Observer + 'static,
    R: OverrideStorage + 'static,
{
    let parameters = Parameters::parse_without_rule(request.uri())?;
    let client = state.client(path, &parameters)?;
    let author =
        state.author(&RequestHead::from(&request), (parameters.author, parameters.reason))?;
    finish(async move {
        let entry = audit_entry(Action::ResetClient, &client, &author);
        // A reset that cannot be audited is not made.
        state.storage.record_audit(&entry).await?;
        state.notify(&entry);
        state.reset_client(&client).await?;
        Ok(StatusCode::NO_CONTENT.into_response())
    })
    .await
}
