//! TLS client for tests, independent of the client commands.

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;

use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::{
    ClientConfig, ClientConnection, RootCertStore, StreamOwned, SupportedProtocolVersion,
};
use tollgate_testkit::wait::MAX_WAIT;

use crate::client::Client;

/// A TLS client configuration.
pub(crate) struct TlsClient {
    config: ClientConfig,
}

impl TlsClient {
    pub(crate) fn trusting(ca: &Path, versions: &[&'static SupportedProtocolVersion]) -> Self {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_file(ca).unwrap()).unwrap();
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_protocol_versions(versions)
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        Self { config }
    }

    /// Sets the offered ALPN protocols.
    pub(crate) fn offering(mut self, protocols: &[&str]) -> Self {
        let protocols = protocols.iter().map(|name| name.as_bytes().to_vec());
        self.config.alpn_protocols = protocols.collect();
        self
    }

    /// Completes a handshake and returns the connection and the negotiated protocol.
    pub(crate) fn connect(&self, address: SocketAddr) -> io::Result<(Client, Option<String>)> {
        let name = address.ip().into();
        let session = ClientConnection::new(Arc::new(self.config.clone()), name).unwrap();
        let socket = TcpStream::connect(address)?;
        socket.set_read_timeout(Some(MAX_WAIT))?;
        let mut stream = StreamOwned::new(session, socket);
        while stream.conn.is_handshaking() {
            stream.conn.complete_io(&mut stream.sock)?;
        }
        let protocol = stream.conn.alpn_protocol().map(|name| String::from_utf8_lossy(name).into());
        Ok((Client::over(stream), protocol))
    }
}
