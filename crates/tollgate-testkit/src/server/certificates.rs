//! Certificates for tests, good and bad.

use std::fs;
use std::path::{Path, PathBuf};

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, IsCa, Issuer, KeyPair,
    date_time_ymd,
};

use super::watchdog::{Keeper, scratch};

/// An authority, what it has signed, and what another has: files that are gone when this is dropped, and
/// when the test is killed. Servers read them only when they start.
#[derive(Debug)]
pub struct Certificates {
    /// The authority that clients and servers trust.
    pub ca: PathBuf,
    /// For `localhost` and 127.0.0.1.
    pub server: Identity,
    /// For a client.
    pub client: Identity,
    /// As `server`, but until the year 2001.
    pub expired: Identity,
    /// As `server`, but for `elsewhere.test`.
    pub other_name: Identity,
    /// As `server`, but signed by `other_ca`.
    pub stranger: Identity,
    /// An authority that nobody trusts.
    pub other_ca: PathBuf,
    _files: Keeper,
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
    /// Makes all of them.
    ///
    /// # Panics
    /// If they cannot be written.
    pub fn new() -> Self {
        let dir = scratch();
        let trusted = Authority::new(&dir, "ca");
        let other = Authority::new(&dir, "other-ca");
        let here = || named(&["localhost", "127.0.0.1"]);
        let mut past = here();
        past.not_before = date_time_ymd(2000, 1, 1);
        past.not_after = date_time_ymd(2001, 1, 1);
        Self {
            server: trusted.sign(&dir, "server", &here()),
            client: trusted.sign(&dir, "client", &named(&["client.test"])),
            expired: trusted.sign(&dir, "expired", &past),
            other_name: trusted.sign(&dir, "other-name", &named(&["elsewhere.test"])),
            stranger: other.sign(&dir, "stranger", &here()),
            ca: trusted.path,
            other_ca: other.path,
            _files: Keeper::new(dir, &[]),
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
        let mut params = named(&[]);
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = new_key();
        let certificate = params.self_signed(&key).expect("an authority signs itself");
        let path = written(dir, &format!("{name}.pem"), &certificate.pem());
        Self { issuer: Issuer::new(params, key), path }
    }

    fn sign(&self, dir: &Path, name: &str, params: &CertificateParams) -> Identity {
        let key = new_key();
        let certificate = params.signed_by(&key, &self.issuer).expect("an authority signs");
        Identity {
            certificate: written(dir, &format!("{name}.pem"), &certificate.pem()),
            key: written(dir, &format!("{name}.key"), &key.serialize_pem()),
        }
    }
}

fn named(names: &[&str]) -> CertificateParams {
    let names = names.iter().copied().map(str::to_owned).collect::<Vec<_>>();
    let mut params = CertificateParams::new(names).expect("these are names");
    params.distinguished_name = DistinguishedName::new();
    params
}

fn new_key() -> KeyPair {
    KeyPair::generate().expect("keys can be made")
}

fn written(dir: &Path, name: &str, pem: &str) -> PathBuf {
    let path = dir.join(name);
    fs::write(&path, pem).expect("a new directory can be written to");
    path
}
