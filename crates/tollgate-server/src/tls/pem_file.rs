//! Files in PEM form, by the settings that name them.

use std::fmt;
use std::path::{Path, PathBuf};

use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{Error, RootCertStore};

use crate::bounded_read;
use crate::settings::SettingsError;

/// More than this is neither a key nor a list of authorities.
const MAX_BYTES: u64 = 4 << 20;

/// A file, and the setting that names it: what is wrong with the one is told by the other.
#[derive(Debug, Clone)]
pub(crate) struct PemFile {
    setting: &'static str,
    path: PathBuf,
}

/// What a file holds. That may be a private key, so it is never shown.
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
        bounded_read::read(&self.path, MAX_BYTES).map(Pem).map_err(|reason| self.wrong(reason))
    }

    /// The certificates in it, at least one.
    pub(super) fn certificates(
        &self,
        pem: &Pem,
    ) -> Result<Vec<CertificateDer<'static>>, SettingsError> {
        let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem.0).collect();
        match certificates {
            Ok(certificates) if !certificates.is_empty() => Ok(certificates),
            _ => Err(self.wrong("holds no certificate in PEM form")),
        }
    }

    /// The authorities in it, at least one.
    pub(super) fn authorities(&self, pem: &Pem) -> Result<RootCertStore, SettingsError> {
        let mut authorities = RootCertStore::empty();
        for certificate in self.certificates(pem)? {
            authorities.add(certificate).map_err(|error| {
                self.wrong(format!("holds a certificate that is none: {error}"))
            })?;
        }
        Ok(authorities)
    }

    /// The private key in it.
    pub(super) fn key(&self, pem: &Pem) -> Result<PrivateKeyDer<'static>, SettingsError> {
        PrivateKeyDer::from_pem_slice(&pem.0)
            .map_err(|_| self.wrong("holds no private key in PEM form without a passphrase"))
    }

    /// Why this certificate and that key make no pair.
    pub(super) fn misfit(&self, key: &Self, error: &Error) -> SettingsError {
        match error {
            Error::InconsistentKeys(_) => {
                key.wrong(format!("is not the key of the certificate in {}", self.path.display()))
            }
            Error::InvalidCertificate(problem) => {
                self.wrong(format!("holds a certificate that is none: {problem}"))
            }
            error => key.wrong(format!("cannot be used: {error}")),
        }
    }

    /// The file as an error names it.
    pub(super) fn wrong(&self, reason: impl fmt::Display) -> SettingsError {
        SettingsError::new(self.setting, format!("{}: {reason}", self.path.display()))
    }
}
