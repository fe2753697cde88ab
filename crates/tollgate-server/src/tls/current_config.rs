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

    /// Returns an acceptor for the next connection, with another ALPN name than that of HTTP/1.1 if one is given.
    pub(crate) fn acceptor(&self, alpn: Option<&[u8]>) -> TlsAcceptor {
        let config = Arc::clone(&self.0.read());
        let Some(alpn) = alpn else { return TlsAcceptor::from(config) };
        // Cheap compared with the handshake: keys, verifiers and session storage are shared.
        let mut config = ServerConfig::clone(&config);
        config.alpn_protocols = vec![alpn.to_vec()];
        TlsAcceptor::from(Arc::new(config))
    }

    pub(super) fn replace(&self, config: Arc<ServerConfig>) {
        *self.0.write() = config;
    }
}
