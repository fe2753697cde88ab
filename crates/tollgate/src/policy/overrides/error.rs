//! Errors of overrides.

use thiserror::Error;

use crate::limit::Limit;
use crate::policy::rule::Rule;

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
    candidates: Vec<OverrideCandidate>,
}

/// A rule that an override could be for.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct OverrideCandidate {
    /// The name of the rule.
    pub rule: String,
    /// The limits that apply to the client in the rule.
    pub limits: Vec<Limit>,
    /// Whether one of them is a block, which an override replaces only if it names the rule.
    pub blocks: bool,
}

impl OverrideCandidate {
    /// Creates the candidate for a client with these limits of its own in the rule.
    pub(crate) fn new(rule: &Rule, own_limits: Option<&[Limit]>) -> Self {
        let limits = own_limits.unwrap_or(rule.limits()).to_vec();
        let blocks = limits.iter().any(|limit| limit.count() == 0);
        Self { rule: rule.name().to_owned(), limits, blocks }
    }
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
    pub(crate) fn new(kind: OverrideErrorKind, reason: impl Into<String>) -> Self {
        Self { kind, reason: reason.into(), candidates: Vec::new() }
    }

    /// Creates the error of an override that must name one of these rules.
    pub(crate) fn ambiguous(reason: impl Into<String>, candidates: Vec<OverrideCandidate>) -> Self {
        Self { candidates, ..Self::new(OverrideErrorKind::Rule, reason) }
    }

    /// Returns the rules of which the override must name one; empty if the error is another one.
    #[must_use]
    pub fn candidates(&self) -> &[OverrideCandidate] {
        &self.candidates
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
