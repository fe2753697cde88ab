//! Handlers of the admin API.

use std::sync::Arc;

use axum::extract::rejection::PathRejection;
use axum::extract::{FromRequestParts, Path, Query, Request, State};
use bytes::Bytes;
use hyper::header::HeaderValue;
use hyper::http::request::Parts;
use hyper::{StatusCode, Uri};
use serde::Deserialize;

use super::auth::AuthToken;
use super::body::{MAX_BODY, read};
use super::listings::page_request;
use super::protocol::Peer;
use super::reply::{Reply, json, uncached, with_type};
use crate::api::Service;
use crate::api::admin::{ChangeRequest, Execution};
use crate::error::ApiError;
use crate::node::overrides::{Author, Client};
use crate::wire::override_body;
use crate::wire::override_effect_view::SetOverrideResponse;

/// Maximum length of a reason in bytes.
const MAX_REASON: usize = 1000;
/// Maximum length of an author's name in bytes.
const MAX_AUTHOR: usize = 200;
const JSON: HeaderValue = HeaderValue::from_static("application/json");

type Shared = State<Arc<Service>>;
type Id = Result<Path<String>, PathRejection>;

/// The caller of an admin request: its peer address and token.
#[derive(Debug, Clone, Copy)]
pub(super) struct Caller {
    peer: Peer,
    token: AuthToken,
}

impl FromRequestParts<Arc<Service>> for Caller {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &Arc<Service>) -> Result<Self, ApiError> {
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
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct ChangeQuery {
    /// The tenant of the client. Default: the tenant of the policy.
    #[cfg_attr(test, schemars(with = "String", length(max = tollgate::MAX_FACT_LENGTH)))]
    tenant: Option<String>,
    /// The author, for the audit log.
    #[cfg_attr(test, schemars(with = "String", length(max = MAX_AUTHOR)))]
    author: Option<String>,
    /// The reason, for the audit log.
    #[cfg_attr(test, schemars(with = "String", length(max = MAX_REASON)))]
    reason: Option<String>,
    /// Remove only the override of this rule. Default: all overrides of the client.
    #[cfg_attr(test, schemars(with = "String", length(max = tollgate::MAX_FACT_LENGTH)))]
    rule: Option<String>,
    /// Whether to return the effect of the override without a change. Default: false.
    #[cfg_attr(test, schemars(with = "bool"))]
    dry_run: Option<bool>,
}

impl ChangeQuery {
    fn parse(uri: &Uri) -> Result<Self, ApiError> {
        let Query(query) = Query::<Self>::try_from_uri(uri)
            .map_err(|rejection| ApiError::invalid(rejection.body_text()))?;
        for (field, text) in [
            ("author", &query.author),
            ("reason", &query.reason),
            ("tenant", &query.tenant),
            ("rule", &query.rule),
        ] {
            // The query parser replaces bytes that are not UTF-8.
            if text.as_ref().is_some_and(|text| text.contains(char::REPLACEMENT_CHARACTER)) {
                return Err(ApiError::invalid("must be valid UTF-8").at(field));
            }
        }
        ensure_length("author", query.author.as_deref(), MAX_AUTHOR)?;
        ensure_length("reason", query.reason.as_deref(), MAX_REASON)?;
        ensure_length("tenant", query.tenant.as_deref(), tollgate::MAX_FACT_LENGTH)?;
        ensure_length("rule", query.rule.as_deref(), tollgate::MAX_FACT_LENGTH)?;
        if query.rule.as_deref() == Some("") {
            let reason = "must not be empty; omit it to remove all overrides of the client";
            return Err(ApiError::invalid(reason).at("rule"));
        }
        Ok(query)
    }

    /// Parses the parameters of an endpoint without `rule` and `dry_run`.
    fn parse_plain(uri: &Uri) -> Result<Self, ApiError> {
        Self::parse(uri)?.without_rule()?.without_dry_run()
    }

    fn without_rule(self) -> Result<Self, ApiError> {
        match self.rule {
            Some(_) => Err(ApiError::invalid("is a parameter of DELETE only").at("rule")),
            None => Ok(self),
        }
    }

    fn without_dry_run(self) -> Result<Self, ApiError> {
        match self.dry_run {
            Some(_) => Err(ApiError::invalid("is a parameter of PUT only").at("dry_run")),
            None => Ok(self),
        }
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

fn client(service: &Service, id: Id, query: &ChangeQuery) -> Result<Client, ApiError> {
    let Path(id) = id.map_err(|rejection| ApiError::invalid(rejection.body_text()).at("id"))?;
    service.client(id, query.tenant.clone())
}

impl Caller {
    /// Returns the author and reason of a change by this caller.
    fn change(self, query: ChangeQuery) -> ChangeRequest {
        let author = Author {
            name: query.author.unwrap_or_default(),
            token: self.token.0,
            peer: self.peer.0.ip(),
        };
        ChangeRequest { author, reason: query.reason.unwrap_or_default() }
    }
}

/// Returns an empty 204 response.
fn no_content() -> Reply {
    let mut reply = uncached(with_type(StatusCode::NO_CONTENT, JSON, Bytes::new()));
    reply.headers_mut().remove(hyper::header::CONTENT_TYPE);
    reply
}

/// PUT /admin/external/clients/{id}/limits.
pub(super) async fn put_limits(
    State(service): Shared,
    id: Id,
    caller: Caller,
    request: Request,
) -> Result<Reply, ApiError> {
    let query = ChangeQuery::parse(request.uri())?.without_rule()?;
    let client = client(&service, id, &query)?;
    let body = read(request, MAX_BODY).await?;
    let mut body = override_body::read(&body)?;
    let query = ChangeQuery {
        author: body.author.take().or(query.author),
        reason: body.reason.take().or(query.reason),
        ..query
    };
    ensure_length("author", query.author.as_deref(), MAX_AUTHOR)?;
    ensure_length("reason", query.reason.as_deref(), MAX_REASON)?;
    let execution = match query.dry_run {
        Some(true) => Execution::DryRun,
        Some(false) | None => Execution::Commit,
    };
    let encode = |response: &SetOverrideResponse<'_>| uncached(json(response));
    service.put_override(&client, body, caller.change(query), execution, encode).await
}

/// GET /admin/external/clients/{id}/limits.
pub(super) async fn get_limits(
    State(service): Shared,
    id: Id,
    uri: Uri,
) -> Result<Reply, ApiError> {
    let client = client(&service, id, &ChangeQuery::parse_plain(&uri)?)?;
    service.get_overrides(&client, |response| uncached(json(response)))
}

/// DELETE /admin/external/clients/{id}/limits.
pub(super) async fn delete_limits(
    State(service): Shared,
    id: Id,
    caller: Caller,
    uri: Uri,
) -> Result<Reply, ApiError> {
    let query = ChangeQuery::parse(&uri)?.without_dry_run()?;
    let client = client(&service, id, &query)?;
    service.remove_overrides(&client, query.rule.clone(), caller.change(query)).await?;
    Ok(no_content())
}

/// GET /admin/external/clients/{id}/stats.
pub(super) async fn stats(State(service): Shared, id: Id, uri: Uri) -> Result<Reply, ApiError> {
    let client = client(&service, id, &ChangeQuery::parse_plain(&uri)?)?;
    Ok(uncached(json(&service.stats(&client).await?)))
}

/// POST /admin/external/clients/{id}/reset.
pub(super) async fn reset(
    State(service): Shared,
    id: Id,
    caller: Caller,
    uri: Uri,
) -> Result<Reply, ApiError> {
    let query = ChangeQuery::parse_plain(&uri)?;
    let client = client(&service, id, &query)?;
    service.reset(client, caller.change(query)).await?;
    Ok(no_content())
}

/// GET /admin/overrides.
pub(super) async fn overrides(State(service): Shared, uri: Uri) -> Result<Reply, ApiError> {
    Ok(uncached(service.overrides(&page_request(&uri)?, |list| json(list))))
}

/// GET /admin/audit.
pub(super) async fn audit(State(service): Shared, uri: Uri) -> Result<Reply, ApiError> {
    let page = page_request(&uri)?;
    if !page.prefix.is_empty() || page.tenant.is_some() {
        let detail = "`prefix` and `tenant` are not supported here; use `limit` and `cursor`";
        return Err(ApiError::invalid(detail));
    }
    Ok(uncached(json(&service.audit(page.cursor.as_deref(), page.page_size).await?)))
}

/// POST /admin/policy/reload.
pub(super) async fn reload(
    State(service): Shared,
    caller: Caller,
    uri: Uri,
) -> Result<Reply, ApiError> {
    let query = ChangeQuery::parse_plain(&uri)?;
    if query.tenant.is_some() {
        let detail = "is not supported here: a policy applies to all tenants";
        return Err(ApiError::invalid(detail).at("tenant"));
    }
    Ok(uncached(json(&service.reload(caller.change(query)).await?)))
}
