//! Who may do what: tokens, sessions, and how often one may be wrong about them.

mod failures;
mod guard;
mod origin;
mod session;
mod tokens;

pub(crate) use guard::{Admission, Guard, Role};
pub(crate) use origin::{ensure_from_page, is_foreign};
pub(crate) use session::{Session, forgotten};
pub(crate) use tokens::{Fingerprint, Tokens};
