//! What becomes of a permit.

use serde::Serialize;
use tollgate::Timestamp;

use super::time::rfc3339;

/// The answer to a release.
#[derive(Debug, Serialize)]
pub(crate) struct Released {
    /// Whether anything was still held.
    pub(crate) released: bool,
}

/// The answer to a renewal.
#[derive(Debug, Serialize)]
pub(crate) struct Renewed {
    renewed: bool,
    expires_at: Option<String>,
}

impl Renewed {
    /// Held until then; or no longer, and nothing was renewed.
    pub(crate) fn until(until: Option<Timestamp>) -> Self {
        Self { renewed: until.is_some(), expires_at: until.map(rfc3339) }
    }
}
