//! gRPC on a connection: HTTP/2 with caps, keep-alive and an idle time-out.

use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::time::sleep;
use tollgate::HeaderStyle;

use super::call_body::{RequestBody, ResponseBody};
use super::calls::{Calls, is_aborted};
use super::early_resets::EarlyResets;
use crate::api::Service;
use crate::listener::{Connection, Protocol, Stream};

/// Maximum number of concurrent requests of a connection.
const MAX_STREAMS: u32 = 100;
/// Maximum size of all headers of a request in bytes.
const MAX_HEADER_LIST: u32 = 16 * 1024;
/// Maximum number of streams that the client resets before they are accepted; more close the connection.
const MAX_PENDING_RESETS: usize = 20;
/// Maximum number of streams that the server resets because of errors of the client; more close the connection.
const MAX_ERROR_RESETS: usize = 100;
/// Bytes that a client may send ahead on one stream: a message of the maximum size.
const STREAM_WINDOW: u32 = 80 * 1024;
/// Bytes that a client may send ahead on all streams.
const CONNECTION_WINDOW: u32 = 128 * 1024;
/// Maximum number of bytes that wait to be written to a stream.
const MAX_SEND_BUFFER: usize = 64 * 1024;
/// Time without data after which the client must answer a PING, and the time that it has to answer.
const KEEP_ALIVE: Duration = Duration::from_secs(20);
/// How often a connection is checked for requests, and the number of checks without any after which it is closed.
const IDLE_CHECK: Duration = Duration::from_secs(30);
const MAX_IDLE_CHECKS: u32 = 3;

/// The gRPC front end of a listener.
#[derive(Debug)]
pub(crate) struct Grpc {
    calls: Calls,
}

impl Grpc {
    /// Creates the front end. `headers` is the style of the headers that the proxy adds to responses; `None` for none.
    pub(crate) fn new(service: Arc<Service>, headers: Option<HeaderStyle>) -> Self {
        Self { calls: Calls::new(service, headers) }
    }
}

impl Protocol for Grpc {
    fn scheme(&self) -> &'static str {
        "grpc"
    }

    fn tls_scheme(&self) -> &'static str {
        "grpcs"
    }

    fn alpn(&self) -> Option<&'static [u8]> {
        Some(b"h2")
    }

    async fn serve<S: Stream>(self: Arc<Self>, stream: S, connection: Connection) {
        connection.set_multiplexed();
        let (connection, resets) = (Arc::new(connection), Arc::new(EarlyResets::default()));
        let handler = service_fn(|request: Request<Incoming>| {
            let (in_progress, open) = (connection.begin_request(), resets.open());
            let (grpc, connection) = (Arc::clone(&self), Arc::clone(&connection));
            async move {
                let request = request.map(RequestBody::new);
                let response = grpc.calls.respond(request, open.begun(), &connection).await;
                // The error of a body that the client reset is not sent.
                if !is_aborted(&response) {
                    open.complete();
                }
                Ok::<_, Infallible>(response.map(|body| ResponseBody::new(body, in_progress)))
            }
        });
        let mut serving = pin!(builder().serve_connection(TokioIo::new(stream), handler));
        let mut drain = connection.drain();
        let mut idle = Idle::new(&connection);
        // Errors of a connection are caused by its client and are not logged.
        tokio::select! {
            _ = serving.as_mut() => return,
            () = resets.exceeded() => return,
            () = drain.requested() => {}
            () = idle.exceeded() => {}
        }
        serving.as_mut().graceful_shutdown();
        let _ = serving.await;
    }
}

fn builder() -> http2::Builder<TokioExecutor> {
    let mut http = http2::Builder::new(TokioExecutor::new());
    http.timer(TokioTimer::new())
        .max_concurrent_streams(MAX_STREAMS)
        .max_header_list_size(MAX_HEADER_LIST)
        .max_pending_accept_reset_streams(MAX_PENDING_RESETS)
        .max_local_error_reset_streams(MAX_ERROR_RESETS)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_send_buf_size(MAX_SEND_BUFFER)
        .keep_alive_interval(KEEP_ALIVE)
        .keep_alive_timeout(KEEP_ALIVE)
        // gRPC clients do not use it.
        .auto_date_header(false);
    http
}

/// Detects a connection without requests. It is shut down gracefully, so that no request of the client is lost.
#[derive(Debug)]
struct Idle<'c> {
    connection: &'c Connection,
    last_requests: u32,
    checks: u32,
}

impl<'c> Idle<'c> {
    const fn new(connection: &'c Connection) -> Self {
        Self { connection, last_requests: 0, checks: 0 }
    }

    /// Waits until there was no request for a while.
    async fn exceeded(&mut self) {
        while self.checks < MAX_IDLE_CHECKS {
            sleep(IDLE_CHECK).await;
            let progress = self.connection.progress();
            let requests = progress.requests();
            if requests != self.last_requests || progress.is_responding() {
                (self.last_requests, self.checks) = (requests, 0);
            } else {
                self.checks += 1;
            }
        }
    }
}
