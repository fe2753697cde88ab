//! The open connections of a listener, plain or over TLS, and their graceful shutdown.

use std::net::SocketAddr;
use std::sync::Arc;

use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, watch};

use super::connection::{Connection, Drain};
use super::handshake::accept_tls;
use super::timeouts::{Progress, TimedStream};
use super::{Protocol, Stream};
use crate::metrics::FrontEndCounters;
use crate::tls::CurrentConfig;

/// The open connections of a listener.
#[derive(Debug)]
pub(super) struct Connections<P> {
    protocol: Arc<P>,
    /// The current TLS configuration; plain if `None`.
    tls: Option<Arc<CurrentConfig>>,
    counters: Arc<FrontEndCounters>,
    /// Dropped to request the end of all connections.
    drain: watch::Sender<()>,
    /// Every connection holds a receiver until it is closed.
    open: watch::Sender<()>,
}

impl<P: Protocol> Connections<P> {
    pub(super) fn new(
        protocol: Arc<P>,
        tls: Option<Arc<CurrentConfig>>,
        counters: Arc<FrontEndCounters>,
    ) -> Self {
        let (drain, open) = (watch::Sender::new(()), watch::Sender::new(()));
        Self { protocol, tls, counters, drain, open }
    }

    /// Serves a connection in a background task. The permit is held until the connection closes.
    pub(super) fn admit(
        &self,
        stream: TcpStream,
        peer: SocketAddr,
        permit: Option<OwnedSemaphorePermit>,
    ) {
        let protocol = Arc::clone(&self.protocol);
        let held = (permit, self.counters.open_connection(), self.open.subscribe());
        let (drain, counters) = (self.drain.subscribe(), Arc::clone(&self.counters));
        let Some(tls) = &self.tls else {
            let serving = serve(protocol, stream, peer, (drain, counters));
            tokio::spawn(async move {
                serving.await;
                drop(held);
            });
            return;
        };
        let acceptor = tls.acceptor(self.protocol.alpn());
        let plain_response = self.protocol.plain_response();
        tokio::spawn(async move {
            // A handshake carries no request yet, so shutdown cancels it.
            if let Some(stream) = accept_tls(acceptor, stream, plain_response, drain.clone()).await
            {
                serve(protocol, stream, peer, (drain, counters)).await;
            }
            drop(held);
        });
    }

    /// Requests the end of all connections, and waits until their requests in progress are complete.
    pub(super) async fn close(self) {
        drop(self.drain);
        self.open.closed().await;
    }
}

/// Serves a connection with the time-outs of the listener.
pub(crate) fn serve<P: Protocol, S: Stream>(
    protocol: Arc<P>,
    stream: S,
    peer: SocketAddr,
    (drain, counters): (watch::Receiver<()>, Arc<FrontEndCounters>),
) -> impl Future<Output = ()> + Send {
    let progress = Arc::new(Progress::default());
    let stream = TimedStream::new(stream, Arc::clone(&progress));
    protocol.serve(stream, Connection::new(peer, progress, Drain::new(drain), counters))
}
