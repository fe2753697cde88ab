//! PEM files with certificates and keys.

use std::fmt;
use std::path::{Path, PathBuf};

use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{Error, RootCertStore};

use crate::error::SettingsError;
use crate::files::bounded_read;

/// Maximum file size in bytes.
const MAX_BYTES: u64 = 4 << 20;

/// A PEM file and the setting that names it. Errors name both.
#[derive(Debug, Clone)]
pub(crate) struct PemFile {
    setting: &'static str,
    path: PathBuf,
}

/// Content of a PEM file. It may be a private key, so `Debug` does not show it.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Pem(Vec<u8>);

impl fmt::Debug for Pem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Pem(…)")
    }
}

impl PemFile {
    pub(crate) fn new(setting: &'static str, path: PathBuf) -> Self {
        Self { setting, path }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn read(&self) -> Result<Pem, SettingsError> {
        bounded_read::read(&self.path, MAX_BYTES).map(Pem).map_err(|reason| self.error(reason))
    }

    /// Returns the certificates in the file, at least one.
    pub(super) fn certificates(
        &self,
        pem: &Pem,
    ) -> Result<Vec<CertificateDer<'static>>, SettingsError> {
        let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem.0).collect();
        match certificates {
            Ok(certificates) if !certificates.is_empty() => Ok(certificates),
            _ => Err(self.error("contains no PEM certificate")),
        }
    }

    /// Returns the CA certificates in the file, at least one.
    pub(super) fn roots(&self, pem: &Pem) -> Result<RootCertStore, SettingsError> {
        let mut roots = RootCertStore::empty();
        for certificate in self.certificates(pem)? {
            let added = roots.add(certificate);
            added.map_err(|error| self.error(format!("invalid certificate: {error}")))?;
        }
        Ok(roots)
    }

    /// Returns the private key in the file.
    pub(super) fn key(&self, pem: &Pem) -> Result<PrivateKeyDer<'static>, SettingsError> {
        PrivateKeyDer::from_pem_slice(&pem.0)
            .map_err(|_| self.error("contains no unencrypted PEM private key"))
    }

    /// Returns the error for a certificate and key that cannot be used together.
    pub(super) fn pair_error(&self, key: &Self, error: &Error) -> SettingsError {
        match error {
            Error::InconsistentKeys(_) => {
                key.error(format!("does not match the certificate in {}", self.path.display()))
            }
            Error::InvalidCertificate(problem) => {
                self.error(format!("invalid certificate: {problem}"))
            }
            error => key.error(format!("unusable key: {error}")),
        }
    }

    /// Returns an error that names the setting and the file.
    pub(super) fn error(&self, reason: impl fmt::Display) -> SettingsError {
        SettingsError::new(self.setting, format!("{}: {reason}", self.path.display()))
    }
}
