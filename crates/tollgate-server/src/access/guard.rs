//! Token and session checks of requests.

use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tollgate::rounding;
use tracing::warn;

use super::credentials::{Credentials, PresentedToken};
use super::failures::{Failure, Failures};
use super::session::{self, Session, SessionState};
use super::tokens::{Fingerprint, RoleTokens, Tokens};
use crate::error::{ApiError, ApiErrorKind};

/// The role of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Decision calls.
    Check,
    /// The read API.
    Read,
    /// The admin API, and the read API.
    Admin,
}

impl Role {
    pub(crate) const ALL: [Self; 3] = [Self::Check, Self::Read, Self::Admin];

    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Check => "check",
            Self::Read => "read",
            Self::Admin => "admin",
        }
    }
}

/// How a request was authenticated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Admission {
    /// Not at all: no token is configured for the role.
    Open,
    /// By a bearer token.
    Token(Fingerprint),
    /// By a session cookie, which browsers send automatically.
    Session(Session),
}

impl Admission {
    /// Returns the token of the request or of its session.
    pub(crate) const fn token(self) -> Option<Fingerprint> {
        match self {
            Self::Open => None,
            Self::Token(token) => Some(token),
            Self::Session(session) => Some(session.token),
        }
    }
}

/// Checks requests against the configured tokens.
#[derive(Debug)]
pub(crate) struct Guard {
    tokens: RoleTokens,
    failures: Failures,
    failure_counts: [AtomicU64; Role::ALL.len()],
}

impl Guard {
    pub(crate) fn new(tokens: RoleTokens) -> Self {
        Self { tokens, failures: Failures::new(), failure_counts: Default::default() }
    }

    /// Returns whether the admin API is enabled.
    pub(crate) const fn has_admin(&self) -> bool {
        self.tokens.admin.is_some()
    }

    /// Returns the number of requests with a missing or invalid token.
    pub(crate) fn failed(&self, role: Role) -> u64 {
        self.failure_count(role).load(Ordering::Relaxed)
    }

    /// Returns whether login is enabled: a read or admin token is configured.
    pub(crate) const fn has_login(&self) -> bool {
        self.tokens.admin.is_some() || self.tokens.read.is_some()
    }

    /// Starts a session for a valid read or admin token. Returns the session and its signed text.
    pub(crate) fn log_in(&self, token: &str, peer: IpAddr) -> Result<(Session, String), ApiError> {
        if let Some(wait) = self.failures.retry_after(Role::Admin, peer) {
            return Err(too_many(wait));
        }
        let roles = [Role::Admin, Role::Read].into_iter();
        let mut configured = roles.filter_map(|role| Some((role, self.tokens_of(role)?)));
        let login = configured.find_map(|(role, tokens)| {
            let session = Session::begin(role, tokens.find(token.as_bytes())?);
            Some((session, session.signed(tokens)?))
        });
        login.ok_or_else(|| {
            self.fail(Role::Admin, peer, "invalid token; log in with the read or admin token")
        })
    }

    /// Returns the session of a request, if it is valid.
    pub(crate) fn session(&self, credentials: &Credentials<'_>) -> Option<Session> {
        match session::session_state(&credentials.sessions, |role| self.tokens_of(role)) {
            SessionState::Valid(session) => Some(session),
            SessionState::Absent | SessionState::Invalid => None,
        }
    }

    /// Returns whether the role needs no token.
    pub(crate) const fn is_open(&self, role: Role) -> bool {
        self.tokens_of(role).is_none()
    }

    /// Authenticates a request for a role.
    ///
    /// After too many wrong tokens for the admin role, an address is refused for a while even with a valid token.
    /// Check and read tokens belong to programs, many of them behind one address, so a valid one is always accepted.
    #[inline]
    pub(crate) fn admit(
        &self,
        role: Role,
        credentials: &Credentials<'_>,
        peer: IpAddr,
    ) -> Result<Admission, ApiError> {
        let Some(tokens) = self.tokens_of(role) else { return Ok(Admission::Open) };
        self.authenticate(role, tokens, credentials, peer)
    }

    fn authenticate(
        &self,
        role: Role,
        tokens: &Tokens,
        credentials: &Credentials<'_>,
        peer: IpAddr,
    ) -> Result<Admission, ApiError> {
        // Decision calls have no sessions, and a token takes precedence over a cookie.
        if role != Role::Check && credentials.token == PresentedToken::Absent {
            match session::session_state(&credentials.sessions, |role| self.tokens_of(role)) {
                SessionState::Valid(session) if session.permits(role) => {
                    return Ok(Admission::Session(session));
                }
                SessionState::Valid(_) => return Err(session_lacks(role)),
                // An old cookie is not an attempt to guess a token, so it does not count as a failure.
                SessionState::Invalid => return Err(session_expired()),
                SessionState::Absent => {}
            }
        }
        if role == Role::Admin
            && let Some(wait) = self.failures.retry_after(role, peer)
        {
            return Err(too_many(wait));
        }
        let presented = credentials.token.bytes();
        // The admin token also permits reading, unless the address has failed too often: the read API must not be a
        // way to go on guessing the admin token.
        let is_below_limit = || {
            let roles = [Role::Read, Role::Admin];
            roles.iter().all(|role| self.failures.retry_after(*role, peer).is_none())
        };
        let admin = self.tokens.admin.as_ref().filter(|_| role == Role::Read && is_below_limit());
        let found = presented.and_then(|token| {
            tokens.find(token).or_else(|| admin.and_then(|tokens| tokens.find(token)))
        });
        if let Some(token) = found {
            return Ok(Admission::Token(token));
        }
        let name = role.as_str();
        Err(match presented {
            Some(_) => self.fail(role, peer, &format!("invalid token; send the {name} token")),
            None => self.fail_as(
                Failure::Missing,
                role,
                peer,
                &format!("missing token; send the {name} token"),
            ),
        })
    }

    /// Records an invalid token and returns its error.
    fn fail(&self, role: Role, peer: IpAddr, detail: &str) -> ApiError {
        self.fail_as(Failure::Wrong, role, peer, detail)
    }

    /// Records a failure and returns its error, or one about too many failures.
    fn fail_as(&self, failure: Failure, role: Role, peer: IpAddr, detail: &str) -> ApiError {
        self.failure_count(role).fetch_add(1, Ordering::Relaxed);
        if let Some(wait) = self.failures.record(failure, role, peer) {
            return too_many(wait);
        }
        let kind = match failure {
            Failure::Missing => ApiErrorKind::TokenMissing,
            Failure::Wrong => ApiErrorKind::Unauthorized,
        };
        if self.failures.take_log_line(role) {
            let reason = failure.as_str();
            warn!(%peer, token = role.as_str(), reason, "missing or invalid token");
        }
        ApiError::new(kind, detail)
    }

    /// Returns the configured tokens of a role; `None` if it needs none.
    const fn tokens_of(&self, role: Role) -> Option<&Tokens> {
        match role {
            Role::Check => self.tokens.check.as_ref(),
            Role::Read => self.tokens.read.as_ref(),
            Role::Admin => self.tokens.admin.as_ref(),
        }
    }

    const fn failure_count(&self, role: Role) -> &AtomicU64 {
        let [check, read, admin] = &self.failure_counts;
        match role {
            Role::Check => check,
            Role::Read => read,
            Role::Admin => admin,
        }
    }
}

fn session_lacks(role: Role) -> ApiError {
    let role = role.as_str();
    let detail = format!("the session does not have the {role} role; log in with the {role} token");
    ApiError::new(ApiErrorKind::Unauthorized, detail)
}

fn session_expired() -> ApiError {
    ApiError::new(ApiErrorKind::Unauthorized, "the session is expired or invalid; log in again")
}

fn too_many(wait: Duration) -> ApiError {
    let seconds = rounding::seconds(wait).max(1);
    let detail = format!("too many failed attempts from your address; retry in {seconds} s");
    ApiError::new(ApiErrorKind::TooMany, detail).retry_after(seconds)
}
