//! `envoy.service.ratelimit.v3.RateLimitService`: decides the descriptors of a request.

use std::net::IpAddr;
use std::sync::Arc;

use tollgate::HeaderStyle;
use tonic::metadata::MetadataMap;
use tonic::{Request, Response, Status};

use super::descriptors::queries;
use super::error::status_of;
use super::proto::{RateLimitRequest, RateLimitResponse, RateLimitService};
use super::replies::{DescriptorReply, response};
use crate::api::{Service, Span};
use crate::error::ApiError;
use crate::telemetry::{CallKind, SpanEnd, SpanStart};

/// The path of the only method.
pub(super) const SHOULD_RATE_LIMIT: &str =
    "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit";

/// HTTP status of a span whose call succeeded.
const OK: u16 = 200;

/// The TCP peer of a call, stored in its extensions if it is traced.
#[derive(Debug, Clone, Copy)]
pub(super) struct Peer(pub(super) IpAddr);

/// The rate limit service.
#[derive(Debug)]
pub(super) struct RateLimits {
    service: Arc<Service>,
    /// Style of the response headers; `None` for no headers.
    headers: Option<HeaderStyle>,
}

impl RateLimits {
    pub(super) const fn new(service: Arc<Service>, headers: Option<HeaderStyle>) -> Self {
        Self { service, headers }
    }

    async fn decide(
        &self,
        request: &RateLimitRequest,
        span: &mut Span,
    ) -> Result<RateLimitResponse, ApiError> {
        let queries = queries(request)?;
        let style = self.headers;
        let encode = move |outcome: &tollgate::Outcome<'_, '_>| DescriptorReply::of(outcome, style);
        let replies = self.service.decide_all(&queries, span, encode).await;
        replies.into_iter().map(Result::flatten).collect::<Result<_, _>>().map(response)
    }

    /// Starts the span of a call; an empty span if it is not traced.
    fn start_span(&self, request: &Request<RateLimitRequest>) -> Span {
        let Some(Peer(peer)) = request.extensions().get() else { return Span::none() };
        let metadata = request.metadata();
        self.service.traces().start_span(&SpanStart {
            kind: CallKind::Decision,
            method: "POST",
            route: Some(SHOULD_RATE_LIMIT),
            peer: *peer,
            traceparent: text(metadata, "traceparent"),
            tracestate: text(metadata, "tracestate"),
        })
    }
}

#[tonic::async_trait]
impl RateLimitService for RateLimits {
    async fn should_rate_limit(
        &self,
        request: Request<RateLimitRequest>,
    ) -> Result<Response<RateLimitResponse>, Status> {
        let mut span = self.start_span(&request);
        let reply = self.decide(request.get_ref(), &mut span).await;
        if span.is_recording() {
            let status = reply.as_ref().err().map_or(OK, |error| error.kind().statuses().http);
            span.end(&SpanEnd { route: None, status });
        }
        reply.map(Response::new).map_err(|error| status_of(&error))
    }
}

fn text<'m>(metadata: &'m MetadataMap, name: &str) -> Option<&'m str> {
    metadata.get(name)?.to_str().ok()
}
