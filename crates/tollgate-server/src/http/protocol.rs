//! HTTP/1.1 on a connection: plain checks without hyper, then `/check`, `/peek`, `/refund` and forward auth without the
//! router, all other paths through it.

use std::convert::Infallible;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Instant;

use axum::Router;
use bytes::Bytes;
use http_body_util::{Either, Full};
use hyper::body::Incoming;
use hyper::header::{CONNECTION, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response};
use hyper_util::rt::TokioIo;
use tollgate::Verb;
use tower_service::Service as _;

use super::body_guard::GuardedBody;
use super::delivery::{DeliveringStream, Delivery};
use super::forward_auth::{AuthRequest, Endpoint, ForwardAuth};
use super::rewound_stream::RewoundStream;
use super::{auth, decide, host, plain_check, request_metrics, routes, traces};
use crate::api::Service;
use crate::listener::{Connection, DrainWatch, Progress, Protocol, Stream};
use crate::metrics::FrontEndCounters;
use crate::settings::{AllowedHosts, ForwardAuthSettings};

/// Limits of a request head.
#[derive(Debug, Clone, Copy)]
struct HeadLimits {
    /// Maximum size in bytes.
    size: usize,
    /// Maximum number of headers.
    headers: usize,
}

impl HeadLimits {
    const CLIENT: Self = Self { size: 16 * 1024, headers: 64 };
    /// A trusted proxy sends the headers of its client and its own. nginx accepts 32 KiB from a client by default.
    /// More than 100 headers cost an allocation per request.
    const TRUSTED_PROXY: Self = Self { size: 64 * 1024, headers: 256 };
}

/// A complete body, or one from the router, which may be a stream.
type Body = Either<Full<Bytes>, axum::body::Body>;
/// A [`Body`] that records the end of a stream.
type TrackedBody = Either<Full<Bytes>, GuardedBody<axum::body::Body>>;

/// Response to a plain request on a TLS port.
const HTTPS_REQUIRED: &[u8] = b"HTTP/1.1 400 Bad Request\r\ncontent-type: text/plain\r\n\
    content-length: 25\r\nconnection: close\r\n\r\nThis port requires HTTPS\n";

/// The set of paths that a listener serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Surface {
    /// All paths.
    All,
    /// All paths except those for operators.
    Decisions,
    /// The paths for operators: the dashboard, `/api` and `/admin`.
    Operations,
}

/// The TCP peer of a request, stored in its extensions for the router's handlers.
#[derive(Debug, Clone, Copy)]
pub(super) struct Peer(pub(super) SocketAddr);

/// Counts decision requests, stored in the extensions of a request for the router's handlers.
#[derive(Debug, Clone)]
pub(super) struct Counters(pub(super) Arc<FrontEndCounters>);

/// The HTTP front end of a listener.
#[derive(Debug)]
pub(crate) struct Http {
    service: Arc<Service>,
    router: Router,
    surface: Surface,
    forward_auth: ForwardAuth,
}

impl Http {
    pub(crate) fn new(
        service: Arc<Service>,
        surface: Surface,
        forward_auth: ForwardAuthSettings,
        allowed_hosts: AllowedHosts,
    ) -> Self {
        let router = routes::router(surface, Arc::clone(&service), allowed_hosts);
        let router = request_metrics::record(Arc::clone(&service), router);
        let router = traces::record_routes(service.traces(), router);
        Self { service, router, surface, forward_auth: ForwardAuth::new(forward_auth) }
    }
}

impl Protocol for Http {
    fn scheme(&self) -> &'static str {
        "http"
    }

    fn tls_scheme(&self) -> &'static str {
        "https"
    }

    fn plain_response(&self) -> Option<&'static [u8]> {
        Some(HTTPS_REQUIRED)
    }

    async fn serve<S: Stream>(self: Arc<Self>, stream: S, connection: Connection) {
        let plain = match self.surface {
            Surface::All | Surface::Decisions => {
                plain_check::serve(&self.service, stream, &connection).await
            }
            Surface::Operations => Some((stream, Vec::new())),
        };
        if let Some((stream, unread)) = plain {
            // Boxed, so that it does not enlarge connections with plain checks.
            Box::pin(serve_hyper(&self, RewoundStream::new(unread, stream), connection)).await;
        }
    }
}

/// Serves a connection with hyper.
async fn serve_hyper<S: Stream>(http: &Http, stream: S, connection: Connection) {
    let mut drain = DrainWatch::new(connection.drain());
    let (progress, delivery) = (connection.progress(), Arc::new(Delivery::default()));
    let stream = DeliveringStream::new(stream, Arc::clone(&delivery));
    let handler = service_fn(|request| async {
        progress.begin();
        let mut response = respond(http, &connection, request).await?;
        delivery.begin(&mut response);
        Ok::<_, Infallible>(response.map(|body| with_progress(body, progress)))
    });
    let mut builder = http1::Builder::new();
    let limits = match http.forward_auth.trusts(connection.peer().ip()) {
        true => HeadLimits::TRUSTED_PROXY,
        false => HeadLimits::CLIENT,
    };
    builder.max_buf_size(limits.size).max_headers(limits.headers);
    let mut serving = pin!(builder.serve_connection(TokioIo::new(stream), handler));
    // Errors of a connection are caused by its client and are not logged.
    tokio::select! {
        biased;
        // First, so that hyper has the bytes of a request that has begun before it drains.
        _ = serving.as_mut() => return,
        () = poll_fn(|context| drain.poll_requested(context)) => {
            serving.as_mut().graceful_shutdown();
        }
    }
    let _ = serving.await;
}

/// Marks the response complete: immediately for a complete body, at the end for a body from the router.
fn with_progress(body: Body, progress: &Arc<Progress>) -> TrackedBody {
    match body {
        Either::Left(body) => {
            progress.end();
            Either::Left(body)
        }
        Either::Right(body) => Either::Right(GuardedBody::new(body, Arc::clone(progress))),
    }
}

async fn respond(
    http: &Http,
    connection: &Connection,
    mut request: Request<Incoming>,
) -> Result<Response<Body>, Infallible> {
    let (service, peer) = (&*http.service, connection.peer());
    let mut span = traces::start_span(service.traces(), &request, peer.ip());
    let (call, started) = (call_of(http.surface, &request), Instant::now());
    let mut response = match call {
        Some(DirectCall::ForwardAuth(endpoint)) => {
            let count = || connection.count_requests(1);
            let (head, _) = request.into_parts();
            let request = AuthRequest { endpoint, head: &head, peer: peer.ip() };
            http.forward_auth.respond(service, request, &mut span, count).await.map(Either::Left)
        }
        Some(DirectCall::Decide(verb)) => match auth::admit_check(service, &request, peer.ip()) {
            Ok(()) => {
                connection.count_requests(1);
                decide::decide(service, verb, request, &mut span).await
            }
            Err(problem) => problem,
        }
        .map(Either::Left),
        None => {
            let counters = Arc::clone(connection.counters());
            request.extensions_mut().insert(Peer(peer));
            request.extensions_mut().insert(Counters(counters));
            http.router.clone().call(request).await?.map(Either::Right)
        }
    };
    if let Some(call) = call {
        let (requests, status) = (service.http_requests(), response.status());
        requests.count(call.route(), status.as_u16(), started.elapsed());
    }
    if !service.is_ready() {
        // The client then uses another node for its next request instead of hitting a closed socket.
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    traces::end_span(span, &response);
    Ok(response)
}

/// A call that does not go through the router.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DirectCall {
    Decide(Verb),
    /// Forward auth accepts any method.
    ForwardAuth(Endpoint),
}

impl DirectCall {
    const fn route(self) -> &'static str {
        match self {
            Self::Decide(Verb::Peek) => "/peek",
            Self::Decide(Verb::Refund) => "/refund",
            Self::Decide(_) => "/check",
            Self::ForwardAuth(Endpoint::Forwarded) => "/auth",
            Self::ForwardAuth(Endpoint::Nginx) => "/auth/nginx",
        }
    }
}

fn call_of(surface: Surface, request: &Request<Incoming>) -> Option<DirectCall> {
    let path = request.uri().path();
    if let Some(endpoint) = Endpoint::of(surface, path) {
        return Some(DirectCall::ForwardAuth(endpoint));
    }
    // The router checks the host of pages.
    let is_from_page = host::is_from_page(request.headers());
    if request.method() != Method::POST || surface == Surface::Operations || is_from_page {
        return None;
    }
    match path {
        "/check" => Some(DirectCall::Decide(Verb::Take)),
        "/peek" => Some(DirectCall::Decide(Verb::Peek)),
        "/refund" => Some(DirectCall::Decide(Verb::Refund)),
        _ => None,
    }
}
