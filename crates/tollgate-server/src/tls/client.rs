//! What a command trusts, and shows itself by.

use std::error::Error as AnyError;
use std::path::PathBuf;
use std::sync::Arc;

use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use super::error_text::{Trouble, find};
use super::pem_file::PemFile;
use super::{HTTP, provider};
use crate::settings::SettingsError;

const CA: &str = "--ca";
const CERTIFICATE: &str = "--client-cert";
const KEY: &str = "--client-key";

/// The files of a command.
#[derive(Debug, Default)]
pub(crate) struct ClientTlsFiles {
    ca: Option<PemFile>,
    /// A certificate and its key.
    identity: Option<(PemFile, PemFile)>,
}

impl ClientTlsFiles {
    /// A certificate and its key come together or not at all.
    pub(crate) fn of(
        ca: Option<PathBuf>,
        certificate: Option<PathBuf>,
        key: Option<PathBuf>,
    ) -> Result<Self, SettingsError> {
        let lacks = |given, missing| Err(SettingsError::new(given, format!("needs {missing} too")));
        let identity = match (certificate, key) {
            (None, None) => None,
            (Some(_), None) => return lacks(CERTIFICATE, KEY),
            (None, Some(_)) => return lacks(KEY, CERTIFICATE),
            (Some(certificate), Some(key)) => {
                Some((PemFile::new(CERTIFICATE, certificate), PemFile::new(KEY, key)))
            }
        };
        Ok(Self { ca: ca.map(|path| PemFile::new(CA, path)), identity })
    }

    /// Reads all of them. Nothing is ever sent before the service is verified.
    fn config(&self) -> Result<ClientConfig, SettingsError> {
        let builder = ClientConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .map_err(|error| SettingsError::new("--server", error))?
            .with_root_certificates(self.authorities()?);
        let mut config = match &self.identity {
            None => builder.with_no_client_auth(),
            Some((file, key_file)) => {
                let (chain, key) =
                    (file.certificates(&file.read()?)?, key_file.key(&key_file.read()?)?);
                let config = builder.with_client_auth_cert(chain, key);
                config.map_err(|error| file.misfit(key_file, &error))?
            }
        };
        config.alpn_protocols = vec![HTTP.to_vec()];
        Ok(config)
    }

    /// Whom to trust.
    fn authorities(&self) -> Result<RootCertStore, SettingsError> {
        match &self.ca {
            Some(file) => file.authorities(&file.read()?),
            None => Ok(webpki_roots::TLS_SERVER_ROOTS.iter().cloned().collect()),
        }
    }
}

/// How a command agrees on TLS with one service.
#[derive(Debug)]
pub(crate) struct ClientTls {
    name: ServerName<'static>,
    config: Arc<ClientConfig>,
    trouble: Trouble,
}

impl ClientTls {
    /// With the service on this host, whose certificate must be for it.
    pub(crate) fn new(host: &str, files: &ClientTlsFiles) -> Result<Self, SettingsError> {
        let bare = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        let name = ServerName::try_from(bare).map_err(|_| {
            SettingsError::new("--server", format!("{host:?} is a host that no certificate is for"))
        })?;
        let trouble = Trouble {
            name: host.to_owned(),
            ca: files.ca.as_ref().map(|ca| ca.path().display().to_string()),
            has_certificate: files.identity.is_some(),
        };
        Ok(Self { name, config: Arc::new(files.config()?), trouble })
    }

    /// Agrees, or tells in one line why not.
    pub(crate) async fn handshake(
        &self,
        socket: TcpStream,
    ) -> Result<TlsStream<TcpStream>, String> {
        let connector = TlsConnector::from(Arc::clone(&self.config));
        let agreed = connector.connect(self.name.clone(), socket).await;
        agreed.map_err(|error| self.trouble.in_handshake(&error))
    }

    /// What it means that an agreed connection broke off. With TLS 1.3 a service looks at our certificate
    /// only then.
    pub(crate) fn explain(
        &self,
        error: Box<dyn AnyError + Send + Sync>,
    ) -> Box<dyn AnyError + Send + Sync> {
        match find(error.as_ref()) {
            Some(cause) => self.trouble.told(cause).into(),
            None => error,
        }
    }
}
