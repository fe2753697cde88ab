//! One connection: the deciding paths by hand, the others by the router.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use bytes::Bytes;
use http_body_util::{Either, Full};
use hyper::body::Incoming;
use hyper::header::{CONNECTION, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::Service;
use hyper::{Method, Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpStream;
use tollgate::Verb;
use tower_service::Service as _;

use super::decide::decide;
use super::patience::Patient;
use crate::app::App;

/// A head must have come whole within this time.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);

/// The most bytes of a head, and the most headers in it.
const MAX_HEAD: usize = 16 * 1024;
const MAX_HEADERS: usize = 64;

/// A body of ours, or one of the router's.
type Body = Either<Full<Bytes>, axum::body::Body>;

pub(super) type Connection = http1::Connection<TokioIo<Patient<TcpStream>>, Dispatch>;

/// Serves one connection.
pub(super) fn serve(stream: TcpStream, app: Arc<App>, router: Router) -> Connection {
    http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(MAX_HEAD)
        .max_headers(MAX_HEADERS)
        .pipeline_flush(true)
        .serve_connection(TokioIo::new(Patient::new(stream)), Dispatch { app, router })
}

/// Sends a request where it belongs.
#[derive(Debug, Clone)]
pub(super) struct Dispatch {
    app: Arc<App>,
    router: Router,
}

impl Service<Request<Incoming>> for Dispatch {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        let Self { app, mut router } = self.clone();
        Box::pin(async move {
            let mut response = match verb_of(&request) {
                Some(verb) => decide(&app, verb, request).await.map(Either::Left),
                None => router.call(request).await?.map(Either::Right),
            };
            if !app.is_ready() {
                // The client goes elsewhere for its next request, instead of finding us gone.
                let close = HeaderValue::from_static("close");
                response.headers_mut().insert(CONNECTION, close);
            }
            Ok(response)
        })
    }
}

fn verb_of(request: &Request<Incoming>) -> Option<Verb> {
    if request.method() != Method::POST {
        return None;
    }
    match request.uri().path() {
        "/check" => Some(Verb::Take),
        "/peek" => Some(Verb::Peek),
        "/refund" => Some(Verb::Refund),
        _ => None,
    }
}
