//! TLS: never without a verified certificate, and never with plain text instead.

use std::fmt;

use tokio::net::TcpStream;
use tokio::sync::OnceCell;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;

use crate::address::TlsFiles;

mod error_text;
mod files;
mod stream;
#[cfg(test)]
mod tests;

pub(crate) use stream::TlsStream;

/// What connections over TLS are made with. Those of one store share it, however many servers there are.
pub(crate) struct Tls {
    files: TlsFiles,
    connector: OnceCell<TlsConnector>,
}

impl Tls {
    /// Reads nothing yet.
    pub(crate) const fn new(files: TlsFiles) -> Self {
        Self { files, connector: OnceCell::const_new() }
    }

    /// Reads the files, unless they have been read. If that fails it is tried again by the next who asks:
    /// a secret may be mounted later than a program starts.
    ///
    /// # Errors
    /// One line that names the file.
    pub(crate) async fn prepare(&self) -> Result<&TlsConnector, String> {
        let read = || async {
            let files = self.files.clone();
            // Files may be on a network, and callers wait on this thread.
            let read = tokio::task::spawn_blocking(move || files::connector(&files)).await;
            read.unwrap_or_else(|_| Err("the runtime has ended".to_owned()))
        };
        self.connector.get_or_try_init(read).await
    }

    /// Whether we can show a certificate of our own.
    pub(crate) const fn has_certificate(&self) -> bool {
        self.files.client.is_some()
    }

    /// Agrees on TLS with the server of this name.
    ///
    /// # Errors
    /// One line that says what the server did, beginning with a verb.
    pub(crate) async fn agree(&self, socket: TcpStream, host: &str) -> Result<TlsStream, String> {
        let name = match &self.files.server_name {
            Some(name) => name.clone(),
            None => ServerName::try_from(host.to_owned()).map_err(|_| {
                "has a host name that no certificate can have: server_name must tell another"
                    .to_owned()
            })?,
        };
        let connector = self.prepare().await?;
        match connector.connect(name.clone(), socket).await {
            Ok(stream) => Ok(TlsStream::new(stream, self.has_certificate())),
            Err(error) => Err(error_text::explain(&error, &self.files, &name)),
        }
    }
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls").field("files", &self.files).finish_non_exhaustive()
    }
}
