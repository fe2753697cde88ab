//! TLS of the server: its certificate, and the CAs of client certificates.

use std::sync::Arc;

use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::UnixTime;
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::server::danger::ClientCertVerifier;
use tracing::warn;

use super::pem_file::{Pem, PemFile};
use super::validity::validity_problem;
use super::{HTTP, provider};
use crate::error::SettingsError;

/// TLS files of the server.
#[derive(Debug, Clone)]
pub(crate) struct ServerTlsFiles {
    pub(crate) certificate: PemFile,
    pub(crate) key: PemFile,
    /// CAs for client certificates; `None` if clients need no certificate.
    pub(crate) client_ca: Option<PemFile>,
}

/// Content of the TLS files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ServerPems {
    certificate: Pem,
    key: Pem,
    client_ca: Option<Pem>,
}

impl ServerTlsFiles {
    /// Reads all files.
    pub(crate) fn read(&self) -> Result<ServerPems, SettingsError> {
        Ok(ServerPems {
            certificate: self.certificate.read()?,
            key: self.key.read()?,
            client_ca: self.client_ca.as_ref().map(PemFile::read).transpose()?,
        })
    }

    /// Builds the configuration: TLS 1.2 and 1.3, HTTP/1.1 unless the listener has another protocol. Early data is off because it can be replayed.
    /// Logs a warning if the certificate is outside its validity period.
    pub(crate) fn config(&self, pems: &ServerPems) -> Result<Arc<ServerConfig>, SettingsError> {
        let chain = self.certificate.certificates(&pems.certificate)?;
        let key = self.key.key(&pems.key)?;
        let problem = chain.first().and_then(|leaf| validity_problem(leaf, UnixTime::now()));
        let builder = ServerConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .map_err(|error| self.certificate.error(error))?;
        let builder = match (&self.client_ca, &pems.client_ca) {
            (Some(file), Some(pem)) => builder.with_client_cert_verifier(verifier(file, pem)?),
            _ => builder.with_no_client_auth(),
        };
        let config = builder.with_single_cert(chain, key);
        let mut config = config.map_err(|error| self.certificate.pair_error(&self.key, &error))?;
        config.alpn_protocols = vec![HTTP.to_vec()];
        if let Some(problem) = problem {
            let error = self.certificate.error(format!("the certificate {problem}"));
            warn!(%error, "clients will reject this certificate; replace the file");
        }
        Ok(Arc::new(config))
    }
}

/// Returns a verifier that requires a client certificate issued by one of the CAs in the file.
fn verifier(file: &PemFile, pem: &Pem) -> Result<Arc<dyn ClientCertVerifier>, SettingsError> {
    let roots = Arc::new(file.roots(pem)?);
    let builder = WebPkiClientVerifier::builder_with_provider(roots, provider());
    builder.build().map_err(|error| file.error(error))
}
