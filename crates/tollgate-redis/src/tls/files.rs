//! The files that TLS needs, read.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{ClientConfig, Error, RootCertStore};

use crate::address::{ClientFiles, TlsFiles};

/// Reads all of them. Nothing is ever sent before the server is verified: early data, which could be
/// repeated by others, is off.
pub(super) fn connector(files: &TlsFiles) -> Result<TlsConnector, String> {
    // Explicitly this one: the program may have installed another for itself, or none.
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| format!("TLS cannot be used: {error}"))?
        .with_root_certificates(authorities(files.ca.as_deref())?);
    let config = match &files.client {
        None => builder.with_no_client_auth(),
        Some(client) => {
            let (certificates, key) = identity(client)?;
            builder
                .with_client_auth_cert(certificates, key)
                .map_err(|error| misfit(client, &error))?
        }
    };
    Ok(TlsConnector::from(Arc::new(config)))
}

/// Whom to trust.
fn authorities(ca: Option<&Path>) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    let Some(ca) = ca else {
        roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
        return Ok(roots);
    };
    for certificate in certificates("CA", ca)? {
        roots.add(certificate).map_err(|error| {
            format!("the CA file {} holds a certificate that is none: {error}", ca.display())
        })?;
    }
    Ok(roots)
}

/// Who we are.
fn identity(
    files: &ClientFiles,
) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), String> {
    let certificates = certificates("certificate", &files.certificate)?;
    let key = PrivateKeyDer::from_pem_slice(&read("key", &files.key)?).map_err(|_| {
        let key = files.key.display();
        format!("the key file {key} holds no private key in PEM form without a passphrase")
    })?;
    Ok((certificates, key))
}

fn misfit(files: &ClientFiles, error: &Error) -> String {
    let ClientFiles { certificate, key } = files;
    let (certificate, key) = (certificate.display(), key.display());
    match error {
        Error::InconsistentKeys(_) => {
            format!("the key file {key} is not for the certificate in {certificate}")
        }
        error => {
            format!("the key file {key} or the certificate file {certificate} is bad: {error}")
        }
    }
}

fn certificates(what: &str, path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let pem = read(what, path)?;
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem).collect();
    match certificates {
        Ok(certificates) if !certificates.is_empty() => Ok(certificates),
        _ => Err(format!("the {what} file {} holds no certificate in PEM form", path.display())),
    }
}

fn read(what: &str, path: &Path) -> Result<Vec<u8>, String> {
    fs::read(path)
        .map_err(|error| format!("the {what} file {} cannot be read: {error}", path.display()))
}
