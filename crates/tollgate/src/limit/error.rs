//! Errors of limit specifications.

use std::fmt;

use thiserror::Error;

use crate::algorithm::{Algorithm, Letter, LimitField};
use crate::quota::{QuotaError, QuotaErrorKind};

/// Reason why a [`LimitSpec`](crate::LimitSpec) is not a valid limit, with the field that it is about.
///
/// ```
/// use std::time::Duration;
/// use tollgate::{Algorithm, LimitField, LimitSpec};
///
/// let spec = LimitSpec { burst: Some(5), ..LimitSpec::rate(10, Duration::from_secs(60)) };
/// let error = LimitSpec { algorithm: Some(Algorithm::SlidingWindow), ..spec }.build().unwrap_err();
/// assert_eq!(error.field(), Some(LimitField::Burst));
/// assert_eq!(error.to_string(), "burst is supported by token_bucket only");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub struct LimitError {
    field: Option<LimitField>,
    reason: Reason,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Reason {
    Missing,
    /// The algorithm does not have the field.
    NotSupported(Algorithm),
    NeedsAlign,
    ContradictsAlign,
    #[cfg(feature = "policy")]
    NotInOverrides,
    Quota(QuotaError),
}

impl LimitError {
    pub(crate) const fn missing(field: LimitField) -> Self {
        Self { field: Some(field), reason: Reason::Missing }
    }

    /// The error for a field that a limit of the algorithm does not have, or has only with `align`.
    pub(crate) fn not_supported(field: LimitField, algorithm: Algorithm) -> Self {
        let mut letters = Letter::ALL.into_iter().filter(|letter| letter.has(field));
        let needs_align = !matches!(field, LimitField::Align | LimitField::Unit)
            && letters.all(|letter| letter.has(LimitField::Align));
        let reason = if needs_align { Reason::NeedsAlign } else { Reason::NotSupported(algorithm) };
        Self { field: Some(field), reason }
    }

    pub(super) const fn contradicts_align() -> Self {
        Self { field: Some(LimitField::Window), reason: Reason::ContradictsAlign }
    }

    #[cfg(feature = "policy")]
    pub(crate) const fn not_in_overrides(field: LimitField) -> Self {
        Self { field: Some(field), reason: Reason::NotInOverrides }
    }

    /// Converts an error about the numbers of a limit. A period is the `ttl` if the limit has slots.
    pub(crate) fn of_quota(error: QuotaError, has_slots: bool) -> Self {
        let field = match error.kind() {
            QuotaErrorKind::Count => Some(LimitField::Count),
            QuotaErrorKind::Period if has_slots => Some(LimitField::Ttl),
            QuotaErrorKind::Period => Some(LimitField::Window),
            QuotaErrorKind::Burst => Some(LimitField::Burst),
            QuotaErrorKind::Name => Some(LimitField::Name),
            QuotaErrorKind::Unit => Some(LimitField::Unit),
            QuotaErrorKind::TimeZone => Some(LimitField::Tz),
            QuotaErrorKind::Precision | QuotaErrorKind::Rate | QuotaErrorKind::Limits => None,
        };
        Self { field, reason: Reason::Quota(error) }
    }

    /// Field that is invalid; `None` if each field is valid, but not their combination.
    #[must_use]
    pub const fn field(&self) -> Option<LimitField> {
        self.field
    }

    /// Field to use instead of the invalid one, if another has the same purpose.
    #[must_use]
    pub fn instead(&self) -> Option<LimitField> {
        let other = match self.field? {
            LimitField::Window => LimitField::Ttl,
            LimitField::Ttl => LimitField::Window,
            LimitField::Count
            | LimitField::Burst
            | LimitField::Align
            | LimitField::Tz
            | LimitField::Unit
            | LimitField::Name => return None,
        };
        matches!(self.reason, Reason::NotSupported(algorithm) if algorithm.accepts(other))
            .then_some(other)
    }

    /// Error about the numbers or the name, if the fields fit together.
    #[must_use]
    pub const fn quota_error(&self) -> Option<&QuotaError> {
        match &self.reason {
            Reason::Quota(error) => Some(error),
            _ => None,
        }
    }

    /// The reason without the name of the field, for front ends that name it themselves.
    #[must_use]
    pub fn detail(&self) -> String {
        match &self.reason {
            Reason::Missing => "is required".to_owned(),
            Reason::NotSupported(Algorithm::Block) if self.field == Some(LimitField::Unit) => {
                "is not supported by a limit of 0".to_owned()
            }
            Reason::NotSupported(algorithm) => {
                let accepts =
                    |other: &Algorithm| self.field.is_some_and(|field| other.accepts(field));
                let mut owners = Algorithm::ALL.into_iter().filter(accepts);
                match (owners.next(), owners.next()) {
                    (Some(owner), None) => format!("is supported by {owner} only"),
                    _ => format!("is not supported by {algorithm}"),
                }
            }
            Reason::NeedsAlign => "requires `align`".to_owned(),
            Reason::ContradictsAlign => {
                "contradicts `align`, which defines the window; omit it".to_owned()
            }
            #[cfg(feature = "policy")]
            Reason::NotInOverrides => {
                "is not supported in overrides; the rule's limit defines it".to_owned()
            }
            Reason::Quota(error) => error.to_string(),
        }
    }

    /// Always false: the same specification fails again.
    #[must_use]
    pub const fn is_transient(&self) -> bool {
        false
    }
}

impl fmt::Display for LimitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.reason, self.field) {
            // The message names the field.
            (Reason::Quota(_), _) | (_, None) => f.write_str(&self.detail()),
            (_, Some(field)) => write!(f, "{} {}", field.as_str(), self.detail()),
        }
    }
}
