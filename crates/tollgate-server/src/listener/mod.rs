//! Listeners: accept connections for any protocol, with a connection cap, TLS, time-outs and graceful shutdown.
//!
//! A front end implements [`Protocol`]: it reads requests from a stream, calls [`api::Service`](crate::api::Service) and
//! writes the results. Everything else is the same for all front ends and happens here.

mod accept;
mod connection;
mod connections;
mod drain_watch;
mod handshake;
mod incomplete_memory;
mod timeouts;

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpSocket};
use tokio::task::JoinHandle;

use crate::error::ServeError;
use crate::metrics::FrontEnds;
use crate::shutdown::{Readiness, Shutdown};
use crate::tls::CurrentConfig;
pub use connection::{Connection, Drain, RequestInProgress};
use connections::Connections;
#[cfg(test)]
pub(crate) use connections::serve as serve_stream;
pub(crate) use drain_watch::DrainWatch;
pub(crate) use incomplete_memory::{IncompleteRequest, TooSlow};
pub(crate) use timeouts::Progress;

/// Length of the accept queue. A client that finds it full retries after a second, and the usual 128 is too short when
/// all clients reconnect at the same time.
const ACCEPT_QUEUE: u32 = 4096;

/// A byte stream of a connection: plain TCP, or TLS over it.
pub trait Stream: AsyncRead + AsyncWrite + Send + Unpin + 'static {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin + 'static> Stream for S {}

/// A protocol that clients speak with the service.
///
/// `examples/line_protocol.rs` implements one.
pub trait Protocol: Send + Sync + 'static {
    /// The scheme of an address without TLS, as in `listening on http://127.0.0.1:8080`. It is also the name of the front
    /// end in metrics.
    fn scheme(&self) -> &'static str;

    /// The scheme of an address with TLS.
    fn tls_scheme(&self) -> &'static str;

    /// The ALPN name of the protocol over TLS; `None` for that of HTTP/1.1.
    fn alpn(&self) -> Option<&'static [u8]> {
        None
    }

    /// What a client that sends a plain request to a TLS port receives before the connection closes; `None` for a TLS alert,
    /// as for any other invalid handshake.
    fn plain_response(&self) -> Option<&'static [u8]> {
        None
    }

    /// Serves one connection until the client closes it. After [`Drain::requested`] returns, finishes the request in
    /// progress and returns. Flush each reply, because TLS buffers what the socket does not accept, and shut the stream
    /// down at the end, so that a TLS client can tell the end from a broken connection.
    fn serve<S: Stream>(
        self: Arc<Self>,
        stream: S,
        connection: Connection,
    ) -> impl Future<Output = ()> + Send;
}

/// A bound socket and its TLS configuration.
#[derive(Debug)]
pub(crate) struct Listener {
    pub(crate) socket: TcpListener,
    /// The current TLS configuration; plain if `None`.
    pub(crate) tls: Option<Arc<CurrentConfig>>,
}

/// Limits of one listener.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ListenerLimits {
    /// Maximum number of open connections.
    pub(crate) connections: usize,
    /// Time to keep accepting connections after shutdown was requested.
    pub(crate) drain: Duration,
}

/// What all listeners of the process share.
#[derive(Debug, Clone)]
pub(crate) struct ListenerContext {
    pub(crate) limits: ListenerLimits,
    pub(crate) readiness: Arc<Readiness>,
    pub(crate) front_ends: FrontEnds,
}

/// Binds a socket. `setting` names the flag in an error.
pub(crate) fn bind(setting: &str, address: SocketAddr) -> Result<TcpListener, ServeError> {
    let bound = || -> io::Result<TcpListener> {
        let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
        // Allows an immediate restart while old connections are in TIME_WAIT.
        socket.set_reuseaddr(true)?;
        socket.bind(address)?;
        socket.listen(ACCEPT_QUEUE)
    };
    bound()
        .map_err(|error| ServeError::new(format!("{setting}: cannot listen on {address}: {error}")))
}

/// Serves a listener in a background task until shutdown completes.
pub(crate) fn listen<P: Protocol>(
    listener: Listener,
    protocol: P,
    context: ListenerContext,
    shutdown: &Shutdown,
) -> JoinHandle<()> {
    let Listener { socket, tls } = listener;
    if let Ok(address) = socket.local_addr() {
        let scheme = if tls.is_some() { protocol.tls_scheme() } else { protocol.scheme() };
        eprintln!("listening on {scheme}://{address}");
    }
    let counters = context.front_ends.listen(protocol.scheme());
    let connections = Connections::new(Arc::new(protocol), tls, counters);
    let stages = (shutdown.requested(), shutdown.drain_skipped());
    tokio::spawn(accept::accept(socket, connections, context, stages))
}
