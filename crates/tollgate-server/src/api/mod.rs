//! Operations that are not decisions: the read API for operators and the admin API.

pub(crate) mod admin;
pub(crate) mod read;
