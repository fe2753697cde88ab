//! Detection of listeners that other machines can reach without authentication.

use std::fmt;
use std::net::SocketAddr;

use super::TlsSettings;
use crate::access::RoleTokens;
use crate::error::SettingsError;

/// Listeners of a service.
#[derive(Debug, Clone, Copy)]
pub(super) struct Listeners<'a> {
    pub(super) http: SocketAddr,
    pub(super) admin: Option<SocketAddr>,
    pub(super) tls: Option<&'a TlsSettings>,
    /// Front ends for decisions, by the setting of their address.
    pub(super) front_ends: &'a [(&'a str, SocketAddr)],
}

/// Paths that other machines can reach without a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Unprotected<'a> {
    flag: &'a str,
    address: SocketAddr,
    paths: &'static str,
    token: &'static str,
}

impl<'a> Listeners<'a> {
    /// Returns all such paths. Admin paths are never among them, because they always require a token.
    pub(super) fn unprotected(self, tokens: &RoleTokens) -> Vec<Unprotected<'a>> {
        // Every client has authenticated itself with a certificate.
        if self.tls.is_some_and(TlsSettings::requires_client_certificate) {
            return Vec::new();
        }
        let deciding = Unprotected {
            flag: "--http",
            address: self.http,
            paths: "/check and the other decision endpoints",
            token: "TOLLGATE_CHECK_TOKEN",
        };
        let reading = Unprotected {
            flag: if self.admin.is_some() { "--admin" } else { "--http" },
            address: self.admin.unwrap_or(self.http),
            paths: "/api",
            token: "TOLLGATE_READ_TOKEN",
        };
        let further = self.front_ends.iter().map(|(flag, address)| {
            let paths = "decisions";
            (Unprotected { flag, address: *address, paths, ..deciding }, tokens.check.is_none())
        });
        let candidates = [(deciding, tokens.check.is_none()), (reading, tokens.read.is_none())];
        let is_remote = |paths: &Unprotected<'_>| !paths.address.ip().is_loopback();
        candidates
            .into_iter()
            .chain(further)
            .filter(|(paths, has_no_token)| *has_no_token && is_remote(paths))
            .map(|(paths, _)| paths)
            .collect()
    }
}

impl Unprotected<'_> {
    /// Returns the error without `--allow-unprotected`.
    pub(super) fn error(&self) -> SettingsError {
        let reason = format!(
            "{self}; set {}, listen on 127.0.0.1, or pass --allow-unprotected if the network restricts access",
            self.token
        );
        SettingsError::new(self.flag, reason)
    }
}

impl fmt::Display for Unprotected<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { address, paths, .. } = self;
        write!(f, "{address} is reachable from other machines, without a token for {paths}")
    }
}
