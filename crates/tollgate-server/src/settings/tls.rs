//! Whether TLS is spoken, and by which files.

use std::path::PathBuf;
use std::sync::Arc;

use tokio_rustls::rustls::ServerConfig;

use super::SettingsError;
use super::file::SettingsFile;
use crate::cli::ServeArgs;
use crate::tls::{PemFile, ServerPems, ServerTlsFiles};

const CERTIFICATE: &str = "--tls-cert";
const KEY: &str = "--tls-key";
const CLIENT_CA: &str = "--tls-client-ca";

/// The files, what they hold, and what that comes to: read once, so that what was checked is what serves.
#[derive(Debug)]
pub(crate) struct TlsSettings {
    pub(crate) files: ServerTlsFiles,
    pub(crate) pems: ServerPems,
    pub(crate) config: Arc<ServerConfig>,
}

impl TlsSettings {
    /// TLS if files for it are named, and nothing is wrong with them.
    pub(super) fn of(args: &ServeArgs, file: &SettingsFile) -> Result<Option<Self>, SettingsError> {
        let either = |flag: &Option<PathBuf>, file: &Option<PathBuf>| flag.clone().or(file.clone());
        let files = files(
            either(&args.tls_cert, &file.tls_cert),
            either(&args.tls_key, &file.tls_key),
            either(&args.tls_client_ca, &file.tls_client_ca),
        )?;
        files.map(Self::read).transpose()
    }

    fn read(files: ServerTlsFiles) -> Result<Self, SettingsError> {
        let pems = files.read()?;
        let config = files.config(&pems)?;
        Ok(Self { files, pems, config })
    }

    /// Whether only those can connect who prove who they are.
    pub(crate) fn asks_clients(&self) -> bool {
        self.files.client_ca.is_some()
    }
}

fn files(
    certificate: Option<PathBuf>,
    key: Option<PathBuf>,
    client_ca: Option<PathBuf>,
) -> Result<Option<ServerTlsFiles>, SettingsError> {
    let lacks = |given, missing| {
        Err(SettingsError::new(given, format!("needs {missing} too, or there is no TLS")))
    };
    let (certificate, key) = match (certificate, key) {
        (Some(certificate), Some(key)) => (certificate, key),
        (Some(_), None) => return lacks(CERTIFICATE, KEY),
        (None, Some(_)) => return lacks(KEY, CERTIFICATE),
        (None, None) if client_ca.is_some() => return lacks(CLIENT_CA, "--tls-cert and --tls-key"),
        (None, None) => return Ok(None),
    };
    Ok(Some(ServerTlsFiles {
        certificate: PemFile::new(CERTIFICATE, certificate),
        key: PemFile::new(KEY, key),
        client_ca: client_ca.map(|path| PemFile::new(CLIENT_CA, path)),
    }))
}
