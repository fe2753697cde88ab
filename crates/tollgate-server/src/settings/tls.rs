//! TLS settings of the listeners.

use std::path::PathBuf;
use std::sync::Arc;

use tokio_rustls::rustls::ServerConfig;

use super::file::SettingsFile;
use crate::error::SettingsError;
use crate::settings::args::ServeArgs;
use crate::tls::{PemFile, ServerPems, ServerTlsFiles};

const CERTIFICATE: &str = "--tls-cert";
const KEY: &str = "--tls-key";
const CLIENT_CA: &str = "--tls-client-ca";

/// TLS files, their contents and the resulting configuration. The files are read once, so that the service uses
/// exactly what was validated.
#[derive(Debug)]
pub(crate) struct TlsSettings {
    pub(crate) files: ServerTlsFiles,
    pub(crate) pems: ServerPems,
    pub(crate) config: Arc<ServerConfig>,
}

impl TlsSettings {
    /// Reads and validates the TLS files, if any are set.
    pub(super) fn of(args: &ServeArgs, file: &SettingsFile) -> Result<Option<Self>, SettingsError> {
        let flag_or_file =
            |flag: &Option<PathBuf>, file: &Option<PathBuf>| flag.clone().or(file.clone());
        let files = files(
            flag_or_file(&args.tls_cert, &file.tls_cert),
            flag_or_file(&args.tls_key, &file.tls_key),
            flag_or_file(&args.tls_client_ca, &file.tls_client_ca),
        )?;
        files.map(Self::read).transpose()
    }

    fn read(files: ServerTlsFiles) -> Result<Self, SettingsError> {
        let pems = files.read()?;
        let config = files.config(&pems)?;
        Ok(Self { files, pems, config })
    }

    /// Returns whether clients must authenticate with a certificate.
    pub(crate) fn requires_client_certificate(&self) -> bool {
        self.files.client_ca.is_some()
    }
}

fn files(
    certificate: Option<PathBuf>,
    key: Option<PathBuf>,
    client_ca: Option<PathBuf>,
) -> Result<Option<ServerTlsFiles>, SettingsError> {
    let needs = |setting, missing| Err(SettingsError::new(setting, format!("needs {missing} too")));
    let (certificate, key) = match (certificate, key) {
        (Some(certificate), Some(key)) => (certificate, key),
        (Some(_), None) => return needs(CERTIFICATE, KEY),
        (None, Some(_)) => return needs(KEY, CERTIFICATE),
        (None, None) if client_ca.is_some() => return needs(CLIENT_CA, "--tls-cert and --tls-key"),
        (None, None) => return Ok(None),
    };
    Ok(Some(ServerTlsFiles {
        certificate: PemFile::new(CERTIFICATE, certificate),
        key: PemFile::new(KEY, key),
        client_ca: client_ca.map(|path| PemFile::new(CLIENT_CA, path)),
    }))
}
