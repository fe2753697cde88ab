//! Calls: the checks before a method, and the service that a path belongs to.

use std::convert::Infallible;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;

use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use tokio::time::Instant;
use tollgate::HeaderStyle;
use tonic::body::Body;
use tonic::{Code, Status};
use tonic_health::pb::health_server::HealthServer;
use tower_service::Service as _;

use super::call_body::RequestBody;
use super::deadline::{self, BeforeDeadline};
use super::error::status_of;
use super::health::HealthChecks;
use super::proto::RateLimitServiceServer;
use super::rate_limit::{Peer, RateLimits, SHOULD_RATE_LIMIT};
use super::reflection::{self, Reflection};
use crate::access::token_credentials;
use crate::api::{Role, Service};
use crate::error::{ApiError, ApiErrorKind};

use crate::listener::Connection;

/// Maximum size of a message in bytes.
const MAX_MESSAGE: usize = 64 * 1024;

const HEALTH: &str = "/grpc.health.v1.Health/";

type Call = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

/// The services of a listener.
#[derive(Debug)]
pub(super) struct Calls {
    service: Arc<Service>,
    rate_limits: RateLimitServiceServer<RateLimits>,
    health: HealthServer<HealthChecks>,
    reflection: Option<Reflection>,
}

impl Calls {
    pub(super) fn new(service: Arc<Service>, headers: Option<HeaderStyle>) -> Self {
        let rate_limits = RateLimits::new(Arc::clone(&service), headers);
        let health = HealthChecks::new(Arc::clone(&service));
        Self {
            service,
            rate_limits: RateLimitServiceServer::new(rate_limits)
                .max_decoding_message_size(MAX_MESSAGE),
            health: HealthServer::new(health).max_decoding_message_size(MAX_MESSAGE),
            reflection: Reflection::new(),
        }
    }

    /// Answers a call. Errors are responses.
    pub(super) async fn respond(
        &self,
        request: Request<RequestBody>,
        begun: Instant,
        connection: &Connection,
    ) -> Response<Body> {
        if let Some(refusal) = not_grpc(&request) {
            return refusal;
        }
        let timeout = match deadline::timeout(request.headers()) {
            Ok(timeout) => timeout,
            Err(error) => return status_of(&error).into_http(),
        };
        let call = match self.call(request, connection) {
            Ok(call) => call,
            Err(error) => return status_of(&error).into_http(),
        };
        let deadline = timeout.and_then(|timeout| begun.checked_add(timeout));
        let response = match deadline {
            Some(deadline) => BeforeDeadline::new(call, deadline).await,
            None => Some(call.await),
        };
        match response {
            Some(Ok(response)) => with_table_status(response),
            Some(Err(never)) => match never {},
            None => {
                let detail = "the deadline of the caller passed (grpc-timeout)";
                status_of(&ApiError::new(ApiErrorKind::Timeout, detail)).into_http()
            }
        }
    }

    /// Starts the call of the service that the path belongs to.
    fn call(
        &self,
        mut request: Request<RequestBody>,
        connection: &Connection,
    ) -> Result<Call, ApiError> {
        let (path, peer) = (request.uri().path(), connection.peer().ip());
        if path.starts_with(HEALTH) {
            request.extensions_mut().insert(connection.drain());
            return Ok(self.health.clone().call(request));
        }
        let is_decision = path == SHOULD_RATE_LIMIT;
        self.authenticate(request.headers(), peer)?;
        if is_decision {
            connection.count_requests(1);
            if self.service.traces().is_enabled() {
                request.extensions_mut().insert(Peer(peer));
            }
            return Ok(self.rate_limits.clone().call(request));
        }
        match &self.reflection {
            Some(reflection) if path.starts_with(reflection::PREFIX) => {
                Ok(reflection.call(request))
            }
            _ => Err(ApiError::new(ApiErrorKind::Method, "unknown service or method")),
        }
    }

    fn authenticate(&self, headers: &HeaderMap, peer: IpAddr) -> Result<(), ApiError> {
        if self.service.is_open(Role::Check) {
            return Ok(());
        }
        let credentials = token_credentials(headers);
        let admission = self.service.authenticate(Role::Check, &credentials, peer);
        admission.map_err(|error| match error.kind() {
            ApiErrorKind::TokenMissing => {
                let detail = format!("{error} as metadata `authorization: Bearer TOKEN`");
                ApiError::new(ApiErrorKind::TokenMissing, detail)
            }
            _ => error,
        })
    }
}

/// Returns the HTTP response to a request that is not gRPC.
fn not_grpc<B>(request: &Request<B>) -> Option<Response<Body>> {
    let refuse = |status| {
        let mut response = Response::new(Body::empty());
        *response.status_mut() = status;
        Some(response)
    };
    if request.method() != Method::POST {
        return refuse(StatusCode::METHOD_NOT_ALLOWED);
    }
    let mut kinds = request.headers().get_all(CONTENT_TYPE).iter();
    match (kinds.next().map(HeaderValue::as_bytes), kinds.next()) {
        (Some(kind), None) if is_grpc(kind) => None,
        _ => refuse(StatusCode::UNSUPPORTED_MEDIA_TYPE),
    }
}

/// Returns whether a content type is `application/grpc` or `application/grpc+proto`, the only encoding of messages.
fn is_grpc(kind: &[u8]) -> bool {
    let essence = kind.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
    matches!(essence, b"application/grpc" | b"application/grpc+proto")
}

/// Returns whether the client ended its request before it was complete.
pub(super) fn is_aborted(response: &Response<Body>) -> bool {
    error_code(response) == Some(Code::Aborted)
}

/// Returns the status of an error, which has no message; `None` for other responses.
fn error_code(response: &Response<Body>) -> Option<Code> {
    response.headers().get(Status::GRPC_STATUS).map(|code| Code::from_bytes(code.as_bytes()))
}

/// Replaces the status of a message that is too large, which tonic reports as `OUT_OF_RANGE`, by that of the table.
fn with_table_status(mut response: Response<Body>) -> Response<Body> {
    if error_code(&response) == Some(Code::OutOfRange) {
        let code = ApiErrorKind::TooLarge.statuses().grpc as i32;
        response.headers_mut().insert(Status::GRPC_STATUS, code.into());
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_grpc_with_protobuf_is_accepted() {
        for kind in
            ["application/grpc", "application/grpc+proto", "application/grpc; charset=utf-8"]
        {
            assert!(is_grpc(kind.as_bytes()), "{kind}");
        }
        for kind in [
            "",
            "application/json",
            "application/grpc-web",
            "application/grpc+json",
            "application/grpcx",
        ] {
            assert!(!is_grpc(kind.as_bytes()), "{kind}");
        }
    }

    #[test]
    fn descriptors_for_reflection_are_valid() {
        assert!(Reflection::new().is_some());
    }
}
