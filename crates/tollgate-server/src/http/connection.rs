//! One connection: the deciding paths by hand, the others by the router.

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
use super::body_guard::Answering;
use super::decide::decide;
use super::reply::{Reply, problem};
use super::timeouts::{Patient, Progress};
use crate::access::Role;
use crate::app::App;
use crate::telemetry::{Span, Traces};

/// The most bytes of a head, and the most headers in it.
const MAX_HEAD: usize = 16 * 1024;
const MAX_HEADERS: usize = 64;

/// A body of ours, or one of the router's.
type Body = Either<Full<Bytes>, axum::body::Body>;
/// The same with what is to be noted when a long one ends.
type Noted = Either<Full<Bytes>, Answering<axum::body::Body>>;

/// Who sent a request, as the router's paths find it among its extensions.
#[derive(Debug, Clone, Copy)]
pub(super) struct Peer(pub(super) SocketAddr);

/// What the requests of a listener share.
#[derive(Debug)]
pub(super) struct Dispatch {
    pub(super) app: Arc<App>,
    pub(super) router: Router,
    pub(super) surface: Surface,
    pub(super) traces: Traces,
}

/// Serves one connection, whatever it is made over.
pub(super) fn serve<S: AsyncRead + AsyncWrite + Send + Unpin + 'static>(
    stream: S,
    peer: SocketAddr,
    dispatch: Arc<Dispatch>,
) -> impl GracefulConnection<Error = hyper::Error> {
    let progress = Arc::new(Progress::default());
    let stream = TokioIo::new(Patient::new(stream, Arc::clone(&progress)));
    let service = service_fn(move |request| {
        let (dispatch, progress) = (Arc::clone(&dispatch), Arc::clone(&progress));
        async move {
            progress.begin();
            let response = answer(&dispatch, peer, request).await;
            response.map(|response| response.map(|body| with_progress(body, progress)))
        }
    });
    http1::Builder::new()
        .max_buf_size(MAX_HEAD)
        .max_headers(MAX_HEADERS)
        .serve_connection(stream, service)
}

/// Ours are sent at once. One of the router's may be a stream that goes on for long, and is not idle then.
fn with_progress(body: Body, progress: Arc<Progress>) -> Noted {
    match body {
        Either::Left(body) => {
            progress.end();
            Either::Left(body)
        }
        Either::Right(body) => Either::Right(Answering::new(body, progress)),
    }
}

async fn answer(
    dispatch: &Dispatch,
    peer: SocketAddr,
    mut request: Request<Incoming>,
) -> Result<Response<Body>, Infallible> {
    let mut span = dispatch.traces.start_span(&request, peer);
    let mut response = match verb_of(dispatch.surface, &request) {
        Some(verb) => {
            decided(&dispatch.app, peer, verb, request, &mut span).await.map(Either::Left)
        }
        None => {
            request.extensions_mut().insert(Peer(peer));
            dispatch.router.clone().call(request).await?.map(Either::Right)
        }
    };
    if !dispatch.app.is_ready() {
        // The client goes elsewhere for its next request, instead of finding us gone.
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    span.end(&response);
    Ok(response)
}

/// A decision, for whoever may ask for one.
async fn decided(
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
    if request.method() != Method::POST || surface == Surface::Operating {
        return None;
    }
    match request.uri().path() {
        "/check" => Some(Verb::Take),
        "/peek" => Some(Verb::Peek),
        "/refund" => Some(Verb::Refund),
        _ => None,
    }
}
