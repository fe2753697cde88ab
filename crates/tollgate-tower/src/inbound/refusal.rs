//! Responses to refused requests.

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, Response, StatusCode};
use tollgate::{Outcome, Refusal, RefusalStyle};

use super::grpc;
use super::headers::{HeaderValues, HeaderWriter};
use crate::facts::RequestHead;

/// A refused request, as passed to [`on_refusal`](crate::RateLimitLayerBuilder::on_refusal).
///
/// ```
/// use bytes::Bytes;
/// use http::{Response, StatusCode};
/// use tollgate::{Limiter, MemoryStore, Policy};
/// use tollgate_tower::{RateLimitLayer, RefusedRequest};
///
/// let limiter = Limiter::new(MemoryStore::new(), Policy::builtin());
/// let layer = RateLimitLayer::builder(limiter).on_refusal(|refused: &RefusedRequest<'_>| {
///     let mut response = refused.response();
///     *response.body_mut() = Bytes::from(format!("{} exceeded its limit", refused.key()));
///     response
/// });
/// ```
pub struct RefusedRequest<'r> {
    rule: &'r str,
    key: Cow<'r, str>,
    retry_after: Option<Duration>,
    refusal: &'r Refusal<'r>,
    request: RequestHead<'r>,
    style: RefusalStyle,
    header_values: HeaderValues,
}

/// Omits the key and the request, which may contain secrets.
impl fmt::Debug for RefusedRequest<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RefusedRequest")
            .field("rule", &self.rule)
            .field("retry_after", &self.retry_after)
            .finish_non_exhaustive()
    }
}

impl<'r> RefusedRequest<'r> {
    /// Returns the request head.
    #[must_use]
    pub const fn request(&self) -> &RequestHead<'r> {
        &self.request
    }

    /// Returns the name of the rule that refused; empty if the limiter could not decide.
    #[must_use]
    pub const fn rule(&self) -> &str {
        self.rule
    }

    /// Returns the key that the rule counts; empty if the limiter could not decide.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Returns the time to wait; none if waiting does not help.
    #[must_use]
    pub const fn retry_after(&self) -> Option<Duration> {
        self.retry_after
    }

    /// Returns the refusing limits, and the status and body for HTTP.
    #[must_use]
    pub const fn refusal(&self) -> &Refusal<'r> {
        self.refusal
    }

    /// Returns the default response: status, headers and body in the configured style, or a gRPC status.
    #[must_use]
    pub fn response(&self) -> Response<Bytes> {
        let mut response = if grpc::is_grpc(&self.request) {
            self.grpc_response()
        } else {
            http_response(self.refusal, self.style)
        };
        self.header_values.clone().write(response.headers_mut());
        response
    }

    fn grpc_response(&self) -> Response<Bytes> {
        if self.refusal.is_unavailable() {
            let message = match self.refusal.is_overloaded() {
                true => "rate limiter overloaded",
                false => "rate limit store unavailable",
            };
            let wait = self.refusal.retry_after_seconds();
            return grpc::refusal(grpc::Code::Unavailable, message, wait.map(Duration::from_secs));
        }
        if self.refusal.path_error().is_some() {
            return grpc::refusal(grpc::Code::InvalidArgument, "path too long", None);
        }
        grpc::refusal(grpc::Code::ResourceExhausted, "too many requests", self.retry_after)
    }
}

fn http_response(refusal: &Refusal<'_>, style: RefusalStyle) -> Response<Bytes> {
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

/// Builds the responses to refused requests.
#[derive(Default)]
pub(super) struct RefusalResponder {
    pub(super) style: RefusalStyle,
    pub(super) on_refusal: Option<RefusalCallback>,
}

type RefusalCallback = Box<dyn Fn(&RefusedRequest<'_>) -> Response<Bytes> + Send + Sync>;

impl RefusalResponder {
    /// Returns the response if the outcome is a refusal.
    pub(super) fn respond_to(
        &self,
        outcome: &Outcome<'_, '_>,
        request: &RequestHead<'_>,
        header_writer: &HeaderWriter,
    ) -> Option<Response<Bytes>> {
        let refusal = Refusal::of(outcome.decision)?;
        let refused = RefusedRequest {
            rule: outcome.rule(),
            key: outcome.key(),
            retry_after: outcome.decision.retry_after(),
            refusal: &refusal,
            request: *request,
            style: self.style,
            header_values: header_writer.values(outcome.decision),
        };
        Some(self.respond(&refused))
    }

    /// Returns the response to a request that the limiter could not decide, with the refusal for it.
    pub(super) fn respond_undecided(
        &self,
        refusal: Refusal<'_>,
        request: &RequestHead<'_>,
        header_writer: &HeaderWriter,
    ) -> Response<Bytes> {
        self.respond(&RefusedRequest {
            rule: "",
            key: Cow::Borrowed(""),
            retry_after: refusal.retry_after_seconds().map(Duration::from_secs),
            refusal: &refusal,
            request: *request,
            style: self.style,
            header_values: header_writer.values_without_decision(),
        })
    }

    fn respond(&self, refused: &RefusedRequest<'_>) -> Response<Bytes> {
        self.on_refusal
            .as_ref()
            .map_or_else(|| refused.response(), |on_refusal| on_refusal(refused))
    }
}
