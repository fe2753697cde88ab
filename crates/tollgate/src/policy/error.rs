//! What can be wrong with a policy file, and where.

use std::fmt;

use thiserror::Error;

use crate::error::QuotaError;

/// How many flaws of one file are told.
const MAX_TOLD: usize = 10;

/// Why a text cannot make a policy: what is wrong, and the file, line, column and field of it.
///
/// Several flaws are told at once, one a line; the methods are about the first. The text of the file
/// is not shown, because it may hold secrets in the wrong place.
///
/// ```
/// use tollgate::policy::{Policy, PolicyErrorKind};
/// use tollgate::{Limit, Quota};
///
/// let text = "version: 1\nrules:\n  - name: api\n    limitss: [10/min]\n";
/// let default = Limit::sliding_window(Quota::per_minute(100))?;
/// let error = Policy::from_yaml("policy.yaml", text, default).unwrap_err();
/// assert_eq!(error.kind(), PolicyErrorKind::UnknownField);
/// assert_eq!((error.line(), error.column(), error.field()), (4, 5, "rules[0].limitss"));
/// assert_eq!(
///     error.to_string(),
///     "policy.yaml:4:5: rules[0].limitss: unknown field, did you mean \"limits\"?"
/// );
/// # Ok::<(), tollgate::QuotaError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub struct PolicyError {
    file: String,
    first: Flaw,
    others: Vec<Flaw>,
}

/// What a [`PolicyError`] is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum PolicyErrorKind {
    /// It is not YAML, or uses a part of YAML that policies do not (anchors, tags, two documents).
    Syntax,
    /// There is no such field here.
    UnknownField,
    /// A field that must be there is not.
    MissingField,
    /// A field's value is not one it may have.
    Value,
    /// A name comes twice.
    Duplicate,
    /// The numbers cannot make a limit.
    Limit,
    /// The file is larger than a policy may be.
    TooLarge,
}

impl PolicyError {
    /// What was wrong.
    #[must_use]
    pub const fn kind(&self) -> PolicyErrorKind {
        self.first.kind
    }

    /// The name of the file, as it was given.
    #[must_use]
    pub fn file(&self) -> &str {
        &self.file
    }

    /// The line, from 1.
    #[must_use]
    pub const fn line(&self) -> usize {
        self.first.at.line
    }

    /// The column in characters, from 1.
    #[must_use]
    pub const fn column(&self) -> usize {
        self.first.at.column
    }

    /// The field, such as `rules[2].limits[0].burst`; empty for the file as a whole.
    #[must_use]
    pub fn field(&self) -> &str {
        &self.first.field
    }

    /// Always false: the same file will be wrong again.
    #[must_use]
    pub const fn is_transient(&self) -> bool {
        false
    }
}

impl fmt::Display for PolicyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.first)?;
        for flaw in self.others.iter().take(MAX_TOLD - 1) {
            write!(f, "\n{}:{flaw}", self.file)?;
        }
        match self.others.len().saturating_sub(MAX_TOLD - 1) {
            0 => Ok(()),
            more => write!(f, "\n{}: and {more} more", self.file),
        }
    }
}

/// Where something stands in a file, both from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Position {
    line: usize,
    column: usize,
}

impl Position {
    pub(super) fn of(marker: &granit_parser::Marker) -> Self {
        Self { line: marker.line(), column: marker.col() + 1 }
    }
}

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Flaw {
    kind: PolicyErrorKind,
    at: Position,
    field: String,
    reason: String,
}

impl Flaw {
    pub(super) fn new(
        kind: PolicyErrorKind,
        at: Position,
        field: impl Into<String>,
        reason: String,
    ) -> Self {
        Self { kind, at, field: field.into(), reason }
    }

    /// A flaw of the file as a whole.
    pub(super) fn at_top(kind: PolicyErrorKind, reason: &str) -> Self {
        Self::new(kind, Position { line: 1, column: 1 }, "", reason.to_owned())
    }
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { at: Position { line, column }, field, reason, .. } = self;
        let colon = if field.is_empty() { "" } else { ": " };
        write!(f, "{line}:{column}: {field}{colon}{reason}")
    }
}

/// All that is wrong with a file, as far as it was read.
#[derive(Default)]
pub(super) struct Flaws(Vec<Flaw>);

impl Flaws {
    /// The value, or nothing and one flaw more.
    pub(super) fn keep<T>(&mut self, read: Result<T, Flaw>) -> Option<T> {
        read.map_err(|flaw| self.0.push(flaw)).ok()
    }

    /// Errs if there are any.
    pub(super) fn check(mut self, file: &str) -> Result<(), PolicyError> {
        self.0.sort_by_key(|flaw| flaw.at);
        let mut flaws = self.0.into_iter();
        let Some(first) = flaws.next() else { return Ok(()) };
        Err(PolicyError { file: file.to_owned(), first, others: flaws.collect() })
    }
}

/// What a limit's numbers or name are refused for, said of a field.
pub(super) fn kind_of(error: &QuotaError) -> PolicyErrorKind {
    match error.kind() {
        crate::QuotaErrorKind::Name | crate::QuotaErrorKind::TimeZone => PolicyErrorKind::Value,
        _ => PolicyErrorKind::Limit,
    }
}
