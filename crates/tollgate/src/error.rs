//! The errors of this crate, one per boundary.

use std::fmt;

use thiserror::Error;

/// Why numbers or names cannot make a limit.
///
/// The message names the field and what would be right.
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

/// The field a [`QuotaError`] is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum QuotaErrorKind {
    /// The count is zero, or more than the algorithm can hold.
    Count,
    /// The period (of slots, the ttl) is zero, too long, or not in whole microseconds.
    Period,
    /// The burst is zero, too large, or set for an algorithm that has none.
    Burst,
    /// Each number is fine alone, but together they pass what integers below 2^53 can express.
    Precision,
    /// A name is empty, too long, has a character outside `[A-Za-z0-9._-]`, or comes twice.
    Name,
    /// The time zone is not in the IANA database.
    TimeZone,
    /// There is no limit, or there are too many.
    Limits,
}

/// Constant where the check is `const`, built where the message can quote its input.
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

    /// What was wrong.
    #[must_use]
    pub const fn kind(&self) -> QuotaErrorKind {
        self.kind
    }

    /// Always false: the same numbers will be wrong again.
    #[must_use]
    pub const fn is_transient(&self) -> bool {
        false
    }
}
