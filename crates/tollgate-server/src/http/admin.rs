//! The paths for administrators.

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

use super::auth::Admitted;
use super::body::{MAX_BODY, read};
use super::connection::Peer;
use super::listings::wanted;
use super::reply::{Reply, json, uncached, with_type};
use crate::api::admin::{self, Action, Author, Change, Changed, Client, OverrideStore, to_its_end};
use crate::app::App;
use crate::error::{ApiError, ApiErrorKind};
use crate::wire::override_body;
use crate::wire::override_view::told;

const MAX_REASON: usize = 1000;
const MAX_AUTHOR: usize = 200;
const JSON: HeaderValue = HeaderValue::from_static("application/json");

type Shared = State<Arc<App>>;
type Id = Result<Path<String>, PathRejection>;

/// Who asks, as the connection and the token tell.
#[derive(Debug, Clone, Copy)]
pub(super) struct Asking {
    peer: Peer,
    admitted: Admitted,
}

impl FromRequestParts<Arc<App>> for Asking {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &Arc<App>) -> Result<Self, ApiError> {
        let (peer, admitted) = (parts.extensions.get(), parts.extensions.get());
        // The guard has put both there.
        let nobody = || ApiError::new(ApiErrorKind::Unauthorized, "nobody asks");
        let (Some(&peer), Some(&admitted)) = (peer, admitted) else { return Err(nobody()) };
        Ok(Self { peer, admitted })
    }
}

/// What may be said of a change beside its body.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct About {
    tenant: Option<String>,
    author: Option<String>,
    reason: Option<String>,
}

impl About {
    fn of(uri: &Uri) -> Result<Self, ApiError> {
        let query = Query::<Self>::try_from_uri(uri)
            .map_err(|rejection| ApiError::invalid(rejection.body_text()))?;
        let Query(about) = query;
        for (field, text) in
            [("author", &about.author), ("reason", &about.reason), ("tenant", &about.tenant)]
        {
            // A query that is not UTF-8 has been read with these in its place.
            if text.as_ref().is_some_and(|text| text.contains(char::REPLACEMENT_CHARACTER)) {
                return Err(ApiError::invalid("is not text in UTF-8").at(field));
            }
        }
        short("author", about.author.as_deref(), MAX_AUTHOR)?;
        short("reason", about.reason.as_deref(), MAX_REASON)?;
        short("tenant", about.tenant.as_deref(), tollgate::MAX_FACT_LENGTH)?;
        Ok(about)
    }
}

/// A text that is not too long.
fn short(field: &str, text: Option<&str>, most: usize) -> Result<(), ApiError> {
    let Some(text) = text else { return Ok(()) };
    if text.len() > most {
        return Err(ApiError::invalid(format!("is longer than {most} bytes")).at(field));
    }
    Ok(())
}

fn client(app: &App, id: Id, about: &About) -> Result<Client, ApiError> {
    let Path(id) = id.map_err(|rejection| ApiError::invalid(rejection.body_text()).at("id"))?;
    let policy_tenant = || app.limiter().active_policy().policy().tenant().to_owned();
    Client::new(id, about.tenant.clone().unwrap_or_else(policy_tenant))
}

fn change(app: &App, action: Action, asking: &Asking, about: &About) -> Change {
    let author = Author {
        name: about.author.clone().unwrap_or_default(),
        token: asking.admitted.0,
        peer: asking.peer.0.ip(),
    };
    Change::new(action, author, app.node_id(), about.reason.clone().unwrap_or_default())
}

fn done() -> Reply {
    let mut reply = uncached(with_type(StatusCode::NO_CONTENT, JSON, Bytes::new()));
    reply.headers_mut().remove(hyper::header::CONTENT_TYPE);
    reply
}

/// PUT /admin/external/clients/{id}/limits.
pub(super) async fn put_limits(
    State(app): Shared,
    id: Id,
    asking: Asking,
    request: Request,
) -> Result<Reply, ApiError> {
    let about = About::of(request.uri())?;
    let client = client(&app, id, &about)?;
    let body = read(request, MAX_BODY).await?;
    let given = override_body::read(&body)?;
    let about = About {
        author: given.author.or(about.author),
        reason: given.reason.or(about.reason),
        ..about
    };
    short("author", about.author.as_deref(), MAX_AUTHOR)?;
    short("reason", about.reason.as_deref(), MAX_REASON)?;
    let own = in_force(&app, given.own, &about)?;
    let change = change(&app, Action::SetOverride, &asking, &about);
    OverrideStore::set(&app, &client, Some(own.clone()), change.of(&client)).await?;
    let current = app.limiter().active_policy();
    Ok(uncached(json(&told((&client.id, &client.tenant), &own, current.policy()))))
}

/// The override with what is said of it, if it can be in force.
fn in_force(app: &App, own: Override, about: &About) -> Result<Override, ApiError> {
    let now = SystemClock::new().now();
    if own.is_expired(now) {
        return Err(ApiError::invalid("is in the past").at("expires_at"));
    }
    let current = app.limiter().active_policy();
    own.applies_to(current.policy()).map_err(|error| override_body::blame(&error))?;
    let said = |text: &Option<String>| text.clone().unwrap_or_default();
    let until = own.expires_at;
    Ok(own.recorded_by(said(&about.author), said(&about.reason)).valid(now, until))
}

/// GET /admin/external/clients/{id}/limits.
pub(super) async fn get_limits(State(app): Shared, id: Id, uri: Uri) -> Result<Reply, ApiError> {
    let client = client(&app, id, &About::of(&uri)?)?;
    let current = app.limiter().active_policy();
    let own = current.overrides().get(&client.subject()).ok_or_else(|| none_of(&client))?;
    Ok(uncached(json(&told((&client.id, &client.tenant), own, current.policy()))))
}

fn none_of(client: &Client) -> ApiError {
    let id: String = client.id.chars().take(100).collect();
    ApiError::new(ApiErrorKind::NotFound, format!("client {id:?} has no limits of its own"))
}

/// DELETE /admin/external/clients/{id}/limits.
pub(super) async fn delete_limits(
    State(app): Shared,
    id: Id,
    asking: Asking,
    uri: Uri,
) -> Result<Reply, ApiError> {
    let about = About::of(&uri)?;
    let client = client(&app, id, &about)?;
    let change = change(&app, Action::RemoveOverride, &asking, &about);
    match OverrideStore::set(&app, &client, None, change.of(&client)).await? {
        Changed::From(_) => Ok(done()),
        Changed::Nothing => Err(none_of(&client)),
    }
}

/// GET /admin/external/clients/{id}/stats.
pub(super) async fn stats(State(app): Shared, id: Id, uri: Uri) -> Result<Reply, ApiError> {
    let client = client(&app, id, &About::of(&uri)?)?;
    Ok(uncached(json(&admin::stats(&app, &client).await?)))
}

/// POST /admin/external/clients/{id}/reset.
pub(super) async fn reset(
    State(app): Shared,
    id: Id,
    asking: Asking,
    uri: Uri,
) -> Result<Reply, ApiError> {
    let about = About::of(&uri)?;
    let client = client(&app, id, &about)?;
    let change = change(&app, Action::Reset, &asking, &about);
    OverrideStore::record(&app, change.of(&client)).await?;
    to_its_end(async move { admin::reset(&app, &client).await }).await?;
    Ok(done())
}

/// GET /admin/overrides.
pub(super) async fn overrides(State(app): Shared, uri: Uri) -> Result<Reply, ApiError> {
    let (wanted, kept_in) =
        (wanted(&uri)?, app.override_store().map_or("memory", OverrideStore::kept_in));
    let current = app.limiter().active_policy();
    let known = (current.overrides(), current.policy());
    Ok(uncached(json(&admin::OverrideList::page(known, &wanted, kept_in))))
}

/// GET /admin/audit.
pub(super) async fn audit(State(app): Shared, uri: Uri) -> Result<Reply, ApiError> {
    let wanted = wanted(&uri)?;
    if !wanted.prefix.is_empty() || wanted.tenant.is_some() {
        return Err(ApiError::invalid("the audit is told whole: only limit and cursor are for it"));
    }
    let page = admin::audit(&app, wanted.cursor.as_deref(), wanted.page_size).await?;
    Ok(uncached(json(&page)))
}

#[derive(Debug, Serialize)]
struct Reloaded {
    version: String,
    rules: usize,
    warnings: Vec<String>,
}

/// POST /admin/policy/reload.
pub(super) async fn reload(
    State(app): Shared,
    asking: Asking,
    uri: Uri,
) -> Result<Reply, ApiError> {
    let about = About::of(&uri)?;
    if about.tenant.is_some() {
        return Err(ApiError::invalid("a policy is for every tenant").at("tenant"));
    }
    let unprocessable = |reason: String| ApiError::new(ApiErrorKind::Unprocessable, reason);
    let version = || app.limiter().active_policy().policy().version().to_owned();
    let before = version();
    let next = match version_of_file(&app).await {
        Ok(next) => next,
        // Who watches the file is to see it too, and to tell of it until it is mended.
        Err(_) => app.reload().await.map(|()| version()).map_err(unprocessable)?,
    };
    let change = change(&app, Action::Reload, &asking, &about);
    OverrideStore::record(&app, change.between(&before, &next)).await?;
    app.reload().await.map_err(unprocessable)?;
    let current = app.limiter().active_policy();
    let policy = current.policy();
    Ok(uncached(json(&Reloaded {
        version: policy.version().to_owned(),
        rules: policy.rules().len(),
        warnings: policy.warnings().to_vec(),
    })))
}

/// The version of the policy that the file says now, if it says one.
async fn version_of_file(app: &Arc<App>) -> Result<String, String> {
    let file = app.policy_file().clone();
    if file.path().is_none() {
        return Err("there is no policy file to read again".to_owned());
    }
    let loaded = spawn_blocking(move || file.load().map(|policy| policy.version().to_owned()));
    let loaded = loaded.await.map_err(|_| "the service is ending".to_owned())?;
    loaded.map_err(|error| error.to_string())
}
