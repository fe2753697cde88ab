//! Errors of overrides.

use thiserror::Error;

/// An override is invalid, or cannot apply to a policy.
///
/// ```
/// use tollgate::{Override, OverrideErrorKind};
///
/// let error = Override::new(Vec::new()).unwrap_err();
/// assert_eq!(error.kind(), OverrideErrorKind::Limits);
/// assert_eq!(error.to_string(), "an override must have 1 to 8 limits, not 0");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{reason}")]
pub struct OverrideError {
    kind: OverrideErrorKind,
    reason: String,
}

/// The part of an override that an [`OverrideError`] is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum OverrideErrorKind {
    /// The limits as a whole.
    Limits,
    /// One limit.
    Limit {
        /// The index of the limit, from 0.
        index: usize,
    },
    /// The rule that it names.
    Rule,
    /// A stored text that is invalid or has an unsupported version.
    Text,
}

impl OverrideError {
    pub(super) fn new(kind: OverrideErrorKind, reason: impl Into<String>) -> Self {
        Self { kind, reason: reason.into() }
    }

    /// Returns the part of the override that is invalid.
    #[must_use]
    pub const fn kind(&self) -> OverrideErrorKind {
        self.kind
    }

    /// Always false: the same override fails again.
    #[must_use]
    pub const fn is_transient(&self) -> bool {
        false
    }
}
