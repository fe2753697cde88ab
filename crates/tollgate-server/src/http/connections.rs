//! The open connections of a listener, plain or over TLS, and their graceful shutdown.

use std::net::SocketAddr;
use std::sync::Arc;

use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::TcpStream;
use tokio::sync::OwnedSemaphorePermit;

use super::connection::{Dispatch, serve};
use super::handshake::{Handshakes, accept_tls};
use crate::tls::CurrentConfig;

/// The open connections of a listener.
#[derive(Debug)]
pub(super) struct Connections {
    dispatch: Arc<Dispatch>,
    /// The current TLS configuration; plain HTTP if `None`.
    tls: Option<Arc<CurrentConfig>>,
    open: GracefulShutdown,
    handshakes: Handshakes,
}

impl Connections {
    pub(super) fn new(dispatch: Arc<Dispatch>, tls: Option<Arc<CurrentConfig>>) -> Self {
        let (open, handshakes) = (GracefulShutdown::new(), Handshakes::new(()));
        Self { dispatch, tls, open, handshakes }
    }

    pub(super) fn dispatch(&self) -> &Dispatch {
        &self.dispatch
    }

    /// Serves a connection in a background task. The permit is held until the connection closes.
    pub(super) fn admit(
        &self,
        stream: TcpStream,
        peer: SocketAddr,
        permit: Option<OwnedSemaphorePermit>,
    ) {
        let dispatch = Arc::clone(&self.dispatch);
        let gauge = dispatch.app.metrics().connection();
        // Errors of a connection are caused by its client and are not logged.
        let Some(tls) = &self.tls else {
            let connection = self.open.watch(serve(stream, peer, dispatch));
            tokio::spawn(async move {
                let _ = connection.await;
                drop((permit, gauge));
            });
            return;
        };
        let (acceptor, cancelled) = (tls.acceptor(), self.handshakes.subscribe());
        let watcher = self.open.watcher();
        tokio::spawn(async move {
            if let Some(stream) = accept_tls(acceptor, stream, cancelled).await {
                let _ = watcher.watch(serve(stream, peer, dispatch)).await;
            }
            drop((permit, gauge));
        });
    }

    /// Cancels handshakes, which carry no request yet, and finishes the requests in progress.
    pub(super) async fn close(self) {
        drop(self.handshakes);
        self.open.shutdown().await;
    }
}
