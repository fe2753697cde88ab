//! `envoy.service.ratelimit.v3.RateLimitService`: decides the descriptors of a request.

use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;
use hyper::HeaderMap;
use prost::Message as _;
use tollgate::HeaderStyle;
use tonic::{Request, Response, Status};

use super::descriptors::queries;
use super::error::status_of;
use super::message::only_message;
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

/// The TCP peer of a call, stored in its extensions.
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

    /// Decides a request with these headers, and records it in a span if it is traced. Returns the body of the response.
    pub(super) async fn respond(
        &self,
        request: &RateLimitRequest,
        headers: &HeaderMap,
        peer: IpAddr,
    ) -> Result<Bytes, ApiError> {
        let mut span = self.start_span(headers, peer);
        let reply = self.decide(request, headers, &mut span).await;
        if span.is_recording() {
            let status = reply.as_ref().err().map_or(OK, |error| error.kind().statuses().http);
            span.end(&SpanEnd { route: None, status });
        }
        reply
    }

    async fn decide(
        &self,
        request: &RateLimitRequest,
        headers: &HeaderMap,
        span: &mut Span,
    ) -> Result<Bytes, ApiError> {
        let queries = queries(request, headers)?;
        let style = self.headers;
        let encode = move |outcome: &tollgate::Outcome<'_, '_>| DescriptorReply::of(outcome, style);
        let replies = self.service.decide_all(&queries, span, encode).await;
        let replies = replies.into_iter().map(Result::flatten).collect::<Result<Vec<_>, _>>()?;
        Ok(response(&replies))
    }

    /// Starts the span of a call; an empty span if it is not traced.
    fn start_span(&self, headers: &HeaderMap, peer: IpAddr) -> Span {
        let traces = self.service.traces();
        if !traces.is_enabled() {
            return Span::none();
        }
        traces.start_span(&SpanStart {
            kind: CallKind::Decision,
            method: "POST",
            route: Some(SHOULD_RATE_LIMIT),
            peer,
            traceparent: text(headers, "traceparent"),
            tracestate: text(headers, "tracestate"),
        })
    }
}

#[tonic::async_trait]
impl RateLimitService for RateLimits {
    async fn should_rate_limit(
        &self,
        request: Request<RateLimitRequest>,
    ) -> Result<Response<RateLimitResponse>, Status> {
        let Some(Peer(peer)) = request.extensions().get().copied() else {
            return Err(status_of(&ApiError::peer_missing()));
        };
        let reply = self.respond(request.get_ref(), request.metadata().as_ref(), peer).await;
        let body = reply.map_err(|error| status_of(&error))?;
        // tonic encodes the response again. It handles only requests that are long, or arrive in parts.
        let response = only_message(&body).map(RateLimitResponse::decode);
        match response {
            Some(Ok(response)) => Ok(Response::new(response)),
            _ => Err(Status::internal("internal error: invalid response")),
        }
    }
}

fn text<'m>(headers: &'m HeaderMap, name: &str) -> Option<&'m str> {
    headers.get(name)?.to_str().ok()
}
