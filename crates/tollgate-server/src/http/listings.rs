//! Handlers of the read API, and the query parameters of listings.

use std::sync::Arc;

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Query, State};
use hyper::Uri;
use serde::Deserialize;
use tollgate::MAX_FACT_LENGTH;

use super::reply::{Reply, json, uncached};
use crate::api::Service;
use crate::api::read::PageRequest;
use crate::error::ApiError;
use crate::node::history::HistoryRange;

const DEFAULT_PAGE_SIZE: usize = 100;
const MAX_PAGE_SIZE: usize = 1000;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct ListQuery {
    /// Approximate number of items on a page.
    #[cfg_attr(test, schemars(with = "usize", range(min = 1, max = MAX_PAGE_SIZE), extend("default" = DEFAULT_PAGE_SIZE)))]
    limit: Option<String>,
    /// The cursor of the previous page.
    #[cfg_attr(test, schemars(with = "String", length(min = 1)))]
    cursor: Option<String>,
    /// Only keys that start with this text.
    #[cfg_attr(test, schemars(with = "String", length(max = MAX_FACT_LENGTH)))]
    prefix: Option<String>,
    /// Only keys of this tenant. A prefix without a tenant searches keys without a tenant, or all keys if the policy sets
    /// a tenant.
    #[cfg_attr(test, schemars(with = "String", length(max = MAX_FACT_LENGTH)))]
    tenant: Option<String>,
}

/// Parses and validates the query parameters of a listing.
pub(super) fn page_request(uri: &Uri) -> Result<PageRequest, ApiError> {
    let query = Query::<ListQuery>::try_from_uri(uri)
        .map_err(|rejection| ApiError::invalid(rejection.body_text()))?;
    let Query(ListQuery { limit, cursor, prefix, tenant }) = query;
    let page_size = match limit.as_deref().map(str::parse) {
        None => DEFAULT_PAGE_SIZE,
        Some(Ok(number @ 1..=MAX_PAGE_SIZE)) => number,
        Some(_) => {
            let detail = format!("must be an integer from 1 to {MAX_PAGE_SIZE}");
            return Err(ApiError::invalid(detail).at("limit"));
        }
    };
    if cursor.as_deref() == Some("") {
        return Err(ApiError::invalid("must not be empty; omit it for the first page").at("cursor"));
    }
    let prefix = prefix.unwrap_or_default();
    ensure_valid("prefix", Some(&prefix))?;
    ensure_valid("tenant", tenant.as_ref())?;
    Ok(PageRequest { tenant, prefix, page_size, cursor })
}

/// Returns an error if a text is not UTF-8 or too long.
fn ensure_valid(field: &str, text: Option<&String>) -> Result<(), ApiError> {
    // The query parser replaces bytes that are not UTF-8.
    if text.is_some_and(|text| text.contains(char::REPLACEMENT_CHARACTER)) {
        return Err(ApiError::invalid("must be valid UTF-8").at(field));
    }
    if text.is_some_and(|text| text.len() > MAX_FACT_LENGTH) {
        let detail = format!("must be at most {MAX_FACT_LENGTH} bytes");
        return Err(ApiError::invalid(detail).at(field));
    }
    Ok(())
}

/// The query parameter of `/api/clients/{id}`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct ClientQuery {
    /// The tenant of the client. Default: the tenant of the policy.
    #[cfg_attr(test, schemars(with = "String", length(max = MAX_FACT_LENGTH)))]
    tenant: Option<String>,
}

/// GET /api/clients/{id}.
pub(super) async fn client(
    State(service): State<Arc<Service>>,
    id: Result<Path<String>, PathRejection>,
    uri: Uri,
) -> Result<Reply, ApiError> {
    let Query(ClientQuery { tenant }) = Query::<ClientQuery>::try_from_uri(&uri)
        .map_err(|rejection| ApiError::invalid(rejection.body_text()))?;
    ensure_valid("tenant", tenant.as_ref())?;
    let Path(id) = id.map_err(|rejection| ApiError::invalid(rejection.body_text()).at("id"))?;
    let client = service.client(id, tenant)?;
    Ok(uncached(service.client_view(&client, |view| json(view)).await))
}

pub(super) async fn counters(
    State(service): State<Arc<Service>>,
    uri: Uri,
) -> Result<Reply, ApiError> {
    Ok(uncached(json(&service.counters(&page_request(&uri)?).await?)))
}

pub(super) async fn blocks(
    State(service): State<Arc<Service>>,
    uri: Uri,
) -> Result<Reply, ApiError> {
    Ok(uncached(json(&service.blocks(&page_request(&uri)?).await?)))
}

pub(super) async fn limits(
    State(service): State<Arc<Service>>,
    uri: Uri,
) -> Result<Reply, ApiError> {
    Ok(uncached(service.limits(&page_request(&uri)?, |limits| json(limits))))
}

pub(super) async fn nodes(
    State(service): State<Arc<Service>>,
    uri: Uri,
) -> Result<Reply, ApiError> {
    Ok(uncached(json(&service.nodes(&page_request(&uri)?).await?)))
}

/// GET /api/events.
pub(super) async fn events(
    State(service): State<Arc<Service>>,
    uri: Uri,
) -> Result<Reply, ApiError> {
    let page = page_request(&uri)?;
    if !page.prefix.is_empty() || page.tenant.is_some() {
        let detail = "`prefix` and `tenant` are not supported here; use `limit` and `cursor`";
        return Err(ApiError::invalid(detail));
    }
    Ok(uncached(json(&service.events(page.cursor.as_deref(), page.page_size).await?)))
}

/// Query parameters of `/api/history`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct HistoryQuery {
    /// The time range, with intervals of 1 s, 10 s or 5 min. Default: 1h.
    #[cfg_attr(test, schemars(with = "crate::reference_tests::names::HistoryRange"))]
    range: Option<String>,
}

/// GET /api/history.
pub(super) async fn history(
    State(service): State<Arc<Service>>,
    uri: Uri,
) -> Result<Reply, ApiError> {
    let Query(query) = Query::<HistoryQuery>::try_from_uri(&uri)
        .map_err(|rejection| ApiError::invalid(rejection.body_text()))?;
    let range = match query.range.as_deref() {
        None => Some(HistoryRange::Hour),
        Some(range) => HistoryRange::parse(range),
    };
    let range = range.ok_or_else(|| ApiError::invalid("must be 5m, 1h or 24h").at("range"))?;
    Ok(uncached(json(&service.history(range).await)))
}

pub(super) async fn status(State(service): State<Arc<Service>>) -> Reply {
    uncached(service.status(|status| json(status)))
}
