//! Access control: tokens, sessions, cross-site checks and the limit on failed attempts.

mod failures;
mod guard;
mod origin;
mod session;
mod tokens;

pub(crate) use guard::{Admission, Guard, Role};
pub(crate) use origin::{ensure_from_dashboard, is_cross_site};
pub(crate) use session::{Session, expired_cookie};
pub(crate) use tokens::{Fingerprint, Tokens};
