//! Access control: tokens, sessions and the limit on failed attempts.

mod bearer;
mod credentials;
mod failures;
mod guard;
mod session;
mod tokens;

pub(crate) use bearer::{bearer, token_credentials};
pub use credentials::Credentials;
pub(crate) use credentials::PresentedToken;
pub use guard::Role;
pub(crate) use guard::{Admission, Guard};
pub(crate) use session::{SESSION_LIFETIME, Session};
pub(crate) use tokens::{Fingerprint, RoleTokens, Tokens};
