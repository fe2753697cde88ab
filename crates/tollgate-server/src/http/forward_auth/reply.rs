//! Responses of forward auth.

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{
    CACHE_CONTROL, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE,
};
use hyper::{Response, StatusCode};
use tollgate::{Decision, FieldValue, HeaderStyle, Outcome, Refusal, RefusalStyle};

use super::super::reply::{Reply, uncached, with_type};
use super::Endpoint;

/// The status that nginx sends to the client in place of 403.
const STATUS: HeaderName = HeaderName::from_static("x-tollgate-status");

/// The styles of responses.
#[derive(Debug)]
pub(super) struct ReplyStyle {
    headers: Vec<HeaderStyle>,
    body: RefusalStyle,
}

impl ReplyStyle {
    pub(super) const fn new(headers: Vec<HeaderStyle>, body: RefusalStyle) -> Self {
        Self { headers, body }
    }

    /// Encodes a decision: an empty 200, or a refusal, with rate limit headers.
    pub(super) fn decision(&self, outcome: &Outcome<'_, '_>) -> Reply {
        let mut reply = match Refusal::of(outcome.decision) {
            Some(refusal) => self.refusal(&refusal),
            None => Response::new(Full::default()),
        };
        self.write_headers(outcome.decision, reply.headers_mut());
        reply
    }

    /// Encodes a refusal without rate limit headers.
    pub(super) fn refusal(&self, refusal: &Refusal<'_>) -> Reply {
        let status = StatusCode::from_u16(refusal.status());
        let status = status.unwrap_or(StatusCode::TOO_MANY_REQUESTS);
        let kind = HeaderValue::from_static(self.body.content_type());
        let mut reply = uncached(with_type(status, kind, Bytes::from(refusal.body(self.body))));
        if let Some(seconds) = refusal.retry_after_seconds() {
            reply.headers_mut().insert(RETRY_AFTER, seconds.into());
        }
        reply
    }

    fn write_headers(&self, decision: &Decision<'_>, headers: &mut HeaderMap) {
        for style in &self.headers {
            style.write(decision, |name, value| {
                let value = match value {
                    FieldValue::Number(number) => Ok(HeaderValue::from(number)),
                    FieldValue::Text(text) => HeaderValue::try_from(text),
                };
                // Texts consist of names and numbers, which are printable.
                if let Ok(value) = value {
                    headers.insert(HeaderName::from_static(name), value);
                }
            });
        }
    }
}

/// Changes a response to what the proxies of an endpoint can pass on. nginx replaces any refusal but 401 and 403 by 500.
pub(super) fn for_endpoint(endpoint: Endpoint, mut reply: Reply) -> Reply {
    let status = reply.status();
    // The proxies would send it to the client, which has no token.
    reply.headers_mut().remove(WWW_AUTHENTICATE);
    if status.is_success() {
        return reply;
    }
    reply.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    if endpoint == Endpoint::Nginx {
        reply.headers_mut().insert(STATUS, HeaderValue::from(status.as_u16()));
        *reply.status_mut() = StatusCode::FORBIDDEN;
    }
    reply
}
