//! One connection: `/check`, `/peek` and `/refund` directly, all other paths through the router.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use bytes::Bytes;
use http_body_util::{Either, Full};
use hyper::body::Incoming;
use hyper::header::{CONNECTION, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response};
use hyper_util::rt::TokioIo;
use hyper_util::server::graceful::GracefulConnection;
use tokio::io::{AsyncRead, AsyncWrite};
use tollgate::Verb;
use tower_service::Service as _;

use super::Surface;
use super::body_guard::GuardedBody;
use super::decide::decide;
use super::reply::{Reply, problem};
use super::timeouts::{Progress, TimedStream};
use crate::access::Role;
use crate::app::App;
use crate::telemetry::{Span, Traces};

/// Maximum size of a request head in bytes.
const MAX_HEAD: usize = 16 * 1024;
/// Maximum number of headers in a request head.
const MAX_HEADERS: usize = 64;

/// A complete body, or one from the router, which may be a stream.
type Body = Either<Full<Bytes>, axum::body::Body>;
/// A [`Body`] that records the end of a stream.
type TrackedBody = Either<Full<Bytes>, GuardedBody<axum::body::Body>>;

/// The TCP peer of a request, stored in its extensions for the router's handlers.
#[derive(Debug, Clone, Copy)]
pub(super) struct Peer(pub(super) SocketAddr);

/// State shared by the requests of a listener.
#[derive(Debug)]
pub(super) struct Dispatch {
    pub(super) app: Arc<App>,
    pub(super) router: Router,
    pub(super) surface: Surface,
    pub(super) traces: Traces,
}

/// Serves one connection over any stream.
pub(super) fn serve<S: AsyncRead + AsyncWrite + Send + Unpin + 'static>(
    stream: S,
    peer: SocketAddr,
    dispatch: Arc<Dispatch>,
) -> impl GracefulConnection<Error = hyper::Error> {
    let progress = Arc::new(Progress::default());
    let stream = TokioIo::new(TimedStream::new(stream, Arc::clone(&progress)));
    let service = service_fn(move |request| {
        let (dispatch, progress) = (Arc::clone(&dispatch), Arc::clone(&progress));
        async move {
            progress.begin();
            let response = respond(&dispatch, peer, request).await;
            response.map(|response| response.map(|body| with_progress(body, progress)))
        }
    });
    http1::Builder::new()
        .max_buf_size(MAX_HEAD)
        .max_headers(MAX_HEADERS)
        .serve_connection(stream, service)
}

/// Marks the response complete: immediately for a complete body, at the end for a body from the router.
fn with_progress(body: Body, progress: Arc<Progress>) -> TrackedBody {
    match body {
        Either::Left(body) => {
            progress.end();
            Either::Left(body)
        }
        Either::Right(body) => Either::Right(GuardedBody::new(body, progress)),
    }
}

async fn respond(
    dispatch: &Dispatch,
    peer: SocketAddr,
    mut request: Request<Incoming>,
) -> Result<Response<Body>, Infallible> {
    let mut span = dispatch.traces.start_span(&request, peer);
    let mut response = match verb_of(dispatch.surface, &request) {
        Some(verb) => decide_if_admitted(&dispatch.app, peer, verb, request, &mut span)
            .await
            .map(Either::Left),
        None => {
            request.extensions_mut().insert(Peer(peer));
            dispatch.router.clone().call(request).await?.map(Either::Right)
        }
    };
    if !dispatch.app.is_ready() {
        // The client then uses another node for its next request instead of hitting a closed socket.
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    span.end(&response);
    Ok(response)
}

/// Checks the token and decides.
async fn decide_if_admitted(
    app: &App,
    peer: SocketAddr,
    verb: Verb,
    request: Request<Incoming>,
    span: &mut Span,
) -> Reply {
    match app.guard().admit(Role::Check, request.headers(), peer.ip()) {
        Ok(_) => decide(app, verb, request, span).await,
        Err(error) => problem(&error),
    }
}

fn verb_of(surface: Surface, request: &Request<Incoming>) -> Option<Verb> {
    if request.method() != Method::POST || surface == Surface::Operations {
        return None;
    }
    match request.uri().path() {
        "/check" => Some(Verb::Take),
        "/peek" => Some(Verb::Peek),
        "/refund" => Some(Verb::Refund),
        _ => None,
    }
}
