//! Error responses: `application/problem+json` (RFC 9457).

use axum::response::{IntoResponse, Response};
use http::header::{CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderValue, StatusCode};
use serde_json::{Value, json};
use tollgate::{OverrideCandidate, OverrideError, OverrideErrorKind, StoreError};

/// An error of the admin API.
#[derive(Debug)]
pub(super) struct Problem {
    status: StatusCode,
    detail: String,
    field: Option<String>,
    retry_after: Option<u64>,
    /// The rules of which an override must name one.
    candidates: Vec<OverrideCandidate>,
}

impl Problem {
    pub(super) fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        let detail = detail.into();
        Self { status, detail, field: None, retry_after: None, candidates: Vec::new() }
    }

    pub(super) fn invalid(field: &str, detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, detail).at(field)
    }

    pub(super) fn unauthorized(detail: &str) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, detail)
    }

    pub(super) fn too_many(detail: String, retry_after: u64) -> Self {
        let problem = Self::new(StatusCode::TOO_MANY_REQUESTS, detail);
        Self { retry_after: Some(retry_after), ..problem }
    }

    pub(super) fn unavailable(detail: impl Into<String>) -> Self {
        let problem = Self::new(StatusCode::SERVICE_UNAVAILABLE, detail);
        Self { retry_after: Some(1), ..problem }
    }

    /// The failure of a write to the override storage. Without a reply the write may have happened.
    pub(super) fn write_failure(error: &StoreError) -> Self {
        match error.may_have_run() {
            true => Self::unavailable(format!(
                "{error}; the change may have been stored: read the override before you retry"
            )),
            false => Self::unavailable(error.to_string()),
        }
    }

    /// Adds context in front of the detail.
    pub(super) fn context(self, context: &str) -> Self {
        Self { detail: format!("{context}: {}", self.detail), ..self }
    }

    fn at(self, field: &str) -> Self {
        Self { field: Some(field.to_owned()), ..self }
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        Self::unavailable(error.to_string())
    }
}

impl From<OverrideError> for Problem {
    fn from(error: OverrideError) -> Self {
        let field = match error.kind() {
            OverrideErrorKind::Limit { index } => format!("limits[{index}]"),
            OverrideErrorKind::Rule => "rule".to_owned(),
            _ => "limits".to_owned(),
        };
        let candidates = error.candidates().to_vec();
        Self { candidates, ..Self::invalid(&field, error.to_string()) }
    }
}

fn candidate_view(candidate: &OverrideCandidate) -> Value {
    let limits: Vec<String> = candidate.limits.iter().map(ToString::to_string).collect();
    json!({ "rule": candidate.rule, "limits": limits, "blocks": candidate.blocks })
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let detail = match &self.field {
            Some(field) => format!("{field}: {}", self.detail),
            None => self.detail,
        };
        let mut body = json!({
            "type": "about:blank",
            "title": self.status.canonical_reason(),
            "status": self.status.as_u16(),
            "detail": detail,
        });
        if let (Some(field), Some(body)) = (self.field, body.as_object_mut()) {
            body.insert("field".to_owned(), field.into());
        }
        if let (false, Some(body)) = (self.candidates.is_empty(), body.as_object_mut()) {
            let candidates: Vec<Value> = self.candidates.iter().map(candidate_view).collect();
            body.insert("candidates".to_owned(), candidates.into());
        }
        let mut response = (self.status, body.to_string()).into_response();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if let Some(seconds) = self.retry_after {
            headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}
