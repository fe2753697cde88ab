//! Errors in a policy file, with their positions.

use std::fmt;

use thiserror::Error;

use crate::quota::QuotaError;

/// The maximum number of errors that one message lists.
const MAX_SHOWN: usize = 10;

/// The errors in a policy file, each with file, line, column and field.
///
/// The message lists up to 10 errors, one per line; the methods return the details of the first. The message
/// does not quote the file, because a secret can be in the wrong place.
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
    first: FieldError,
    rest: Vec<FieldError>,
}

/// The kind of a [`PolicyError`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum PolicyErrorKind {
    /// The text is not YAML, or uses YAML features that policies do not support (anchors, tags, two documents).
    Syntax,
    /// The field does not exist here.
    UnknownField,
    /// A required field is missing.
    MissingField,
    /// The value of a field is invalid.
    Value,
    /// A name is used twice.
    Duplicate,
    /// A rate, count or duration is invalid for a limit.
    Limit,
    /// The file exceeds a size limit.
    TooLarge,
}

impl PolicyError {
    /// One error in `file`.
    pub(super) fn of(file: &str, error: FieldError) -> Self {
        Self { file: file.to_owned(), first: error, rest: Vec::new() }
    }

    /// Returns the kind of the first error.
    #[must_use]
    pub const fn kind(&self) -> PolicyErrorKind {
        self.first.kind
    }

    /// Returns the file name that was passed to [`Policy::from_yaml`](super::Policy::from_yaml).
    #[must_use]
    pub fn file(&self) -> &str {
        &self.file
    }

    /// Returns the line of the first error, from 1.
    #[must_use]
    pub const fn line(&self) -> usize {
        self.first.position.line
    }

    /// Returns the column of the first error in characters, from 1.
    #[must_use]
    pub const fn column(&self) -> usize {
        self.first.position.column
    }

    /// Returns the field of the first error, such as `rules[2].limits[0].burst`; empty for the whole file.
    #[must_use]
    pub fn field(&self) -> &str {
        &self.first.field
    }

    /// Always false: parsing the same file again fails again.
    #[must_use]
    pub const fn is_transient(&self) -> bool {
        false
    }
}

impl fmt::Display for PolicyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.first)?;
        for error in self.rest.iter().take(MAX_SHOWN - 1) {
            write!(f, "\n{}:{error}", self.file)?;
        }
        match self.rest.len().saturating_sub(MAX_SHOWN - 1) {
            0 => Ok(()),
            more => write!(f, "\n{}: and {more} more errors", self.file),
        }
    }
}

/// A position in a file; line and column count from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Position {
    line: usize,
    column: usize,
}

impl Position {
    /// The start of a file.
    pub(super) const START: Self = Self { line: 1, column: 1 };

    pub(super) const fn line(self) -> usize {
        self.line
    }

    pub(super) fn of(marker: &granit_parser::Marker) -> Self {
        Self { line: marker.line(), column: marker.col() + 1 }
    }
}

/// One error in a policy file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FieldError {
    kind: PolicyErrorKind,
    position: Position,
    field: String,
    reason: String,
}

impl FieldError {
    pub(super) fn new(
        kind: PolicyErrorKind,
        position: Position,
        field: impl Into<String>,
        reason: String,
    ) -> Self {
        Self { kind, position, field: field.into(), reason }
    }

    /// An error about the whole file, at line 1.
    pub(super) fn whole_file(kind: PolicyErrorKind, reason: &str) -> Self {
        Self::new(kind, Position::START, "", reason.to_owned())
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { position: Position { line, column }, field, reason, .. } = self;
        let colon = if field.is_empty() { "" } else { ": " };
        write!(f, "{line}:{column}: {field}{colon}{reason}")
    }
}

/// The errors that were found in a file so far.
#[derive(Default)]
pub(super) struct FieldErrors(Vec<FieldError>);

impl FieldErrors {
    /// Returns the value, or records the error and returns `None`.
    pub(super) fn record<T>(&mut self, result: Result<T, FieldError>) -> Option<T> {
        result.map_err(|error| self.0.push(error)).ok()
    }

    /// Returns all recorded errors, sorted by position, as one `PolicyError`.
    pub(super) fn into_result(mut self, file: &str) -> Result<(), PolicyError> {
        self.0.sort_by_key(|error| error.position);
        let mut errors = self.0.into_iter();
        let Some(first) = errors.next() else { return Ok(()) };
        Err(PolicyError { file: file.to_owned(), first, rest: errors.collect() })
    }
}

/// Returns the kind to report for an error from building a limit.
pub(super) fn kind_of(error: &QuotaError) -> PolicyErrorKind {
    match error.kind() {
        crate::QuotaErrorKind::Name | crate::QuotaErrorKind::TimeZone => PolicyErrorKind::Value,
        _ => PolicyErrorKind::Limit,
    }
}
