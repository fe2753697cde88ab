//! The admin token and the limit on failed attempts.

use std::fmt;
use std::net::IpAddr;
use std::time::Duration;

use http::HeaderMap;
use http::header::AUTHORIZATION;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use thiserror::Error;
use tollgate::{Limit, LocalLimiter, Quota, rounding};

use super::problem::Problem;
use crate::address::ClientAddress;
use crate::facts::bearer_token;
use crate::header_value::single_value;

/// Minimum length of a token in characters.
const MIN_LENGTH: usize = 32;
/// Failed attempts per peer.
const MAX_FAILURES: Quota = Quota::per_minute(10);
/// Maximum number of peers whose failures are counted.
const MAX_PEERS: usize = 10_000;

/// The bearer token of the admin API: at least 32 printable ASCII characters, stored as its SHA-256.
///
/// ```
/// use tollgate_tower::admin::{AdminToken, AdminTokenError};
///
/// assert!(AdminToken::new("b5d0…").is_err());
/// assert_eq!(AdminToken::new("secret"), Err(AdminTokenError::TooShort { length: 6 }));
/// assert!(AdminToken::new(&"0123456789abcdef".repeat(2)).is_ok());
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct AdminToken([u8; 32]);

/// Why a text cannot be an admin token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum AdminTokenError {
    /// The token is too short to resist guessing.
    #[error(
        "the admin token has {length} characters; use at least {MIN_LENGTH}, for example from `openssl rand -hex 32`"
    )]
    TooShort {
        /// Length of the text in bytes.
        length: usize,
    },
    /// The token contains characters that cannot be sent in a header.
    #[error("the admin token must consist of printable ASCII characters without spaces")]
    NotPrintable,
}

impl fmt::Debug for AdminToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AdminToken({})", self.fingerprint())
    }
}

impl AdminToken {
    /// Creates the token from its text.
    ///
    /// # Errors
    /// The text has fewer than 32 characters, or others than printable ASCII characters.
    pub fn new(token: &str) -> Result<Self, AdminTokenError> {
        if !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(AdminTokenError::NotPrintable);
        }
        if token.len() < MIN_LENGTH {
            return Err(AdminTokenError::TooShort { length: token.len() });
        }
        Ok(Self(digest(token.as_bytes())))
    }

    /// Compares in constant time.
    fn matches(&self, presented: &[u8]) -> bool {
        self.0.ct_eq(&digest(presented)).into()
    }

    /// The first 8 hex digits of the digest, to name the token in audit entries.
    pub(super) fn fingerprint(&self) -> String {
        let [first, second, third, fourth, ..] = self.0;
        format!("{first:02x}{second:02x}{third:02x}{fourth:02x}")
    }
}

fn digest(token: &[u8]) -> [u8; 32] {
    Sha256::digest(token).into()
}

/// Checks tokens and limits failed attempts per peer.
#[derive(Debug)]
pub(super) struct Guard {
    pub(super) token: AdminToken,
    failures: LocalLimiter,
}

impl Guard {
    pub(super) fn new(token: AdminToken) -> Self {
        let limit = Limit::sliding_window(MAX_FAILURES).unwrap_or_else(|_| Limit::block());
        let failures = LocalLimiter::builder().limit(limit).max_keys(MAX_PEERS);
        #[expect(clippy::expect_used, reason = "a builder with one limit cannot fail")]
        let failures = failures.build().expect("one limit is valid");
        Self { token, failures }
    }

    /// Returns an error unless the request has the token. A peer with too many failures is refused even with the
    /// correct token. Without a known peer, failures are not limited.
    pub(super) fn check(&self, headers: &HeaderMap, peer: Option<IpAddr>) -> Result<(), Problem> {
        let peer = peer.map(ClientAddress::fact_value);
        if let Some(wait) = peer.as_ref().and_then(|peer| self.failures.peek(peer).retry_after()) {
            return Err(too_many_failures(wait));
        }
        let presented = single_value(headers, AUTHORIZATION).and_then(bearer_token);
        if presented.is_some_and(|presented| self.token.matches(presented)) {
            return Ok(());
        }
        if let Some(wait) = peer.as_ref().and_then(|peer| self.failures.take(peer).retry_after()) {
            return Err(too_many_failures(wait));
        }
        Err(Problem::unauthorized(match presented {
            Some(_) => "invalid admin token",
            None => "missing admin token; send Authorization: Bearer TOKEN",
        }))
    }
}

fn too_many_failures(wait: Duration) -> Problem {
    let seconds = rounding::seconds(wait).max(1);
    Problem::too_many(format!("too many failed attempts; retry in {seconds} s"), seconds)
}
