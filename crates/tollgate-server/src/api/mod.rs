//! Operations on the service that are not decisions: what operators read and what administrators change.

pub(crate) mod admin;
pub(crate) mod read;
