//! The active TLS configuration of the server, replaced when its files change.

use std::sync::Arc;

use parking_lot::RwLock;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;

/// The active configuration. Open connections keep the configuration of their handshake.
#[derive(Debug)]
pub(crate) struct CurrentConfig(RwLock<Arc<ServerConfig>>);

impl CurrentConfig {
    pub(crate) fn new(config: Arc<ServerConfig>) -> Self {
        Self(RwLock::new(config))
    }

    /// Returns an acceptor for the next connection.
    pub(crate) fn acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(Arc::clone(&self.0.read()))
    }

    pub(super) fn replace(&self, config: Arc<ServerConfig>) {
        *self.0.write() = config;
    }
}
