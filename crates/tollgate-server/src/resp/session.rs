//! The state of a connection: its roles, its protocol version and the names that its client has set.

use std::net::SocketAddr;
use std::time::Instant;

use super::decode::Bounds;
use super::error_reply::ErrorReply;
use crate::access::{Admission, Credentials, Fingerprint, PresentedToken, Role};
use crate::api::Service;
use crate::error::ApiErrorKind;

/// The user of the check token.
const DEFAULT_USER: &[u8] = b"default";
/// The user of the admin token.
const ADMIN_USER: &[u8] = b"admin";

const WRONG_PASSWORD: ErrorReply =
    ErrorReply::fixed("WRONGPASS invalid username-password pair or user is disabled.");
const NO_PASSWORD: ErrorReply = ErrorReply::fixed(
    "ERR AUTH <password> called without any password configured for the default user. \
     Are you sure your configuration is correct?",
);

/// The state of a connection.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) id: u64,
    pub(super) peer: SocketAddr,
    pub(super) opened: Instant,
    /// Set by `CLIENT SETNAME` and `HELLO … SETNAME`.
    pub(super) name: String,
    /// Set by `CLIENT SETINFO LIB-NAME`.
    pub(super) library: String,
    /// Set by `CLIENT SETINFO LIB-VER`.
    pub(super) library_version: String,
    access: Access,
}

/// What the client may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Access {
    /// Authenticate.
    Unauthenticated,
    /// Decide: the check token, or no token is required.
    Check,
    /// Decide and reset: the admin token, with its fingerprint for the audit log.
    Admin(Fingerprint),
}

impl Session {
    pub(super) fn new(service: &Service, id: u64, peer: SocketAddr) -> Self {
        Self {
            id,
            peer,
            opened: Instant::now(),
            name: String::new(),
            library: String::new(),
            library_version: String::new(),
            access: Access::initial(service),
        }
    }

    /// Returns to the state of a new connection, as the command RESET does.
    pub(super) fn reset(&mut self, service: &Service) {
        self.access = Access::initial(service);
        self.name.clear();
    }

    /// Returns whether the client may decide.
    pub(super) fn is_authenticated(&self) -> bool {
        self.access != Access::Unauthenticated
    }

    /// Returns the admin token of the client, if it has authenticated with one.
    pub(super) const fn admin_token(&self) -> Option<Fingerprint> {
        match self.access {
            Access::Admin(token) => Some(token),
            Access::Check | Access::Unauthenticated => None,
        }
    }

    /// Returns the name of the user, as CLIENT INFO shows it.
    pub(super) const fn user(&self) -> &'static str {
        match self.access {
            Access::Unauthenticated | Access::Check => "default",
            Access::Admin(_) => "admin",
        }
    }

    /// Returns the bounds of the next command.
    pub(super) fn bounds(&self) -> &'static Bounds {
        if self.is_authenticated() { &Bounds::AUTHENTICATED } else { &Bounds::UNAUTHENTICATED }
    }

    /// Counts a command without authentication as a failed attempt of its peer.
    pub(super) fn note_unauthenticated(&self, service: &Service) {
        let _ = service.authenticate(Role::Check, &Credentials::none(), self.peer.ip());
    }

    /// Authenticates a user; `None` is the default user. A failure does not change the access of the client.
    pub(super) fn authenticate(
        &mut self,
        service: &Service,
        user: Option<&[u8]>,
        token: &[u8],
    ) -> Result<(), ErrorReply> {
        if user.is_none() && service.is_open(Role::Check) {
            return Err(NO_PASSWORD);
        }
        let user = user.unwrap_or(DEFAULT_USER);
        let (role, token) = match user {
            DEFAULT_USER => (Role::Check, PresentedToken::Token(token)),
            ADMIN_USER if !service.is_open(Role::Admin) => {
                (Role::Admin, PresentedToken::Token(token))
            }
            // An unknown user fails whatever its token is, and counts as a failed attempt.
            _ => (Role::Check, PresentedToken::Malformed),
        };
        let is_unknown = token == PresentedToken::Malformed;
        let credentials = Credentials { token, sessions: Vec::new() };
        let admission = service.guard().admit(role, &credentials, self.peer.ip());
        self.access = match (admission, role) {
            (Err(error), _) if error.kind() == ApiErrorKind::TooMany => return Err(error.into()),
            (Ok(Admission::Token(token)), Role::Admin) => Access::Admin(token),
            (Ok(_), Role::Check) if !is_unknown => Access::Check,
            _ => return Err(WRONG_PASSWORD),
        };
        Ok(())
    }
}

impl Access {
    fn initial(service: &Service) -> Self {
        if service.is_open(Role::Check) { Self::Check } else { Self::Unauthenticated }
    }
}
