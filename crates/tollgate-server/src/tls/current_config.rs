//! What is in force, until newer files are.

use std::sync::Arc;

use parking_lot::RwLock;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;

/// How connections are agreed on now. Those that are open keep what they were agreed on with.
#[derive(Debug)]
pub(crate) struct CurrentConfig(RwLock<Arc<ServerConfig>>);

impl CurrentConfig {
    pub(crate) fn new(config: Arc<ServerConfig>) -> Self {
        Self(RwLock::new(config))
    }

    /// For the next connection.
    pub(crate) fn acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(Arc::clone(&self.0.read()))
    }

    pub(super) fn replace(&self, config: Arc<ServerConfig>) {
        *self.0.write() = config;
    }
}
