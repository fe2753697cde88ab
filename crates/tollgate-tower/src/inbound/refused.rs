//! What refused requests are answered.

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, Response, StatusCode};
use tollgate::{Outcome, Refusal, RefusalStyle};

use super::grpc;
use super::headers::{Fields, Telling};
use crate::facts::Head;

/// A request that may not pass, as a hook sees it.
///
/// ```
/// use bytes::Bytes;
/// use http::{Response, StatusCode};
/// use tollgate::{Limiter, MemoryStore, Policy};
/// use tollgate_tower::{RateLimitLayer, Refused};
///
/// let limiter = Limiter::new(MemoryStore::new(), Policy::builtin());
/// let layer = RateLimitLayer::builder(limiter).on_refusal(|refused: &Refused<'_>| {
///     let mut response = refused.response();
///     *response.body_mut() = Bytes::from(format!("{} has had enough", refused.key()));
///     response
/// });
/// ```
pub struct Refused<'r> {
    rule: &'r str,
    key: Cow<'r, str>,
    retry_after: Option<Duration>,
    refusal: &'r Refusal<'r>,
    request: Head<'r>,
    style: RefusalStyle,
    telling: &'r Telling,
    fields: Fields,
}

/// Without the key and the request, which may hold secrets.
impl fmt::Debug for Refused<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Refused")
            .field("rule", &self.rule)
            .field("retry_after", &self.retry_after)
            .finish_non_exhaustive()
    }
}

impl<'r> Refused<'r> {
    /// The request.
    #[must_use]
    pub const fn request(&self) -> &Head<'r> {
        &self.request
    }

    /// The rule that refused it; empty where nothing could be decided.
    #[must_use]
    pub const fn rule(&self) -> &str {
        self.rule
    }

    /// Whom that rule counts; empty where nothing could be decided.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.key
    }

    /// How long to wait; none when waiting will not help.
    #[must_use]
    pub const fn retry_after(&self) -> Option<Duration> {
        self.retry_after
    }

    /// Which limits refused, and what HTTP calls that.
    #[must_use]
    pub const fn refusal(&self) -> &Refusal<'r> {
        self.refusal
    }

    /// What would be answered: status, headers and body in the style that was chosen, or what gRPC knows.
    #[must_use]
    pub fn response(&self) -> Response<Bytes> {
        let mut response = if grpc::is_asked(&self.request) {
            self.of_grpc()
        } else {
            of_http(self.refusal, self.style)
        };
        self.telling.tell(response.headers_mut(), self.fields.clone());
        response
    }

    fn of_grpc(&self) -> Response<Bytes> {
        if self.refusal.is_unavailable() {
            let (message, wait) =
                ("requests cannot be counted now", self.refusal.retry_after_seconds());
            return grpc::refusal(grpc::Code::Unavailable, message, wait.map(Duration::from_secs));
        }
        grpc::refusal(grpc::Code::ResourceExhausted, "too many requests", self.retry_after)
    }
}

fn of_http(refusal: &Refusal<'_>, style: RefusalStyle) -> Response<Bytes> {
    let mut response = Response::new(Bytes::from(refusal.body(style)));
    *response.status_mut() =
        StatusCode::from_u16(refusal.status()).unwrap_or(StatusCode::TOO_MANY_REQUESTS);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(style.content_type()));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    if let Some(seconds) = refusal.retry_after_seconds() {
        headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

/// How refusals are answered.
#[derive(Default)]
pub(super) struct Refusing {
    pub(super) style: RefusalStyle,
    pub(super) respond: Option<Respond>,
}

type Respond = Box<dyn Fn(&Refused<'_>) -> Response<Bytes> + Send + Sync>;

impl Refusing {
    /// The answer, if the outcome is a refusal.
    pub(super) fn of(
        &self,
        outcome: &Outcome<'_, '_>,
        request: &Head<'_>,
        telling: &Telling,
    ) -> Option<Response<Bytes>> {
        let refusal = Refusal::of(outcome.decision)?;
        let refused = Refused {
            rule: outcome.rule(),
            key: outcome.key(),
            retry_after: outcome.decision.retry_after(),
            refusal: &refusal,
            request: *request,
            style: self.style,
            telling,
            fields: telling.of(outcome.decision),
        };
        Some(self.answer(&refused))
    }

    /// The answer where nothing could be decided.
    pub(super) fn undecided(&self, request: &Head<'_>, telling: &Telling) -> Response<Bytes> {
        let refusal = Refusal::undecided();
        self.answer(&Refused {
            rule: "",
            key: Cow::Borrowed(""),
            retry_after: refusal.retry_after_seconds().map(Duration::from_secs),
            refusal: &refusal,
            request: *request,
            style: self.style,
            telling,
            fields: Fields::default(),
        })
    }

    fn answer(&self, refused: &Refused<'_>) -> Response<Bytes> {
        self.respond.as_ref().map_or_else(|| refused.response(), |respond| respond(refused))
    }
}
