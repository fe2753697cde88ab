//! Valid and invalid certificates for tests.

use std::fs;
use std::path::{Path, PathBuf};

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, IsCa, Issuer, KeyPair,
    date_time_ymd,
};

use crate::watchdog::{Watchdog, scratch};

/// Certificate files of a trusted and an untrusted authority. They are deleted when this is dropped, and when the test
/// is killed. Servers read them only when they start.
#[derive(Debug)]
pub struct Certificates {
    /// The authority that clients and servers trust.
    pub ca: PathBuf,
    /// For `localhost` and 127.0.0.1.
    pub server: Identity,
    /// For a client.
    pub client: Identity,
    /// As `server`, but expired in 2001.
    pub expired: Identity,
    /// As `server`, but for `elsewhere.test`.
    pub other_name: Identity,
    /// As `server`, but signed by `other_ca`.
    pub stranger: Identity,
    /// An untrusted authority.
    pub other_ca: PathBuf,
    _files: Watchdog,
}

/// A certificate and its key, in PEM.
#[derive(Debug, Clone)]
pub struct Identity {
    /// The certificate.
    pub certificate: PathBuf,
    /// Its key.
    pub key: PathBuf,
}

impl Certificates {
    /// Creates all certificates.
    ///
    /// # Panics
    /// If a file cannot be write.
    pub fn new() -> Self {
        let dir = scratch();
        let trusted = Authority::new(&dir, "ca");
        let other = Authority::new(&dir, "other-ca");
        let local = || params_for(&["localhost", "127.0.0.1"]);
        let mut expired = local();
        expired.not_before = date_time_ymd(2000, 1, 1);
        expired.not_after = date_time_ymd(2001, 1, 1);
        Self {
            server: trusted.sign(&dir, "server", &local()),
            client: trusted.sign(&dir, "client", &params_for(&["client.test"])),
            expired: trusted.sign(&dir, "expired", &expired),
            other_name: trusted.sign(&dir, "other-name", &params_for(&["elsewhere.test"])),
            stranger: other.sign(&dir, "stranger", &local()),
            ca: trusted.path,
            other_ca: other.path,
            _files: Watchdog::new(dir, &[]),
        }
    }
}

impl Default for Certificates {
    fn default() -> Self {
        Self::new()
    }
}

struct Authority {
    issuer: Issuer<'static, KeyPair>,
    path: PathBuf,
}

impl Authority {
    fn new(dir: &Path, name: &str) -> Self {
        let mut params = params_for(&[]);
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = new_key();
        let certificate = params.self_signed(&key).expect("sign the authority");
        let path = write(dir, &format!("{name}.pem"), &certificate.pem());
        Self { issuer: Issuer::new(params, key), path }
    }

    fn sign(&self, dir: &Path, name: &str, params: &CertificateParams) -> Identity {
        let key = new_key();
        let certificate = params.signed_by(&key, &self.issuer).expect("sign the certificate");
        Identity {
            certificate: write(dir, &format!("{name}.pem"), &certificate.pem()),
            key: write(dir, &format!("{name}.key"), &key.serialize_pem()),
        }
    }
}

fn params_for(names: &[&str]) -> CertificateParams {
    let names = names.iter().copied().map(str::to_owned).collect::<Vec<_>>();
    let mut params = CertificateParams::new(names).expect("the names are valid");
    params.distinguished_name = DistinguishedName::new();
    params
}

fn new_key() -> KeyPair {
    KeyPair::generate().expect("generate a key")
}

fn write(dir: &Path, name: &str, pem: &str) -> PathBuf {
    let path = dir.join(name);
    fs::write(&path, pem).expect("write to the new directory");
    path
}
