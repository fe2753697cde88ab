//! Who may do what: tokens, and how often one may be wrong about them.

mod failures;
mod guard;
mod origin;
mod tokens;

pub(crate) use guard::{Guard, Role};
pub(crate) use origin::is_foreign;
pub(crate) use tokens::{Fingerprint, Tokens};
