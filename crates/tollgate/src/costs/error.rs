//! Errors of costs.

use thiserror::Error;

use super::MAX_UNITS;
use crate::quota::QuotaError;
use crate::unit::Unit;

/// Reason why amounts by unit are not valid costs.
///
/// ```
/// use tollgate::{Costs, CostsErrorKind};
///
/// let error = Costs::of([("input tokens", 5)]).unwrap_err();
/// assert_eq!(error.kind(), CostsErrorKind::Unit);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{reason}")]
pub struct CostsError {
    kind: CostsErrorKind,
    reason: String,
}

/// The kind of a [`CostsError`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum CostsErrorKind {
    /// A name does not match `[A-Za-z0-9._-]{1,64}`.
    Unit,
    /// A unit occurs twice.
    Duplicate,
    /// More than [`MAX_UNITS`] units.
    TooMany,
}

impl CostsError {
    pub(super) fn unit(error: &QuotaError) -> Self {
        Self { kind: CostsErrorKind::Unit, reason: error.to_string() }
    }

    pub(super) fn duplicate(unit: &Unit) -> Self {
        let reason = format!("the costs name the unit {:?} twice", unit.as_str());
        Self { kind: CostsErrorKind::Duplicate, reason }
    }

    pub(super) fn too_many() -> Self {
        let reason = format!("a request can have costs in at most {MAX_UNITS} units");
        Self { kind: CostsErrorKind::TooMany, reason }
    }

    /// Returns the kind of the error.
    #[must_use]
    pub const fn kind(&self) -> CostsErrorKind {
        self.kind
    }

    /// Always false: the same amounts fail again.
    #[must_use]
    pub const fn is_transient(&self) -> bool {
        false
    }
}
