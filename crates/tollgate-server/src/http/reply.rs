//! Answers as responses.

use axum::response::IntoResponse;
use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{
    CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE,
};
use hyper::{Response, StatusCode};
use serde::Serialize;

use crate::error::{ApiError, ApiErrorKind};

/// A response of ours.
pub(super) type Reply = Response<Full<Bytes>>;

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const PROBLEM: HeaderValue = HeaderValue::from_static("application/problem+json");

/// A value as JSON, status 200.
pub(super) fn json(value: &impl Serialize) -> Reply {
    let mut text = Vec::with_capacity(512);
    // Our types have string keys and no failing parts, so this cannot fail; if it did, an empty 500
    // is the honest answer.
    match serde_json::to_writer(&mut text, value) {
        Ok(()) => written(text),
        Err(_) => with_type(StatusCode::INTERNAL_SERVER_ERROR, JSON, Bytes::new()),
    }
}

/// JSON that is written already, status 200.
pub(super) fn written(text: Vec<u8>) -> Reply {
    with_type(StatusCode::OK, JSON, text.into())
}

/// An error as problem details.
pub(super) fn problem(error: &ApiError) -> Reply {
    let mut reply = with_type(error.kind().status(), PROBLEM, error.to_json(None).into());
    if let Some(seconds) = error.wait() {
        reply.headers_mut().insert(RETRY_AFTER, seconds.into());
    }
    if error.kind() == ApiErrorKind::Unauthorized {
        return with_header(reply, WWW_AUTHENTICATE, "Bearer realm=\"tollgate\"");
    }
    reply
}

/// The same reply, to be asked for again after so many seconds; soon, if nobody knows.
pub(super) fn unavailable(mut reply: Reply, retry_after: Option<u64>) -> Reply {
    *reply.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    reply.headers_mut().insert(RETRY_AFTER, retry_after.unwrap_or(1).into());
    reply
}

/// An answer, or why there is none.
pub(super) fn or_problem(result: Result<Reply, ApiError>) -> Reply {
    result.unwrap_or_else(|error| problem(&error))
}

/// Bytes of a type.
pub(super) fn with_type(status: StatusCode, kind: HeaderValue, bytes: Bytes) -> Reply {
    let mut reply = Response::new(Full::new(bytes));
    *reply.status_mut() = status;
    reply.headers_mut().insert(CONTENT_TYPE, kind);
    reply
}

/// The same reply with one more header.
pub(super) fn with_header(mut reply: Reply, name: HeaderName, value: &'static str) -> Reply {
    reply.headers_mut().insert(name, HeaderValue::from_static(value));
    reply
}

/// The same reply, never to be kept.
pub(super) fn uncached(reply: Reply) -> Reply {
    with_header(reply, CACHE_CONTROL, "no-store")
}

impl IntoResponse for ApiError {
    fn into_response(self) -> axum::response::Response {
        problem(&self).into_response()
    }
}
