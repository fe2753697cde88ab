//! Those who were let in: served plainly or over TLS, and seen off.

use std::net::SocketAddr;
use std::sync::Arc;

use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::TcpStream;
use tokio::sync::OwnedSemaphorePermit;

use super::connection::{Dispatch, serve};
use super::handshake::{Handshakes, agree};
use crate::tls::CurrentConfig;

/// The open connections of a listener.
#[derive(Debug)]
pub(super) struct Reception {
    dispatch: Arc<Dispatch>,
    /// Without it HTTP is plain.
    tls: Option<Arc<CurrentConfig>>,
    connections: GracefulShutdown,
    handshakes: Handshakes,
}

impl Reception {
    pub(super) fn new(dispatch: Arc<Dispatch>, tls: Option<Arc<CurrentConfig>>) -> Self {
        let (connections, handshakes) = (GracefulShutdown::new(), Handshakes::new(()));
        Self { dispatch, tls, connections, handshakes }
    }

    pub(super) fn dispatch(&self) -> &Dispatch {
        &self.dispatch
    }

    /// Serves a connection in the background, which has its place from its first byte to its last.
    pub(super) fn admit(
        &self,
        stream: TcpStream,
        peer: SocketAddr,
        place: Option<OwnedSemaphorePermit>,
    ) {
        let dispatch = Arc::clone(&self.dispatch);
        let open = dispatch.app.metrics().connection();
        // A connection that breaks off is its client's affair.
        let Some(tls) = &self.tls else {
            let connection = self.connections.watch(serve(stream, peer, dispatch));
            tokio::spawn(async move {
                let _ = connection.await;
                drop((place, open));
            });
            return;
        };
        let (acceptor, wanted) = (tls.acceptor(), self.handshakes.subscribe());
        let watcher = self.connections.watcher();
        tokio::spawn(async move {
            if let Some(stream) = agree(acceptor, stream, wanted).await {
                let _ = watcher.watch(serve(stream, peer, dispatch)).await;
            }
            drop((place, open));
        });
    }

    /// Finishes what is under way. A handshake is not: nobody has asked anything yet.
    pub(super) async fn close(self) {
        drop(self.handshakes);
        self.connections.shutdown().await;
    }
}
