//! TLS of the client commands: trusted CAs and the client certificate.

use std::error::Error as AnyError;
use std::path::PathBuf;
use std::sync::Arc;

use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use super::error_text::{ErrorContext, find_tls_error};
use super::pem_file::PemFile;
use super::{HTTP, provider};
use crate::error::SettingsError;

const CA: &str = "--ca";
const CERTIFICATE: &str = "--client-cert";
const KEY: &str = "--client-key";

/// TLS files of a client command.
#[derive(Debug, Default)]
pub(crate) struct ClientTlsFiles {
    ca: Option<PemFile>,
    /// Client certificate and its key.
    identity: Option<(PemFile, PemFile)>,
}

impl ClientTlsFiles {
    /// Returns an error if only one of certificate and key is given.
    pub(crate) fn new(
        ca: Option<PathBuf>,
        certificate: Option<PathBuf>,
        key: Option<PathBuf>,
    ) -> Result<Self, SettingsError> {
        let needs = |given, missing| Err(SettingsError::new(given, format!("needs {missing} too")));
        let identity = match (certificate, key) {
            (None, None) => None,
            (Some(_), None) => return needs(CERTIFICATE, KEY),
            (None, Some(_)) => return needs(KEY, CERTIFICATE),
            (Some(certificate), Some(key)) => {
                Some((PemFile::new(CERTIFICATE, certificate), PemFile::new(KEY, key)))
            }
        };
        Ok(Self { ca: ca.map(|path| PemFile::new(CA, path)), identity })
    }

    /// Reads the files and builds the configuration. The client sends nothing before the server is verified.
    fn config(&self) -> Result<ClientConfig, SettingsError> {
        let builder = ClientConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .map_err(|error| SettingsError::new("--server", error))?
            .with_root_certificates(self.roots()?);
        let mut config = match &self.identity {
            None => builder.with_no_client_auth(),
            Some((file, key_file)) => {
                let (chain, key) =
                    (file.certificates(&file.read()?)?, key_file.key(&key_file.read()?)?);
                let config = builder.with_client_auth_cert(chain, key);
                config.map_err(|error| file.pair_error(key_file, &error))?
            }
        };
        config.alpn_protocols = vec![HTTP.to_vec()];
        Ok(config)
    }

    /// Returns the trusted CAs: `--ca`, or the public ones.
    fn roots(&self) -> Result<RootCertStore, SettingsError> {
        match &self.ca {
            Some(file) => file.roots(&file.read()?),
            None => Ok(webpki_roots::TLS_SERVER_ROOTS.iter().cloned().collect()),
        }
    }
}

/// TLS client for one server.
#[derive(Debug)]
pub(crate) struct ClientTls {
    name: ServerName<'static>,
    config: Arc<ClientConfig>,
    context: ErrorContext,
}

impl ClientTls {
    /// Creates a client for a host; the server's certificate must be valid for it.
    pub(crate) fn new(host: &str, files: &ClientTlsFiles) -> Result<Self, SettingsError> {
        let bare = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        let name = ServerName::try_from(bare).map_err(|_| {
            SettingsError::new(
                "--server",
                format!("{host:?} is not a valid DNS name or IP address"),
            )
        })?;
        let context = ErrorContext {
            name: host.to_owned(),
            ca: files.ca.as_ref().map(|ca| ca.path().display().to_string()),
            has_certificate: files.identity.is_some(),
        };
        Ok(Self { name, config: Arc::new(files.config()?), context })
    }

    /// Performs the handshake; the error is one line of text.
    pub(crate) async fn handshake(
        &self,
        socket: TcpStream,
    ) -> Result<TlsStream<TcpStream>, String> {
        let connector = TlsConnector::from(Arc::clone(&self.config));
        let stream = connector.connect(self.name.clone(), socket).await;
        stream.map_err(|error| self.context.describe_handshake(&error))
    }

    /// Describes a TLS error of an open connection. With TLS 1.3 the server rejects a client certificate only after
    /// the handshake.
    pub(crate) fn explain(
        &self,
        error: Box<dyn AnyError + Send + Sync>,
    ) -> Box<dyn AnyError + Send + Sync> {
        match find_tls_error(error.as_ref()) {
            Some(cause) => self.context.describe(cause).into(),
            None => error,
        }
    }
}
