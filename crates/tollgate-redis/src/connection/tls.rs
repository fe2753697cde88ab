//! TLS connections. There is no fallback to plain text.

use std::fmt;
use std::sync::Arc;

use tokio::net::TcpStream;
use tokio::sync::OnceCell;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::ClientConfig;
use tokio_rustls::rustls::pki_types::ServerName;

use super::ConnectError;
use crate::address::{Address, TlsFiles};

mod error_text;
mod files;
mod stream;
#[cfg(test)]
mod tests;

use error_text::Trust;
pub(crate) use stream::TlsStream;

/// The TLS settings of a store. All its connections share them.
pub(crate) struct Tls {
    files: TlsFiles,
    /// Supplied by the program, in place of the CA and client certificate files.
    config: Option<Arc<ClientConfig>>,
    connector: OnceCell<TlsConnector>,
}

impl Tls {
    /// Returns the settings of a `rediss` address. `config` replaces the files of the address.
    pub(crate) fn of(address: &Address, config: Option<Arc<ClientConfig>>) -> Option<Arc<Self>> {
        address.tls_files().map(|files| Arc::new(Self::new(files.clone(), config)))
    }

    /// Does not read the files yet.
    pub(crate) const fn new(files: TlsFiles, config: Option<Arc<ClientConfig>>) -> Self {
        Self { files, config, connector: OnceCell::const_new() }
    }

    /// Reads the files, once. If that fails, the next call reads them again: a secret may be mounted after
    /// the start of the program.
    ///
    /// # Errors
    /// One line that names the file.
    pub(crate) async fn prepare(&self) -> Result<&TlsConnector, String> {
        let create = || async {
            if let Some(config) = &self.config {
                return Ok(TlsConnector::from(Arc::clone(config)));
            }
            let files = self.files.clone();
            // Files may be on a network, and callers wait on this thread.
            let read = tokio::task::spawn_blocking(move || files::connector(&files)).await;
            read.unwrap_or_else(|_| Err("the runtime has shut down".to_owned()))
        };
        self.connector.get_or_try_init(create).await
    }

    /// Whether there is a client certificate.
    pub(crate) fn has_certificate(&self) -> bool {
        match &self.config {
            Some(config) => config.client_auth_cert_resolver.has_certs(),
            None => self.files.client.is_some(),
        }
    }

    /// Performs the TLS handshake with the server of this host name.
    ///
    /// # Errors
    /// One line that begins with a verb; the subject is the server.
    pub(crate) async fn handshake(
        &self,
        socket: TcpStream,
        host: &str,
    ) -> Result<TlsStream, ConnectError> {
        let name = match &self.files.server_name {
            Some(name) => name.clone(),
            None => ServerName::try_from(host.to_owned()).map_err(|_| {
                let reason = "has a host name that is invalid in certificates; set server_name";
                ConnectError::Misconfigured(reason.to_owned())
            })?,
        };
        let connector = self.prepare().await.map_err(ConnectError::Misconfigured)?;
        let has_certificate = self.has_certificate();
        match connector.connect(name.clone(), socket).await {
            Ok(stream) => Ok(TlsStream::new(stream, has_certificate)),
            Err(error) => Err(error_text::explain(&error, self.trust(), has_certificate, &name)),
        }
    }

    fn trust(&self) -> Trust<'_> {
        match (&self.config, &self.files.ca) {
            (Some(_), _) => Trust::Config,
            (None, Some(file)) => Trust::File(file),
            (None, None) => Trust::Public,
        }
    }
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls").field("files", &self.files).finish_non_exhaustive()
    }
}
