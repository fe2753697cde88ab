//! What other machines can reach, and whether anything protects it.

use std::fmt;
use std::net::SocketAddr;

use super::{SettingsError, TlsSettings, TokenSettings};

/// Where a service listens.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reachable<'a> {
    pub(super) http: SocketAddr,
    pub(super) admin: Option<SocketAddr>,
    pub(super) tls: Option<&'a TlsSettings>,
}

/// Paths that other machines reach, and whoever asks is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Unprotected {
    flag: &'static str,
    address: SocketAddr,
    paths: &'static str,
    token: &'static str,
}

impl Reachable<'_> {
    /// All such paths. What changes anything is not among them: it needs a token wherever it is.
    pub(super) fn unprotected(self, tokens: &TokenSettings) -> Vec<Unprotected> {
        // Whoever connects has proven who they are.
        if self.tls.is_some_and(TlsSettings::asks_clients) {
            return Vec::new();
        }
        let deciding = Unprotected {
            flag: "--http",
            address: self.http,
            paths: "/check and the other deciding paths",
            token: "TOLLGATE_CHECK_TOKEN",
        };
        let reading = Unprotected {
            flag: if self.admin.is_some() { "--admin" } else { "--http" },
            address: self.admin.unwrap_or(self.http),
            paths: "/api",
            token: "TOLLGATE_READ_TOKEN",
        };
        let all = [(deciding, tokens.check.is_none()), (reading, tokens.read.is_none())];
        let is_open = |one: &Unprotected| !one.address.ip().is_loopback();
        all.into_iter()
            .filter(|(one, is_free)| *is_free && is_open(one))
            .map(|(one, _)| one)
            .collect()
    }
}

impl Unprotected {
    /// Why it is not done unless it is said to be meant.
    pub(super) fn refused(&self) -> SettingsError {
        let reason = format!(
            "{self}; set {}, or listen on 127.0.0.1, or say --allow-unprotected if the network protects it",
            self.token
        );
        SettingsError::new(self.flag, reason)
    }
}

impl fmt::Display for Unprotected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { address, paths, .. } = self;
        write!(
            f,
            "{address} can be reached from other machines, and nothing protects {paths} there"
        )
    }
}
