//! Calls about held concurrency slots: release and renew.

use tollgate::{Permit, Timestamp};

use super::service::Service;
use crate::error::ApiError;

impl Service {
    /// Releases concurrency slots before they expire. Returns whether the permit still held slots.
    ///
    /// # Errors
    ///
    /// `Unavailable` if the store cannot be reached.
    pub async fn release(&self, permit: &Permit) -> Result<bool, ApiError> {
        self.node().limiter().release(permit).await.map_err(|error| (&error).into())
    }

    /// Extends concurrency slots by their full lifetime from now. Returns the new expiry; `None` if the permit held no
    /// slots.
    ///
    /// # Errors
    ///
    /// `Unavailable` if the store cannot be reached.
    pub async fn renew(&self, permit: &Permit) -> Result<Option<Timestamp>, ApiError> {
        self.node().limiter().renew(permit).await.map_err(|error| (&error).into())
    }
}
