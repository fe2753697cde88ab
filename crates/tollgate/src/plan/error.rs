//! Errors of plans.

use thiserror::Error;

use super::{Key, MAX_TAKES};

/// The takes do not form a valid plan.
///
/// ```
/// use tollgate::{Key, Limit, Plan, PlanErrorKind, Quota, Subject, Take};
///
/// let limit = Limit::token_bucket(Quota::per_minute(10))?;
/// let subject = Subject::of(["c1"]);
/// let take = Take::new(Key::new(&subject, &limit), 1);
/// let error = Plan::new([take, take.shadow(1)]).unwrap_err();
/// assert_eq!(error.kind(), PlanErrorKind::Conflict);
/// # Ok::<(), tollgate::QuotaError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{reason}")]
pub struct PlanError {
    kind: PlanErrorKind,
    reason: String,
}

/// The kind of a [`PlanError`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum PlanErrorKind {
    /// More than [`MAX_TAKES`] takes.
    TooMany,
    /// Two takes on one counter differ in mode, distribution or parameters.
    Conflict,
}

impl PlanError {
    pub(super) fn at(kind: PlanErrorKind, key: &Key<'_>) -> Self {
        let reason = match kind {
            PlanErrorKind::TooMany => {
                format!("a plan can have at most {MAX_TAKES} takes; key {key} exceeds this")
            }
            PlanErrorKind::Conflict => {
                format!("two takes on key {key} differ in mode, distribution or parameters")
            }
        };
        Self { kind, reason }
    }

    /// The error if the limits of several rules exceed [`MAX_TAKES`].
    #[cfg(feature = "policy")]
    pub(crate) fn too_many_of_rules(rules: &[&str], takes: usize) -> Self {
        let rules = rules.join(", ");
        let reason =
            format!("a plan can have at most {MAX_TAKES} takes; the rules {rules} have {takes}");
        Self { kind: PlanErrorKind::TooMany, reason }
    }

    /// Returns the kind of the error.
    #[must_use]
    pub const fn kind(&self) -> PlanErrorKind {
        self.kind
    }

    /// Always false: the same takes fail again.
    #[must_use]
    pub const fn is_transient(&self) -> bool {
        false
    }
}
