//! TLS settings of a server.

use std::ffi::OsString;
use std::path::PathBuf;

use super::builder::Builder;
use super::certificates::{Certificates, Identity};

/// The certificate of a server, and the authority it trusts.
#[derive(Debug)]
pub(super) struct Tls {
    identity: Identity,
    ca: PathBuf,
    requires_client_certificate: bool,
}

impl Tls {
    pub(super) fn args(&self, port: u16) -> Vec<OsString> {
        let clients = if self.requires_client_certificate { "yes" } else { "no" };
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
    /// Adds a TLS port with the certificate for this machine; [`Server::url`](super::Server::url) then returns it. The
    /// plain port stays for the commands of tests.
    ///
    /// The Valkey that `scripts/servers` installs is built without TLS: its start panics with that reason.
    /// [`Flavor::WITH_TLS`](super::Flavor::WITH_TLS) lists the flavors with TLS.
    #[must_use]
    pub fn tls(self, certificates: &Certificates) -> Self {
        self.tls_as(certificates, &certificates.server)
    }

    /// As [`Builder::tls`], with another certificate.
    #[must_use]
    pub fn tls_as(mut self, certificates: &Certificates, identity: &Identity) -> Self {
        let (identity, ca) = (identity.clone(), certificates.ca.clone());
        self.tls = Some(Tls { identity, ca, requires_client_certificate: false });
        self
    }

    /// As [`Builder::tls`], but clients need a certificate of the same authority.
    #[must_use]
    pub fn mutual_tls(mut self, certificates: &Certificates) -> Self {
        let (identity, ca) = (certificates.server.clone(), certificates.ca.clone());
        self.tls = Some(Tls { identity, ca, requires_client_certificate: true });
        self
    }
}
