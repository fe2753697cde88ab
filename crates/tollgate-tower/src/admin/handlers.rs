//! Request handlers.

use std::error::Error;
use std::sync::Arc;

use axum::body::to_bytes;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Request, State};
use axum::response::{IntoResponse, Response};
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, StatusCode, Uri};
use http_body_util::LengthLimitError;
use serde_json::Value;
use tollgate::{
    ClientId, Clock, MAX_FACT_LENGTH, Observer, Override, OverrideProposal, OverrideStorage,
    Overrides, Store, SystemClock,
};

use super::audit_entry::{Action, Author, audit_entry};
use super::override_body::OverrideBody;
use super::parameters::{Parameters, check_length};
use super::problem::Problem;
use super::router::AdminState;
use super::views::{overrides_view, proposal_view, stats_view};
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

    /// Returns the override of a body, or an error if it cannot apply or there are too many overrides.
    fn propose(
        &self,
        client: &ClientId,
        body: &OverrideBody,
        author: &Author,
    ) -> Result<OverrideProposal, Problem> {
        let active = self.limiter.active_policy();
        let new = body.build(SystemClock::new().now())?;
        let new = new.recorded_by(author.name.as_str(), author.reason.as_str());
        let proposal = client.propose_override(&new, &body.selection()?, &active)?;
        let stored = active.overrides().get(&client.subject());
        let is_added = |new: &&Override| stored.iter().all(|stored| stored.rule != new.rule);
        let added = proposal.overrides.iter().filter(is_added).count();
        if added > 0 && active.overrides().len() + added > MAX_OVERRIDES {
            let detail = format!("the maximum of {MAX_OVERRIDES} overrides is reached; remove one");
            return Err(Problem::new(StatusCode::BAD_REQUEST, detail));
        }
        Ok(proposal)
    }

    /// Returns the response to a new override.
    fn proposal_response(&self, client: &ClientId, proposal: &OverrideProposal) -> Response {
        let (active, subject) = (self.limiter.active_policy(), client.subject());
        // Not the active overrides: a dry run is not stored, and another storage may activate it later.
        let with = |all: Overrides, new: &Override| all.with(&subject, new.clone());
        let all = proposal.overrides.iter().fold(active.overrides().clone(), with);
        let view = proposal_view(client, proposal, all.get(&subject), active.policy());
        json(&view.unwrap_or_default())
    }
}

fn complete(is_complete: bool) -> Result<(), Problem> {
    if is_complete {
        return Ok(());
    }
    let detail = "reset incomplete: there was not enough time to search all keys; retry";
    Err(Problem::unavailable(detail))
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

fn no_override_of_rule(client: &ClientId, rule: &str) -> Problem {
    let shorten = |text: &str| text.chars().take(100).collect::<String>();
    let (id, rule) = (shorten(client.id()), shorten(rule));
    let detail = format!("client {id:?} has no override for rule {rule:?}");
    Problem::new(StatusCode::NOT_FOUND, detail)
}

/// A body that is too long, or that the client did not finish.
fn body_problem(error: &axum::Error) -> Problem {
    if error.source().is_some_and(<dyn Error>::is::<LengthLimitError>) {
        let detail = format!("the body exceeds {MAX_BODY} bytes");
        return Problem::new(StatusCode::PAYLOAD_TOO_LARGE, detail);
    }
    Problem::new(StatusCode::BAD_REQUEST, "the body ended early")
}

/// Sets the override of a client for one rule or several. With `?dry_run=true` it only returns the effect.
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
    let parameters = Parameters::parse(request.uri())?.without_rule()?;
    let client = state.client(path, &parameters)?;
    check_content_type(request.headers())?;
    let (head, body) = request.into_parts();
    let body = to_bytes(body, MAX_BODY).await.map_err(|error| body_problem(&error))?;
    let body = OverrideBody::parse(&body)?;
    let stated =
        (body.author.clone().or(parameters.author), body.reason.clone().or(parameters.reason));
    let author = state.author(&RequestHead::from(&head), stated)?;
    let proposal = state.propose(&client, &body, &author)?;
    if parameters.dry_run == Some(true) {
        return Ok(state.proposal_response(&client, &proposal));
    }
    finish(async move {
        let action = if body.fresh { Action::SetFreshOverride } else { Action::SetOverride };
        let entry = audit_entry(action, &client, &author);
        let subject = client.subject();
        let stored = state.storage.set_overrides(&subject, &proposal.overrides, &entry).await;
        stored.map_err(|error| Problem::write_failure(&error))?;
        state.notify(&entry);
        if body.fresh {
            let reset = state.limiter.reset_client_in(&client, &proposal.rules()).await;
            let reset = reset.map_err(Problem::from).and_then(complete);
            reset.map_err(|problem| problem.context("override stored; usage not reset"))?;
        }
        Ok(state.proposal_response(&client, &proposal))
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

/// Returns the overrides of a client.
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
    let client = state.client(path, &Parameters::parse_plain(&uri)?)?;
    let active = state.limiter.active_policy();
    let all = active.overrides().get(&client.subject());
    let view = overrides_view(&client, all, active.policy());
    view.map(|view| json(&view)).ok_or_else(|| no_override(&client))
}

/// Removes all overrides of a client, with `?rule=` only that of the rule.
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
    let parameters = Parameters::parse(request.uri())?.without_dry_run()?;
    let client = state.client(path, &parameters)?;
    let author =
        state.author(&RequestHead::from(&request), (parameters.author, parameters.reason))?;
    let rule = parameters.rule;
    finish(async move {
        let entry = audit_entry(Action::RemoveOverride, &client, &author);
        let subject = client.subject();
        let removed = state.storage.remove_overrides(&subject, rule.as_deref(), &entry);
        let removed = removed.await.map_err(|error| Problem::write_failure(&error))?;
        match rule {
            _ if removed => {}
            Some(rule) => return Err(no_override_of_rule(&client, &rule)),
            None => return Err(no_override(&client)),
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
    let client = state.client(path, &Parameters::parse_plain(&uri)?)?;
    let usage = state.limiter.client_usage(&client).await?;
    let active = state.limiter.active_policy();
    Ok(json(&stats_view(&client, &usage, &active)))
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
    let parameters = Parameters::parse_plain(request.uri())?;
    let client = state.client(path, &parameters)?;
    let author =
        state.author(&RequestHead::from(&request), (parameters.author, parameters.reason))?;
    finish(async move {
        let entry = audit_entry(Action::ResetClient, &client, &author);
        // A reset that cannot be audited is not made.
        state.storage.record_audit(&entry).await?;
        state.notify(&entry);
        complete(state.limiter.reset_client(&client).await?)?;
        Ok(StatusCode::NO_CONTENT.into_response())
    })
    .await
}
