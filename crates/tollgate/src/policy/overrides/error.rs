//! Why an override cannot be.

use thiserror::Error;

/// Why an override cannot be, or cannot be in force under a policy.
///
/// ```
/// use tollgate::{Override, OverrideErrorKind};
///
/// let error = Override::new(Vec::new()).unwrap_err();
/// assert_eq!(error.kind(), OverrideErrorKind::Limits);
/// assert_eq!(error.to_string(), "1 to 8 limits are wanted, not 0");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{reason}")]
pub struct OverrideError {
    kind: OverrideErrorKind,
    reason: String,
}

/// What an [`OverrideError`] is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum OverrideErrorKind {
    /// All of its limits together.
    Limits,
    /// One of them.
    Limit {
        /// Which, from 0.
        place: usize,
    },
    /// The rule it names.
    Rule,
    /// A stored text that is none, or of a later version.
    Text,
}

impl OverrideError {
    pub(super) fn new(kind: OverrideErrorKind, reason: impl Into<String>) -> Self {
        Self { kind, reason: reason.into() }
    }

    /// What it is about.
    #[must_use]
    pub const fn kind(&self) -> OverrideErrorKind {
        self.kind
    }

    /// Always false: the same override will be wrong again.
    #[must_use]
    pub const fn is_transient(&self) -> bool {
        false
    }
}
