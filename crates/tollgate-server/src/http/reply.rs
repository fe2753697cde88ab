//! Builders for HTTP responses.

use axum::response::IntoResponse;
use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{
    CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE,
};
use hyper::{Response, StatusCode};
use serde::Serialize;

use crate::error::{ApiError, ApiErrorKind};

/// A response with a complete body.
pub(super) type Reply = Response<Full<Bytes>>;

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const PROBLEM: HeaderValue = HeaderValue::from_static("application/problem+json");

/// Returns a 200 response with the value as JSON.
pub(super) fn json(value: &impl Serialize) -> Reply {
    let mut text = Vec::with_capacity(512);
    // The serialized types have string keys and no fallible parts, so this cannot fail.
    match serde_json::to_writer(&mut text, value) {
        Ok(()) => json_bytes(text),
        Err(_) => with_type(StatusCode::INTERNAL_SERVER_ERROR, JSON, Bytes::new()),
    }
}

/// Returns a 200 response with JSON text.
pub(super) fn json_bytes(text: Vec<u8>) -> Reply {
    let mut reply = Response::new(Full::new(text.into()));
    reply.headers_mut().insert(CONTENT_TYPE, JSON);
    reply
}

/// Returns the error as problem details (RFC 9457).
pub(super) fn problem(error: &ApiError) -> Reply {
    let status = StatusCode::from_u16(error.kind().statuses().http);
    let status = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut reply = with_type(status, PROBLEM, error.to_json(None).into());
    if let Some(seconds) = error.retry_after_seconds() {
        reply.headers_mut().insert(RETRY_AFTER, seconds.into());
    }
    if matches!(error.kind(), ApiErrorKind::TokenMissing | ApiErrorKind::Unauthorized) {
        return with_header(reply, WWW_AUTHENTICATE, "Bearer realm=\"tollgate\"");
    }
    reply
}

/// Changes the status to 503 and sets `Retry-After` in seconds (default 1).
pub(super) fn unavailable(mut reply: Reply, retry_after: Option<u64>) -> Reply {
    *reply.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    reply.headers_mut().insert(RETRY_AFTER, retry_after.unwrap_or(1).into());
    reply
}

/// Returns a response with this status, content type and body.
pub(super) fn with_type(status: StatusCode, kind: HeaderValue, bytes: Bytes) -> Reply {
    let mut reply = Response::new(Full::new(bytes));
    *reply.status_mut() = status;
    reply.headers_mut().insert(CONTENT_TYPE, kind);
    reply
}

/// Adds a header.
pub(super) fn with_header(mut reply: Reply, name: HeaderName, value: &'static str) -> Reply {
    reply.headers_mut().insert(name, HeaderValue::from_static(value));
    reply
}

/// Forbids caches to store the reply.
pub(super) fn uncached(reply: Reply) -> Reply {
    with_header(reply, CACHE_CONTROL, "no-store")
}

impl IntoResponse for ApiError {
    fn into_response(self) -> axum::response::Response {
        problem(&self).into_response()
    }
}
