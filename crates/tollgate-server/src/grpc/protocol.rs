//! gRPC on a connection: HTTP/2 with caps, keep-alive and an idle time-out.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use h2::server::Builder;
use tokio::time::sleep;
use tollgate::HeaderStyle;

use super::calls::Calls;
use super::early_resets::EarlyResets;
use super::keep_alive;
use super::streams::{Shared, Streams};
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
/// How often a connection is checked for requests, and the number of checks without any after which it is closed.
const IDLE_CHECK: Duration = Duration::from_secs(30);
const MAX_IDLE_CHECKS: u32 = 3;

/// The gRPC front end of a listener.
#[derive(Debug)]
pub(crate) struct Grpc {
    calls: Arc<Calls>,
}

impl Grpc {
    /// Creates the front end. `headers` is the style of the headers that the proxy adds to responses; `None` for none.
    pub(crate) fn new(service: Arc<Service>, headers: Option<HeaderStyle>) -> Self {
        Self { calls: Arc::new(Calls::new(service, headers)) }
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
        let Ok(http) = builder().handshake(stream).await else { return };
        let (calls, resets) = (Arc::clone(&self.calls), EarlyResets::default());
        let shared = Arc::new(Shared { calls, connection, resets });
        let mut streams = Streams::new(http, Arc::clone(&shared));
        let (connection, pings) = (&shared.connection, streams.ping_pong());
        let mut lost = pin!(keep_alive::failed(pings, connection.progress()));
        let mut drain = connection.drain();
        let mut idle = Idle::new(connection);
        let is_lost = tokio::select! {
            biased;
            () = streams.serve() => return,
            () = shared.resets.exceeded() => return,
            () = drain.requested() => false,
            () = idle.exceeded() => false,
            () = &mut lost => true,
        };
        if !is_lost {
            streams.finish();
            tokio::select! {
                biased;
                () = streams.serve() => return,
                () = shared.resets.exceeded() => return,
                () = &mut lost => {}
            }
        }
        streams.abort();
        streams.serve().await;
    }
}

fn builder() -> Builder {
    let mut http = Builder::new();
    http.max_concurrent_streams(MAX_STREAMS)
        .max_header_list_size(MAX_HEADER_LIST)
        .max_pending_accept_reset_streams(MAX_PENDING_RESETS)
        .max_local_error_reset_streams(Some(MAX_ERROR_RESETS))
        .initial_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_send_buffer_size(MAX_SEND_BUFFER);
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
