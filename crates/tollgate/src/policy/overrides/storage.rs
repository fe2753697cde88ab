//! Storage of overrides.

use std::future::Future;

use super::Override;
use crate::store::StoreError;
use crate::subject::Subject;

/// Stores overrides and makes them active in this process: in process, or in a Redis that several nodes share
/// (`tollgate_redis::OverrideFollower`).
pub trait OverrideStorage: Send + Sync {
    /// Stores the override of a client, or removes it with `None`. Returns whether the client had one before. When it
    /// returns, the change is active in this process. `audit_entry` describes the change.
    fn set_override(
        &self,
        client: &Subject,
        new_override: Option<&Override>,
        audit_entry: &str,
    ) -> impl Future<Output = Result<bool, StoreError>> + Send;

    /// Appends an audit entry for a change that concerns no override, such as a reset.
    fn record_audit(
        &self,
        audit_entry: &str,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;
}
