//! Errors of quotas, limits and names.

use std::fmt;

use thiserror::Error;

/// Reason why numbers or names do not make a valid limit.
///
/// The message names the field and the valid values.
///
/// ```
/// use tollgate::{Quota, QuotaErrorKind};
/// use std::time::Duration;
///
/// let error = Quota::try_new(0, Duration::from_secs(60)).unwrap_err();
/// assert_eq!(error.kind(), QuotaErrorKind::Count);
/// assert_eq!(error.to_string(), "count must be at least 1 (use Limit::block to refuse everything)");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{reason}")]
pub struct QuotaError {
    kind: QuotaErrorKind,
    reason: Reason,
}

/// Field that a [`QuotaError`] is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum QuotaErrorKind {
    /// The count is 0 or above the maximum of the algorithm.
    Count,
    /// The period (for slots, the TTL) is zero, too long, or not in whole microseconds.
    Period,
    /// The burst is 0, too large, or set for an algorithm without a burst.
    Burst,
    /// Each number is valid, but their combination exceeds integers below 2^53.
    Precision,
    /// A name is empty, too long, a duplicate, or has a character outside `[A-Za-z0-9._-]`.
    Name,
    /// The name of a unit is invalid, or the limit counts slots or nothing, so that it has no unit.
    Unit,
    /// The time zone is not in the IANA database.
    TimeZone,
    /// The text is not a rate such as `10/min`.
    Rate,
    /// There is no limit, or there are too many.
    Limits,
}

/// Error message: constant in `const` checks, formatted where it quotes the input.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Reason {
    Fixed(&'static str),
    Built(String),
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(text) => f.write_str(text),
            Self::Built(text) => f.write_str(text),
        }
    }
}

impl QuotaError {
    pub(crate) const fn fixed(kind: QuotaErrorKind, text: &'static str) -> Self {
        Self { kind, reason: Reason::Fixed(text) }
    }

    pub(crate) fn built(kind: QuotaErrorKind, text: String) -> Self {
        Self { kind, reason: Reason::Built(text) }
    }

    /// Field that is invalid.
    #[must_use]
    pub const fn kind(&self) -> QuotaErrorKind {
        self.kind
    }

    /// Always false: retrying with the same numbers fails again.
    #[must_use]
    pub const fn is_transient(&self) -> bool {
        false
    }
}
