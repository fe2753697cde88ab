//! Why a question could not be answered, and the one table that turns it into a status.

use std::fmt;

use hyper::StatusCode;
use serde::Serialize;
use tollgate::{LimiterError, StoreError, StoreErrorKind};

/// What a caller is told instead of an answer. Being refused is not an error: it is an answer.
///
/// ```
/// use tollgate_server::{ApiError, ApiErrorKind};
///
/// let error = ApiError::new(ApiErrorKind::Invalid, "must not be empty").at("key");
/// assert_eq!(error.to_string(), "key: must not be empty");
/// assert_eq!(error.kind().status().as_u16(), 400);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiError {
    kind: ApiErrorKind,
    field: Option<String>,
    detail: String,
    retry_after: Option<u64>,
}

/// What kind of error it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ApiErrorKind {
    /// The question is wrong; the same one will be wrong again.
    Invalid,
    /// A token is missing or wrong.
    Unauthorized,
    /// It is asked by a page of another site.
    Forbidden,
    /// Nothing lives at this path.
    NotFound,
    /// The path is right, the method is not.
    Method,
    /// The body did not arrive in time.
    Slow,
    /// The body is too long.
    TooLarge,
    /// The body is not JSON by its Content-Type.
    MediaType,
    /// What it asks to be put in force is wrong: a policy file.
    Unprocessable,
    /// Wrong tokens have come too often.
    TooMany,
    /// The store could not be asked; later it may.
    Unavailable,
    /// The store holds something under this key that is not ours to read; that lasts until it is removed.
    Incompatible,
}

impl ApiErrorKind {
    /// The HTTP status.
    #[must_use]
    pub const fn status(self) -> StatusCode {
        match self {
            Self::Invalid => StatusCode::BAD_REQUEST,
            Self::Unauthorized => StatusCode::UNAUTHORIZED,
            Self::Forbidden => StatusCode::FORBIDDEN,
            Self::NotFound => StatusCode::NOT_FOUND,
            Self::Method => StatusCode::METHOD_NOT_ALLOWED,
            Self::Slow => StatusCode::REQUEST_TIMEOUT,
            Self::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::MediaType => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::Unprocessable => StatusCode::UNPROCESSABLE_ENTITY,
            Self::TooMany => StatusCode::TOO_MANY_REQUESTS,
            Self::Unavailable | Self::Incompatible => StatusCode::SERVICE_UNAVAILABLE,
        }
    }
}

impl ApiError {
    /// An error of this kind. The detail is shown to the caller.
    pub fn new(kind: ApiErrorKind, detail: impl Into<String>) -> Self {
        let retry_after = (kind == ApiErrorKind::Unavailable).then_some(1);
        Self { kind, field: None, detail: detail.into(), retry_after }
    }

    /// A wrong question.
    pub(crate) fn invalid(detail: impl Into<String>) -> Self {
        Self::new(ApiErrorKind::Invalid, detail)
    }

    /// The same error about this field.
    #[must_use]
    pub fn at(self, field: impl Into<String>) -> Self {
        Self { field: Some(field.into()), ..self }
    }

    /// The same error, its field lying under another: `limits[0]` and `burst` are `limits[0].burst`.
    #[must_use]
    pub(crate) fn under(self, outer: &str) -> Self {
        let field = match &self.field {
            None => outer.to_owned(),
            Some(inner) => format!("{outer}.{inner}"),
        };
        self.at(field)
    }

    /// The same error, to be asked again after so many seconds.
    #[must_use]
    pub(crate) fn retry_after(self, seconds: u64) -> Self {
        Self { retry_after: Some(seconds), ..self }
    }

    /// After how many seconds it may be asked again, if that helps.
    #[must_use]
    pub(crate) const fn wait(&self) -> Option<u64> {
        self.retry_after
    }

    /// What kind of error it is.
    #[must_use]
    pub const fn kind(&self) -> ApiErrorKind {
        self.kind
    }

    /// The field that is wrong, such as `limits[0].window_ms`.
    #[must_use]
    pub fn field(&self) -> Option<&str> {
        self.field.as_deref()
    }

    /// Whether asking again later may succeed.
    #[must_use]
    pub const fn is_transient(&self) -> bool {
        matches!(self.kind, ApiErrorKind::Unavailable | ApiErrorKind::Slow | ApiErrorKind::TooMany)
    }

    /// The error as problem details (RFC 9457), told to be about a line where there is one.
    pub(crate) fn to_json(&self, line: Option<usize>) -> Vec<u8> {
        let status = self.kind.status();
        let problem = Problem {
            kind: "about:blank",
            title: status.canonical_reason().unwrap_or("Error"),
            status: status.as_u16(),
            detail: self.to_string(),
            field: self.field.as_deref(),
            line,
        };
        // Strings and numbers can always be written.
        serde_json::to_vec(&problem).unwrap_or_default()
    }
}

/// Problem details, as they are written.
#[derive(Debug, Serialize)]
struct Problem<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    title: &'static str,
    status: u16,
    detail: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    field: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
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
            StoreErrorKind::Incompatible => ApiErrorKind::Incompatible,
            _ => ApiErrorKind::Unavailable,
        };
        Self::new(kind, error.to_string())
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
