//! Calls: the checks before a method, and the service that a path belongs to.

use std::convert::Infallible;
use std::future::poll_fn;
use std::net::IpAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;

use h2::RecvStream;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use prost::Message as _;
use tokio::task::yield_now;
use tokio::time::Instant;
use tollgate::HeaderStyle;
use tonic::body::Body;
use tonic::{Code, Status};
use tonic_health::pb::health_server::HealthServer;
use tower_service::Service as _;

use super::deadline::{self, BeforeDeadline};
use super::descriptors::costs;
use super::error::status_of;
use super::health::HealthChecks;
use super::proto::{RateLimitRequest, RateLimitServiceServer};
use super::rate_limit::{Peer, RateLimits, SHOULD_RATE_LIMIT};
use super::reflection::{self, Reflection};
use super::request_body::RequestBody;
use super::response::{CallResponse, error_code};
use super::short_head::with_short_head;
use crate::access::token_credentials;
use crate::api::{Role, Service};
use crate::error::{ApiError, ApiErrorKind};
use crate::listener::Connection;

/// Maximum size of a message in bytes.
const MAX_MESSAGE: usize = 64 * 1024;

/// Maximum number of descriptors that are decided in the task of the connection.
const MAX_PROMPT_DESCRIPTORS: usize = 10;

const HEALTH: &str = "/grpc.health.v1.Health/";

/// The compression of the messages of a request. tonic refuses all but `identity`.
const ENCODING: HeaderName = HeaderName::from_static("grpc-encoding");

type Call = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

/// The services of a listener.
#[derive(Debug)]
pub(super) struct Calls {
    service: Arc<Service>,
    rate_limits: Arc<RateLimits>,
    rate_limit_server: RateLimitServiceServer<RateLimits>,
    health: HealthServer<HealthChecks>,
    reflection: Option<Reflection>,
}

impl Calls {
    pub(super) fn new(service: Arc<Service>, headers: Option<HeaderStyle>) -> Self {
        let rate_limits = Arc::new(RateLimits::new(Arc::clone(&service), headers));
        let health = HealthChecks::new(Arc::clone(&service));
        Self {
            service,
            rate_limit_server: RateLimitServiceServer::from_arc(Arc::clone(&rate_limits))
                .max_decoding_message_size(MAX_MESSAGE),
            rate_limits,
            health: HealthServer::new(health).max_decoding_message_size(MAX_MESSAGE),
            reflection: Reflection::new(),
        }
    }

    /// Answers a call. Errors are responses.
    pub(super) async fn respond(
        &self,
        request: Request<RecvStream>,
        begun: Instant,
        connection: &Connection,
    ) -> CallResponse {
        if let Some(refusal) = not_grpc(&request) {
            return CallResponse::Http(refusal);
        }
        let response = async {
            let timeout = deadline::timeout(request.headers())?;
            let deadline = timeout.and_then(|timeout| begun.checked_add(timeout));
            // A passed deadline changes neither the error of a missing token nor the count of requests.
            if request.uri().path() == SHOULD_RATE_LIMIT {
                self.authenticate(request.headers(), connection.peer().ip())?;
                connection.count_requests(1);
            }
            let call = pin!(self.call(request.map(RequestBody::new), connection));
            let Some(deadline) = deadline else { return call.await };
            BeforeDeadline::new(call, deadline).await.unwrap_or_else(|| {
                let detail = "the deadline of the caller passed (grpc-timeout)";
                Err(ApiError::new(ApiErrorKind::Timeout, detail))
            })
        };
        response.await.unwrap_or_else(|error| CallResponse::Http(status_of(&error).into_http()))
    }

    /// Calls the service that the path belongs to. Decisions are authenticated.
    async fn call(
        &self,
        mut request: Request<RequestBody>,
        connection: &Connection,
    ) -> Result<CallResponse, ApiError> {
        let peer = connection.peer().ip();
        if request.uri().path() == SHOULD_RATE_LIMIT {
            let message = received_message(&mut request).await;
            let descriptors = message.as_ref().map(|message| message.descriptors.len());
            if descriptors.is_none_or(|count| count > MAX_PROMPT_DESCRIPTORS) {
                // Continues in a task of its own, so that the other calls of the connection do not wait.
                yield_now().await;
            }
            if let Some(message) = message {
                let body = self.rate_limits.respond(&message, request.headers(), peer).await?;
                return Ok(CallResponse::Complete(body));
            }
            costs(request.headers())?;
        }
        let response = match self.call_tonic(request, connection)?.await {
            Ok(response) => response,
            Err(never) => match never {},
        };
        Ok(CallResponse::Http(with_table_status(response)))
    }

    /// Starts the call of a tonic service.
    fn call_tonic(
        &self,
        mut request: Request<RequestBody>,
        connection: &Connection,
    ) -> Result<Call, ApiError> {
        let (path, peer) = (request.uri().path(), connection.peer().ip());
        if path.starts_with(HEALTH) {
            request.extensions_mut().insert(connection.drain());
            return Ok(self.health.clone().call(with_short_head(request)));
        }
        if path == SHOULD_RATE_LIMIT {
            request.extensions_mut().insert(Peer(peer));
            return Ok(self.rate_limit_server.clone().call(with_short_head(request)));
        }
        self.authenticate(request.headers(), peer)?;
        match &self.reflection {
            Some(reflection) if path.starts_with(reflection::PREFIX) => {
                Ok(reflection.call(with_short_head(request)))
            }
            _ => Err(ApiError::new(ApiErrorKind::Method, "unknown service or method")),
        }
    }

    fn authenticate(&self, headers: &HeaderMap, peer: IpAddr) -> Result<(), ApiError> {
        if self.service.is_open(Role::Check) {
            return Ok(());
        }
        let authorizations = headers.get_all(AUTHORIZATION).iter().map(HeaderValue::as_bytes);
        let credentials = token_credentials(authorizations);
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

/// Returns the message of a request that has arrived completely and is short and valid. tonic handles all others.
async fn received_message(request: &mut Request<RequestBody>) -> Option<RateLimitRequest> {
    if request.headers().contains_key(ENCODING) {
        return None;
    }
    let body = request.body_mut();
    let message = poll_fn(|context| Poll::Ready(body.short_message(context))).await?;
    RateLimitRequest::decode(message).ok()
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
