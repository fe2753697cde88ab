//! A server that speaks TLS too.

use std::ffi::OsString;
use std::path::PathBuf;

use super::builder::Builder;
use super::certificates::{Certificates, Identity};

/// What a server shows, and whom it believes.
#[derive(Debug)]
pub(super) struct Tls {
    identity: Identity,
    ca: PathBuf,
    asks_clients: bool,
}

impl Tls {
    pub(super) fn args(&self, port: u16) -> Vec<OsString> {
        let clients = if self.asks_clients { "yes" } else { "no" };
        vec![
            "--tls-port".into(),
            port.to_string().into(),
            "--tls-cert-file".into(),
            self.identity.certificate.clone().into(),
            "--tls-key-file".into(),
            self.identity.key.clone().into(),
            "--tls-ca-cert-file".into(),
            self.ca.clone().into(),
            "--tls-auth-clients".into(),
            clients.into(),
        ]
    }
}

impl Builder {
    /// On one more port, which [`Server::url`](super::Server::url) then names, with the certificate for
    /// this machine. The plain port stays for the test's own questions.
    ///
    /// The Valkey that `scripts/servers` installs was built without TLS: it does not start with this, and
    /// the panic says so. [`Flavor::WITH_TLS`](super::Flavor::WITH_TLS) are those that do.
    #[must_use]
    pub fn tls(self, certificates: &Certificates) -> Self {
        self.tls_as(certificates, &certificates.server)
    }

    /// As [`Builder::tls`], with another certificate.
    #[must_use]
    pub fn tls_as(mut self, certificates: &Certificates, identity: &Identity) -> Self {
        let (identity, ca) = (identity.clone(), certificates.ca.clone());
        self.tls = Some(Tls { identity, ca, asks_clients: false });
        self
    }

    /// As [`Builder::tls`], for clients only that have a certificate of the same authority.
    #[must_use]
    pub fn mutual_tls(mut self, certificates: &Certificates) -> Self {
        let (identity, ca) = (certificates.server.clone(), certificates.ca.clone());
        self.tls = Some(Tls { identity, ca, asks_clients: true });
        self
    }
}
