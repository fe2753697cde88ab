//! Handlers of the admin API.

use std::sync::Arc;

use axum::extract::rejection::PathRejection;
use axum::extract::{FromRequestParts, Path, Query, Request, State};
use bytes::Bytes;
use hyper::header::HeaderValue;
use hyper::http::request::Parts;
use hyper::{StatusCode, Uri};
use serde::{Deserialize, Serialize};
use tokio::task::spawn_blocking;
use tollgate::{Clock, Override, SystemClock};

use super::auth::AuthToken;
use super::body::{MAX_BODY, read};
use super::connection::Peer;
use super::listings::page_request;
use super::reply::{Reply, json, uncached, with_type};
use crate::api::admin::{
    self, Action, Author, Change, ChangeOutcome, Client, OverrideStore, run_to_completion,
};
use crate::app::App;
use crate::error::{ApiError, ApiErrorKind};
use crate::wire::override_body;
use crate::wire::override_view::OverrideResponse;

/// Maximum length of a reason in bytes.
const MAX_REASON: usize = 1000;
/// Maximum length of an author's name in bytes.
const MAX_AUTHOR: usize = 200;
const JSON: HeaderValue = HeaderValue::from_static("application/json");

type Shared = State<Arc<App>>;
type Id = Result<Path<String>, PathRejection>;

/// The caller of an admin request: its peer address and token.
#[derive(Debug, Clone, Copy)]
pub(super) struct Caller {
    peer: Peer,
    token: AuthToken,
}

impl FromRequestParts<Arc<App>> for Caller {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &Arc<App>) -> Result<Self, ApiError> {
        let (peer, token) = (parts.extensions.get(), parts.extensions.get());
        // The connection and the authentication middleware set them.
        let (Some(&peer), Some(&token)) = (peer, token) else {
            return Err(ApiError::peer_missing());
        };
        Ok(Self { peer, token })
    }
}

/// Query parameters of an admin request.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct ChangeQuery {
    tenant: Option<String>,
    author: Option<String>,
    reason: Option<String>,
}

impl ChangeQuery {
    fn parse(uri: &Uri) -> Result<Self, ApiError> {
        let Query(query) = Query::<Self>::try_from_uri(uri)
            .map_err(|rejection| ApiError::invalid(rejection.body_text()))?;
        for (field, text) in
            [("author", &query.author), ("reason", &query.reason), ("tenant", &query.tenant)]
        {
            // The query parser replaces bytes that are not UTF-8.
            if text.as_ref().is_some_and(|text| text.contains(char::REPLACEMENT_CHARACTER)) {
                return Err(ApiError::invalid("must be valid UTF-8").at(field));
            }
        }
        ensure_length("author", query.author.as_deref(), MAX_AUTHOR)?;
        ensure_length("reason", query.reason.as_deref(), MAX_REASON)?;
        ensure_length("tenant", query.tenant.as_deref(), tollgate::MAX_FACT_LENGTH)?;
        Ok(query)
    }
}

/// Returns an error if the text is longer than `max` bytes.
fn ensure_length(field: &str, text: Option<&str>, max: usize) -> Result<(), ApiError> {
    let Some(text) = text else { return Ok(()) };
    if text.len() > max {
        return Err(ApiError::invalid(format!("must be at most {max} bytes")).at(field));
    }
    Ok(())
}

fn client(app: &App, id: Id, query: &ChangeQuery) -> Result<Client, ApiError> {
    let Path(id) = id.map_err(|rejection| ApiError::invalid(rejection.body_text()).at("id"))?;
    let policy_tenant = || app.limiter().active_policy().policy().tenant().to_owned();
    Client::new(id, query.tenant.clone().unwrap_or_else(policy_tenant))
}

fn change(app: &App, action: Action, caller: &Caller, query: &ChangeQuery) -> Change {
    let author = Author {
        name: query.author.clone().unwrap_or_default(),
        token: caller.token.0,
        peer: caller.peer.0.ip(),
    };
    Change::new(action, author, app.node_id(), query.reason.clone().unwrap_or_default())
}

/// Returns an empty 204 response.
fn no_content() -> Reply {
    let mut reply = uncached(with_type(StatusCode::NO_CONTENT, JSON, Bytes::new()));
    reply.headers_mut().remove(hyper::header::CONTENT_TYPE);
    reply
}

/// PUT /admin/external/clients/{id}/limits.
pub(super) async fn put_limits(
    State(app): Shared,
    id: Id,
    caller: Caller,
    request: Request,
) -> Result<Reply, ApiError> {
    let query = ChangeQuery::parse(request.uri())?;
    let client = client(&app, id, &query)?;
    let body = read(request, MAX_BODY).await?;
    let body = override_body::read(&body)?;
    let query = ChangeQuery {
        author: body.author.or(query.author),
        reason: body.reason.or(query.reason),
        ..query
    };
    ensure_length("author", query.author.as_deref(), MAX_AUTHOR)?;
    ensure_length("reason", query.reason.as_deref(), MAX_REASON)?;
    let override_ = validated(&app, body.override_, &query)?;
    let change = change(&app, Action::SetOverride, &caller, &query);
    OverrideStore::set(&app, &client, Some(override_.clone()), change.of(&client)).await?;
    let active = app.limiter().active_policy();
    Ok(uncached(json(&OverrideResponse::new(
        &client.id,
        &client.tenant,
        &override_,
        active.policy(),
    ))))
}

/// Checks that an override can apply to the active policy, and adds its author, reason and time.
fn validated(app: &App, override_: Override, query: &ChangeQuery) -> Result<Override, ApiError> {
    let now = SystemClock::new().now();
    if override_.is_expired(now) {
        return Err(ApiError::invalid("must be in the future").at("expires_at"));
    }
    let active = app.limiter().active_policy();
    override_.applies_to(active.policy()).map_err(|error| override_body::override_error(&error))?;
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let expires_at = override_.expires_at;
    let recorded = override_.recorded_by(text(&query.author), text(&query.reason));
    Ok(recorded.valid(now, expires_at))
}

/// GET /admin/external/clients/{id}/limits.
pub(super) async fn get_limits(State(app): Shared, id: Id, uri: Uri) -> Result<Reply, ApiError> {
    let client = client(&app, id, &ChangeQuery::parse(&uri)?)?;
    let active = app.limiter().active_policy();
    let override_ =
        active.overrides().get(&client.subject()).ok_or_else(|| no_override(&client))?;
    Ok(uncached(json(&OverrideResponse::new(
        &client.id,
        &client.tenant,
        override_,
        active.policy(),
    ))))
}

fn no_override(client: &Client) -> ApiError {
    let id: String = client.id.chars().take(100).collect();
    ApiError::new(ApiErrorKind::NotFound, format!("client {id:?} has no override"))
}

/// DELETE /admin/external/clients/{id}/limits.
pub(super) async fn delete_limits(
    State(app): Shared,
    id: Id,
    caller: Caller,
    uri: Uri,
) -> Result<Reply, ApiError> {
    let query = ChangeQuery::parse(&uri)?;
    let client = client(&app, id, &query)?;
    let change = change(&app, Action::RemoveOverride, &caller, &query);
    match OverrideStore::set(&app, &client, None, change.of(&client)).await? {
        ChangeOutcome::Replaced(_) => Ok(no_content()),
        ChangeOutcome::NotFound => Err(no_override(&client)),
    }
}

/// GET /admin/external/clients/{id}/stats.
pub(super) async fn stats(State(app): Shared, id: Id, uri: Uri) -> Result<Reply, ApiError> {
    let client = client(&app, id, &ChangeQuery::parse(&uri)?)?;
    Ok(uncached(json(&admin::stats(&app, &client).await?)))
}

/// POST /admin/external/clients/{id}/reset.
pub(super) async fn reset(
    State(app): Shared,
    id: Id,
    caller: Caller,
    uri: Uri,
) -> Result<Reply, ApiError> {
    let query = ChangeQuery::parse(&uri)?;
    let client = client(&app, id, &query)?;
    let change = change(&app, Action::Reset, &caller, &query);
    OverrideStore::record(&app, change.of(&client)).await?;
    run_to_completion(async move { admin::reset(&app, &client).await }).await?;
    Ok(no_content())
}

/// GET /admin/overrides.
pub(super) async fn overrides(State(app): Shared, uri: Uri) -> Result<Reply, ApiError> {
    let page = page_request(&uri)?;
    let kept_in = app.override_store().map_or("memory", OverrideStore::kept_in);
    let active = app.limiter().active_policy();
    let source = (active.overrides(), active.policy());
    Ok(uncached(json(&admin::OverrideList::page(source, &page, kept_in))))
}

/// GET /admin/audit.
pub(super) async fn audit(State(app): Shared, uri: Uri) -> Result<Reply, ApiError> {
    let page = page_request(&uri)?;
    if !page.prefix.is_empty() || page.tenant.is_some() {
        let detail = "`prefix` and `tenant` are not supported here; use `limit` and `cursor`";
        return Err(ApiError::invalid(detail));
    }
    let entries = admin::audit(&app, page.cursor.as_deref(), page.page_size).await?;
    Ok(uncached(json(&entries)))
}

#[derive(Debug, Serialize)]
struct ReloadResponse {
    version: String,
    rules: usize,
    warnings: Vec<String>,
}

/// POST /admin/policy/reload.
pub(super) async fn reload(
    State(app): Shared,
    caller: Caller,
    uri: Uri,
) -> Result<Reply, ApiError> {
    let query = ChangeQuery::parse(&uri)?;
    if query.tenant.is_some() {
        let detail = "is not supported here: a policy applies to all tenants";
        return Err(ApiError::invalid(detail).at("tenant"));
    }
    let unprocessable = |reason: String| ApiError::new(ApiErrorKind::Unprocessable, reason);
    let version = || app.limiter().active_policy().policy().version().to_owned();
    let before = version();
    let next = match file_version(&app).await {
        Ok(next) => next,
        // Reload anyway, so that the file watcher reports the error until the file is repaired.
        Err(_) => app.reload().await.map(|()| version()).map_err(unprocessable)?,
    };
    let change = change(&app, Action::Reload, &caller, &query);
    OverrideStore::record(&app, change.between(&before, &next)).await?;
    app.reload().await.map_err(unprocessable)?;
    let active = app.limiter().active_policy();
    let policy = active.policy();
    Ok(uncached(json(&ReloadResponse {
        version: policy.version().to_owned(),
        rules: policy.rules().len(),
        warnings: policy.warnings().to_vec(),
    })))
}

/// Returns the version of the policy that the file currently contains.
async fn file_version(app: &Arc<App>) -> Result<String, String> {
    let file = app.policy_file().clone();
    if file.path().is_none() {
        return Err("no policy file is configured".to_owned());
    }
    let version = spawn_blocking(move || file.load().map(|policy| policy.version().to_owned()));
    let version = version.await.map_err(|_| "the server is shutting down".to_owned())?;
    version.map_err(|error| error.to_string())
}
