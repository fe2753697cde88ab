//! Responses of `/release` and `/renew`.

use serde::Serialize;
use tollgate::Timestamp;

use super::time::rfc3339;
#[cfg(test)]
use crate::reference_tests::names;

/// Response of `/release`.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct ReleaseResponse {
    /// Whether the permit still held slots, or the reservation was open.
    pub(crate) released: bool,
}

/// Response of `/renew`.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct RenewResponse {
    /// Whether the permit still held slots, or the reservation was open.
    renewed: bool,
    /// The new expiry of the slots or the reservation.
    #[cfg_attr(test, schemars(with = "Option<names::Time>"))]
    expires_at: Option<String>,
}

impl RenewResponse {
    /// `expires_at` is the new expiry, or `None` if there was nothing to renew.
    pub(crate) fn new(expires_at: Option<Timestamp>) -> Self {
        Self { renewed: expires_at.is_some(), expires_at: expires_at.map(rfc3339) }
    }
}
