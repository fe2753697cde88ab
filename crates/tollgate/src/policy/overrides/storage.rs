//! Storage of overrides.

use std::future::Future;

use super::Override;
use crate::store::StoreError;
use crate::subject::Subject;

/// Stores overrides and makes them active in this process: in process, or in a Redis that several nodes share
/// (`tollgate_redis::OverrideFollower`).
pub trait OverrideStorage: Send + Sync {
    /// Stores overrides of a client; each replaces the client's override of the same rule. All of them are stored, or
    /// none. When it returns, the change is active in this process. `audit_entry` describes the change.
    fn set_overrides(
        &self,
        client: &Subject,
        overrides: &[Override],
        audit_entry: &str,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Removes the override of a client for `rule`, or all overrides of the client if `rule` is `None`. Returns whether
    /// there was one. When it returns, the change is active in this process.
    fn remove_overrides(
        &self,
        client: &Subject,
        rule: Option<&str>,
        audit_entry: &str,
    ) -> impl Future<Output = Result<bool, StoreError>> + Send;

    /// Appends an audit entry for a change that concerns no override, such as a reset.
    fn record_audit(
        &self,
        audit_entry: &str,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;
}
