//! Why nothing could be decided.

use thiserror::Error;

use crate::plan::PlanError;
use crate::store::StoreError;

/// Why a limiter could not decide.
#[derive(Debug, Error)]
#[error(transparent)]
#[non_exhaustive]
pub enum LimiterError {
    /// The rules that match do not make a plan.
    Plan(#[from] PlanError),
    /// The store could not be asked.
    Store(#[from] StoreError),
}

impl LimiterError {
    /// Whether asking again later may succeed.
    #[must_use]
    pub const fn is_transient(&self) -> bool {
        match self {
            Self::Plan(error) => error.is_transient(),
            Self::Store(error) => error.is_transient(),
        }
    }
}
