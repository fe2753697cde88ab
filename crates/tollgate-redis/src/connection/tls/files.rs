//! The certificate and key files of TLS.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{ClientConfig, Error, RootCertStore};

use crate::address::{ClientFiles, TlsFiles};

/// Reads all files. Early data is off, because an attacker could replay it: nothing is sent before the server
/// is verified.
pub(super) fn connector(files: &TlsFiles) -> Result<TlsConnector, String> {
    // Explicit, because the process default may be another provider, or none.
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
                .map_err(|error| identity_error(client, &error))?
        }
    };
    Ok(TlsConnector::from(Arc::new(config)))
}

/// Reads the trusted certificate authorities.
fn authorities(ca: Option<&Path>) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    let Some(ca) = ca else {
        roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
        return Ok(roots);
    };
    for certificate in certificates("CA", ca)? {
        roots.add(certificate).map_err(|error| {
            format!("the CA file {} contains an invalid certificate: {error}", ca.display())
        })?;
    }
    Ok(roots)
}

/// Reads the client certificate and its key.
fn identity(
    files: &ClientFiles,
) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), String> {
    let certificates = certificates("certificate", &files.certificate)?;
    let key = PrivateKeyDer::from_pem_slice(&read("key", &files.key)?).map_err(|_| {
        let key = files.key.display();
        format!("the key file {key} contains no private key in PEM format without a passphrase")
    })?;
    Ok((certificates, key))
}

fn identity_error(files: &ClientFiles, error: &Error) -> String {
    let ClientFiles { certificate, key } = files;
    let (certificate, key) = (certificate.display(), key.display());
    match error {
        Error::InconsistentKeys(_) => {
            format!("the key file {key} does not match the certificate in {certificate}")
        }
        error => {
            format!("the key file {key} or the certificate file {certificate} is invalid: {error}")
        }
    }
}

fn certificates(kind: &str, path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let pem = read(kind, path)?;
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem).collect();
    match certificates {
        Ok(certificates) if !certificates.is_empty() => Ok(certificates),
        _ => {
            Err(format!("the {kind} file {} contains no certificate in PEM format", path.display()))
        }
    }
}

fn read(kind: &str, path: &Path) -> Result<Vec<u8>, String> {
    fs::read(path)
        .map_err(|error| format!("the {kind} file {} cannot be read: {error}", path.display()))
}
