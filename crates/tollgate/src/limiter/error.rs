//! Errors of a limiter.

use thiserror::Error;

use crate::plan::PlanError;
use crate::store::StoreError;

/// A limiter could not decide.
#[derive(Debug, Error)]
#[error(transparent)]
#[non_exhaustive]
pub enum LimiterError {
    /// The matching rules cannot form a plan.
    Plan(#[from] PlanError),
    /// The store failed.
    Store(#[from] StoreError),
}

impl LimiterError {
    /// Returns whether a later call may succeed.
    #[must_use]
    pub const fn is_transient(&self) -> bool {
        match self {
            Self::Plan(error) => error.is_transient(),
            Self::Store(error) => error.is_transient(),
        }
    }
}
