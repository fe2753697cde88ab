//! API errors, and the table of their statuses in every protocol.

use std::fmt;

use serde::Serialize;
use tollgate::{LimiterError, OnStoreLoss, Outcome, ReserveError, StoreError, StoreErrorKind};

use super::rule_candidate::RuleCandidate;

/// An error response of the API. A refused request is not an error but a decision.
///
/// ```
/// use tollgate_server::{ApiError, ApiErrorKind};
///
/// let error = ApiError::new(ApiErrorKind::Invalid, "must not be empty").at("key");
/// assert_eq!(error.to_string(), "key: must not be empty");
/// assert_eq!(error.kind().statuses().http, 400);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiError {
    kind: ApiErrorKind,
    field: Option<String>,
    detail: String,
    retry_after: Option<u64>,
    reason: Option<&'static str>,
    candidates: Box<[RuleCandidate]>,
}

/// The reason of a request that was shed, because too many wait for the store.
const OVERLOADED: &str = "overloaded";
/// The reason of a request that was not decided, because the store is lost.
const STORE_LOST: &str = "store_lost";

/// The kind of an [`ApiError`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ApiErrorKind {
    /// The request is invalid. Do not retry it unchanged.
    Invalid,
    /// The token is missing.
    TokenMissing,
    /// The token or the session is invalid.
    Unauthorized,
    /// The request comes from a page of another site.
    Forbidden,
    /// The path or the requested object does not exist.
    NotFound,
    /// The path does not support the method.
    Method,
    /// The request contradicts an earlier one. Do not retry it unchanged.
    Conflict,
    /// The body did not arrive in time.
    Timeout,
    /// The body is too long.
    TooLarge,
    /// The Content-Type is not JSON.
    MediaType,
    /// The policy file to load is invalid.
    Unprocessable,
    /// Too many failed authentication attempts.
    TooMany,
    /// The store is unavailable. Retry later.
    Unavailable,
    /// Too many requests wait for the store, which replies. The request had no effect. Retry later.
    Overloaded,
    /// The store contains data under this key that this version cannot read. Retrying does not help.
    Incompatible,
    /// The store does not have this operation. Retrying does not help.
    Unsupported,
    /// An internal invariant is broken.
    Internal,
}

impl ApiError {
    /// Creates an error. The detail is shown to the caller.
    pub fn new(kind: ApiErrorKind, detail: impl Into<String>) -> Self {
        let is_brief = matches!(kind, ApiErrorKind::Unavailable | ApiErrorKind::Overloaded);
        let reason = (kind == ApiErrorKind::Overloaded).then_some(OVERLOADED);
        let retry_after = is_brief.then_some(1);
        let candidates = Box::default();
        Self { kind, field: None, detail: detail.into(), retry_after, reason, candidates }
    }

    /// Creates an error about an invalid request.
    pub(crate) fn invalid(detail: impl Into<String>) -> Self {
        Self::new(ApiErrorKind::Invalid, detail)
    }

    /// Creates the error for a request that is not decided, because the store is lost.
    pub(crate) fn store_lost(detail: impl Into<String>) -> Self {
        Self { reason: Some(STORE_LOST), ..Self::new(ApiErrorKind::Unavailable, detail) }
    }

    /// Returns the error for a request that a rule with `on_store_loss: deny` refuses, because the store is lost; `None`
    /// for any other outcome.
    pub(crate) fn of_store_loss(outcome: &Outcome<'_, '_>) -> Option<Self> {
        let decision = outcome.decision;
        let is_denied = !decision.is_allowed() && decision.loss() == Some(OnStoreLoss::Deny);
        is_denied.then(|| {
            let rule = outcome.rule();
            let detail =
                format!("the store is unavailable, and rule {rule} has on_store_loss: deny");
            Self::store_lost(detail)
        })
    }

    /// Creates the error for a request without a recorded peer address. Every connection records one.
    pub(crate) fn peer_missing() -> Self {
        Self::new(ApiErrorKind::Internal, "internal error: peer address missing")
    }

    /// Sets the field.
    #[must_use]
    pub fn at(self, field: impl Into<String>) -> Self {
        Self { field: Some(field.into()), ..self }
    }

    /// Prefixes the field with that of the enclosing object: `limits[0]` and `burst` become `limits[0].burst`.
    #[must_use]
    pub(crate) fn under(self, outer: &str) -> Self {
        let field = match &self.field {
            None => outer.to_owned(),
            Some(inner) => format!("{outer}.{inner}"),
        };
        self.at(field)
    }

    /// Sets the rules of which the caller must name one.
    #[must_use]
    pub(crate) fn with_candidates(self, candidates: Box<[RuleCandidate]>) -> Self {
        Self { candidates, ..self }
    }

    /// Sets the time in seconds after which the caller may retry.
    #[must_use]
    pub(crate) fn retry_after(self, seconds: u64) -> Self {
        Self { retry_after: Some(seconds), ..self }
    }

    /// Returns the time in seconds after which the caller may retry; `None` if retrying does not help.
    #[must_use]
    pub const fn retry_after_seconds(&self) -> Option<u64> {
        self.retry_after
    }

    /// Returns the kind of the error.
    #[must_use]
    pub const fn kind(&self) -> ApiErrorKind {
        self.kind
    }

    /// Returns the invalid field, such as `limits[0].window_ms`.
    #[must_use]
    pub fn field(&self) -> Option<&str> {
        self.field.as_deref()
    }

    /// Returns whether a retry may succeed.
    #[must_use]
    pub const fn is_transient(&self) -> bool {
        use ApiErrorKind::{Overloaded, Timeout, TooMany, Unavailable};
        matches!(self.kind, Unavailable | Overloaded | Timeout | TooMany)
    }

    /// Returns the error as problem details (RFC 9457), with the input line if there is one.
    pub(crate) fn to_json(&self, line: Option<usize>) -> Vec<u8> {
        let statuses = self.kind.statuses();
        let problem = Problem {
            kind: "about:blank",
            title: statuses.title,
            status: statuses.http,
            detail: self.to_string(),
            reason: self.reason,
            field: self.field.as_deref(),
            candidates: &self.candidates,
            line,
        };
        // A struct of strings and numbers always serializes.
        serde_json::to_vec(&problem).unwrap_or_default()
    }
}

/// Problem details (RFC 9457).
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Problem<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    title: &'static str,
    #[cfg_attr(test, schemars(range(min = 400, max = 599)))]
    status: u16,
    /// What is wrong and what to do.
    detail: String,
    /// Why the request was not decided: `overloaded` if it was shed because too many wait for the store, `store_lost`
    /// if the store is unavailable. A shed request had no effect.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'static str>,
    /// The invalid field, such as `limits[0].window_ms`.
    #[serde(skip_serializing_if = "Option::is_none")]
    field: Option<&'a str>,
    /// The rules of which the override must name one.
    #[serde(skip_serializing_if = "<[RuleCandidate]>::is_empty")]
    candidates: &'a [RuleCandidate],
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(skip))]
    line: Option<usize>,
}

impl fmt::Display for ApiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.field {
            Some(field) => write!(f, "{field}: {}", self.detail),
            None => f.write_str(&self.detail),
        }
    }
}

impl std::error::Error for ApiError {}

impl From<&StoreError> for ApiError {
    fn from(error: &StoreError) -> Self {
        let kind = match error.kind() {
            StoreErrorKind::Cursor => {
                return Self::invalid(error.to_string()).at("cursor");
            }
            StoreErrorKind::Overloaded => {
                let detail = format!("overloaded: {error}; this request had no effect, retry it");
                return Self::new(ApiErrorKind::Overloaded, detail);
            }
            StoreErrorKind::Incompatible => ApiErrorKind::Incompatible,
            StoreErrorKind::Unsupported => ApiErrorKind::Unsupported,
            _ => return Self::store_lost(error.to_string()),
        };
        Self::new(kind, error.to_string())
    }
}

impl From<&ReserveError> for ApiError {
    fn from(error: &ReserveError) -> Self {
        match error {
            ReserveError::IdConflict => {
                Self::new(ApiErrorKind::Conflict, error.to_string()).at("id")
            }
            ReserveError::Id => Self::invalid(error.to_string()).at("id"),
            ReserveError::Ttl => Self::invalid(error.to_string()).at("ttl_ms"),
            ReserveError::Limiter(error) => error.into(),
            // A refusal is an outcome of the service, not an error.
            _ => Self::new(ApiErrorKind::Internal, error.to_string()),
        }
    }
}

impl From<&LimiterError> for ApiError {
    fn from(error: &LimiterError) -> Self {
        match error {
            LimiterError::Store(error) => error.into(),
            other => Self::invalid(other.to_string()),
        }
    }
}
