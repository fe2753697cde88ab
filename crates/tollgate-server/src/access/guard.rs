//! The guard: who may come in where.

use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use hyper::header::{AUTHORIZATION, HeaderMap};
use tollgate::rounding;

use super::failures::Failures;
use super::session::{self, Session, Shown};
use super::tokens::{Fingerprint, Tokens};
use crate::error::{ApiError, ApiErrorKind};
use crate::settings::TokenSettings;

/// What a token is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// Deciding.
    Check,
    /// Looking at what is configured and counted.
    Read,
    /// Changing it.
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

/// By what a request was let in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Admission {
    /// By nothing: everyone may.
    Open,
    /// By a token that came with it.
    Token(Fingerprint),
    /// By a cookie, which a browser sends by itself.
    Session(Session),
}

impl Admission {
    /// The token behind it.
    pub(crate) const fn token(self) -> Option<Fingerprint> {
        match self {
            Self::Open => None,
            Self::Token(token) => Some(token),
            Self::Session(session) => Some(session.token),
        }
    }
}

/// Holds tokens against those that are valid.
#[derive(Debug)]
pub(crate) struct Guard {
    tokens: TokenSettings,
    failures: Failures,
    failed: [AtomicU64; Role::ALL.len()],
}

impl Guard {
    pub(crate) fn new(tokens: TokenSettings) -> Self {
        Self { tokens, failures: Failures::new(), failed: Default::default() }
    }

    /// Whether there is anything for administrators here.
    pub(crate) const fn has_admin(&self) -> bool {
        self.tokens.admin.is_some()
    }

    /// How often a token was missing or wrong.
    pub(crate) fn failed(&self, role: Role) -> u64 {
        self.failed_of(role).load(Ordering::Relaxed)
    }

    /// Whether there is any token to log in with.
    pub(crate) const fn has_login(&self) -> bool {
        self.tokens.admin.is_some() || self.tokens.read.is_some()
    }

    /// Begins a session of who shows a token for reading or for changing, and makes the cookie for it.
    pub(crate) fn log_in(&self, token: &str, peer: IpAddr) -> Result<(Session, String), ApiError> {
        if let Some(wait) = self.failures.wait(Role::Admin, peer) {
            return Err(too_many(wait));
        }
        let roles = [Role::Admin, Role::Read].into_iter();
        let mut valid = roles.filter_map(|role| Some((role, self.valid(role)?)));
        let begun = valid.find_map(|(role, tokens)| {
            let session = Session::begin(role, tokens.find(token.as_bytes())?);
            Some((session, session.cookie(tokens)?))
        });
        begun.ok_or_else(|| self.fail(Role::Admin, peer, "the token is not valid here"))
    }

    /// The session that a request comes with, if it is still good.
    pub(crate) fn session(&self, headers: &HeaderMap) -> Option<Session> {
        match session::shown(headers, |role| self.valid(role)) {
            Shown::Valid(session) => Some(session),
            Shown::Nothing | Shown::Invalid => None,
        }
    }

    /// Whether everyone may do this.
    pub(crate) const fn is_open(&self, role: Role) -> bool {
        self.valid(role).is_none()
    }

    /// Lets the request in, and tells by what.
    ///
    /// Who guesses at what only administrators may do is not listened to for a while, even if right at last. The
    /// other tokens are programs', many behind one address: a right one always passes.
    #[inline]
    pub(crate) fn admit(
        &self,
        role: Role,
        headers: &HeaderMap,
        peer: IpAddr,
    ) -> Result<Admission, ApiError> {
        let Some(valid) = self.valid(role) else { return Ok(Admission::Open) };
        self.hold(role, valid, headers, peer)
    }

    fn hold(
        &self,
        role: Role,
        valid: &Tokens,
        headers: &HeaderMap,
        peer: IpAddr,
    ) -> Result<Admission, ApiError> {
        // Programs that ask for decisions have no sessions, and a cookie beside a token is not looked at.
        if role != Role::Check && !headers.contains_key(AUTHORIZATION) {
            match session::shown(headers, |role| self.valid(role)) {
                Shown::Valid(session) if session.may(role) => {
                    return Ok(Admission::Session(session));
                }
                Shown::Valid(_) => return Err(lacking(role)),
                // A browser that still has it has guessed nothing.
                Shown::Invalid => return Err(ended()),
                Shown::Nothing => {}
            }
        }
        if role == Role::Admin
            && let Some(wait) = self.failures.wait(role, peer)
        {
            return Err(too_many(wait));
        }
        let presented = bearer(headers);
        // Who may change things may look at them. But whoever has been wrong too often here must not go on
        // guessing at that token either.
        let may_guess = || {
            [Role::Read, Role::Admin].iter().all(|role| self.failures.wait(*role, peer).is_none())
        };
        let also = self.tokens.admin.as_ref().filter(|_| role == Role::Read && may_guess());
        let found = presented.and_then(|token| {
            valid.find(token).or_else(|| also.and_then(|tokens| tokens.find(token)))
        });
        match found {
            Some(token) => Ok(Admission::Token(token)),
            None => Err(self.fail(role, peer, &wanted(role, presented))),
        }
    }

    /// Notes a failure, and tells of it.
    fn fail(&self, role: Role, peer: IpAddr, detail: &str) -> ApiError {
        self.failed_of(role).fetch_add(1, Ordering::Relaxed);
        match self.failures.note(role, peer) {
            Some(wait) => too_many(wait),
            None => ApiError::new(ApiErrorKind::Unauthorized, detail),
        }
    }

    /// The tokens that let in; none if everyone may.
    const fn valid(&self, role: Role) -> Option<&Tokens> {
        match role {
            Role::Check => self.tokens.check.as_ref(),
            Role::Read => self.tokens.read.as_ref(),
            Role::Admin => self.tokens.admin.as_ref(),
        }
    }

    const fn failed_of(&self, role: Role) -> &AtomicU64 {
        let [check, read, admin] = &self.failed;
        match role {
            Role::Check => check,
            Role::Read => read,
            Role::Admin => admin,
        }
    }
}

fn lacking(role: Role) -> ApiError {
    let detail = format!("you are logged in, but not with the {} token", role.as_str());
    ApiError::new(ApiErrorKind::Unauthorized, detail)
}

fn ended() -> ApiError {
    ApiError::new(ApiErrorKind::Unauthorized, "your session has ended; log in again")
}

fn too_many(wait: Duration) -> ApiError {
    let seconds = rounding::seconds(wait).max(1);
    let detail = format!("too many wrong tokens came from your address; wait {seconds} s");
    ApiError::new(ApiErrorKind::TooMany, detail).retry_after(seconds)
}

fn wanted(role: Role, presented: Option<&[u8]>) -> String {
    let what = match presented {
        Some(_) => "the token is not valid here",
        None => "a token is wanted: Authorization: Bearer …",
    };
    format!("{what} (the {} token)", role.as_str())
}

/// The token of the one `Authorization` header; of two nobody knows which is meant.
fn bearer(headers: &HeaderMap) -> Option<&[u8]> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let (Some(value), None) = (values.next(), values.next()) else { return None };
    let (scheme, token) = value.as_bytes().split_at_checked("Bearer ".len())?;
    scheme.eq_ignore_ascii_case(b"Bearer ").then(|| token.trim_ascii())
}
