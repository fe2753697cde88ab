//! What a service shows itself by, and whom it lets in.

use std::sync::Arc;

use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::UnixTime;
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::server::danger::ClientCertVerifier;
use tracing::warn;

use super::pem_file::{Pem, PemFile};
use super::validity::validity_problem;
use super::{HTTP, provider};
use crate::settings::SettingsError;

/// The files of a service.
#[derive(Debug, Clone)]
pub(crate) struct ServerTlsFiles {
    pub(crate) certificate: PemFile,
    pub(crate) key: PemFile,
    /// Who must have issued the certificate of every client, if clients need one.
    pub(crate) client_ca: Option<PemFile>,
}

/// What they hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ServerPems {
    certificate: Pem,
    key: Pem,
    client_ca: Option<Pem>,
}

impl ServerTlsFiles {
    /// Reads all of them.
    pub(crate) fn read(&self) -> Result<ServerPems, SettingsError> {
        Ok(ServerPems {
            certificate: self.certificate.read()?,
            key: self.key.read()?,
            client_ca: self.client_ca.as_ref().map(PemFile::read).transpose()?,
        })
    }

    /// How connections are agreed on with them: TLS 1.2 or 1.3, and HTTP/1.1 within. Nothing is heard
    /// before the handshake is through: early data, which others could repeat, is off.
    pub(crate) fn config(&self, pems: &ServerPems) -> Result<Arc<ServerConfig>, SettingsError> {
        let chain = self.certificate.certificates(&pems.certificate)?;
        let key = self.key.key(&pems.key)?;
        let dates = chain.first().and_then(|own| validity_problem(own, UnixTime::now()));
        let builder = ServerConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .map_err(|error| self.certificate.wrong(error))?;
        let builder = match (&self.client_ca, &pems.client_ca) {
            (Some(file), Some(pem)) => builder.with_client_cert_verifier(verifier(file, pem)?),
            _ => builder.with_no_client_auth(),
        };
        let config = builder.with_single_cert(chain, key);
        let mut config = config.map_err(|error| self.certificate.misfit(&self.key, &error))?;
        config.alpn_protocols = vec![HTTP.to_vec()];
        if let Some(dates) = dates {
            let warning = self.certificate.wrong(format!("the certificate {dates}"));
            warn!(%warning, "clients will not trust this service");
        }
        Ok(Arc::new(config))
    }
}

/// Asks every client for a certificate of these authorities.
fn verifier(file: &PemFile, pem: &Pem) -> Result<Arc<dyn ClientCertVerifier>, SettingsError> {
    let authorities = Arc::new(file.authorities(pem)?);
    let builder = WebPkiClientVerifier::builder_with_provider(authorities, provider());
    builder.build().map_err(|error| file.wrong(error))
}
