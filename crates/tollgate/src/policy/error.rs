//! Errors in a policy file, with their positions.

use std::fmt;

use thiserror::Error;

use crate::quota::QuotaError;

/// The maximum number of errors that one message lists.
const MAX_SHOWN: usize = 10;
/// The maximum number of errors that are kept. A hostile file of 4 MiB can have a million.
const MAX_KEPT: usize = 10_000;

/// The errors in a policy file, each with file, line, column and field.
///
/// The message lists up to 10 errors, one per line; [`errors`](Self::errors) returns all of them, and the other methods
/// return the details of the first. The message does not quote the file, because a secret can be in the wrong place.
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
    file: Box<str>,
    first: FieldError,
    rest: Vec<FieldError>,
    /// The number of further errors that were not kept.
    omitted: usize,
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
        Self { file: file.into(), first: error, rest: Vec::new(), omitted: 0 }
    }

    /// Returns every error in the file, in file order; at most 10 000.
    ///
    /// ```
    /// use tollgate::{Limit, policy::Policy};
    ///
    /// let text = "version: 2\nrules:\n  - { name: api, limits: [10/minute], cots: 2 }\n";
    /// let error = Policy::from_yaml("policy.yaml", text, Limit::block()).unwrap_err();
    /// let lines: Vec<_> = error.errors().map(|error| (error.line(), error.field())).collect();
    /// assert_eq!(lines, [(1, "version"), (3, "rules[0].limits[0]"), (3, "rules[0].cots")]);
    /// ```
    pub fn errors(&self) -> impl Iterator<Item = &FieldError> {
        std::iter::once(&self.first).chain(&self.rest)
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
        match self.rest.len().saturating_sub(MAX_SHOWN - 1) + self.omitted {
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

    pub(super) const fn new(line: usize, column: usize) -> Self {
        Self { line, column }
    }

    pub(super) const fn line(self) -> usize {
        self.line
    }

    pub(super) fn of(marker: &granit_parser::Marker) -> Self {
        Self { line: marker.line(), column: marker.col() + 1 }
    }
}

/// One error in a policy file, as in [`PolicyError::errors`]. Its text is `LINE:COLUMN: FIELD: message`.
///
/// ```
/// use tollgate::{Limit, policy::Policy};
///
/// let error = Policy::from_yaml("policy.yaml", "version: 1\ntenants: a\n", Limit::block()).unwrap_err();
/// let first = error.errors().next().unwrap();
/// assert_eq!((first.line(), first.column(), first.field()), (2, 1, "tenants"));
/// assert_eq!(first.message(), "unknown field, did you mean \"tenant\"?");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldError {
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

    /// Returns the kind of the error.
    #[must_use]
    pub const fn kind(&self) -> PolicyErrorKind {
        self.kind
    }

    /// Returns the line of the error, from 1.
    #[must_use]
    pub const fn line(&self) -> usize {
        self.position.line
    }

    /// Returns the column of the error in characters, from 1.
    #[must_use]
    pub const fn column(&self) -> usize {
        self.position.column
    }

    /// Returns the field, such as `rules[2].limits[0].burst`; empty for the whole file.
    #[must_use]
    pub fn field(&self) -> &str {
        &self.field
    }

    /// Returns what is wrong and what to write instead, without the position and the field.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.reason
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
pub(super) struct FieldErrors {
    kept: Vec<FieldError>,
    omitted: usize,
}

impl FieldErrors {
    /// Returns the value, or records the error and returns `None`.
    pub(super) fn record<T>(&mut self, result: Result<T, FieldError>) -> Option<T> {
        result.map_err(|error| self.add(error)).ok()
    }

    fn add(&mut self, error: FieldError) {
        if self.kept.len() < MAX_KEPT {
            self.kept.push(error);
        } else {
            self.omitted += 1;
        }
    }

    /// Adds the errors of another collection.
    pub(super) fn append(&mut self, other: Self) {
        self.omitted += other.omitted;
        other.kept.into_iter().for_each(|error| self.add(error));
    }

    /// Returns the error that was recorded first.
    pub(super) fn into_first(self) -> Option<FieldError> {
        self.kept.into_iter().next()
    }

    /// Returns the number of errors up to now.
    pub(super) fn count(&self) -> usize {
        self.kept.len() + self.omitted
    }

    /// Returns all recorded errors, sorted by position, as one `PolicyError`.
    pub(super) fn into_result(mut self, file: &str) -> Result<(), PolicyError> {
        self.kept.sort_by_key(|error| error.position);
        let mut errors = self.kept.into_iter();
        let Some(first) = errors.next() else { return Ok(()) };
        let (file, rest) = (file.into(), errors.collect());
        Err(PolicyError { file, first, rest, omitted: self.omitted })
    }
}

/// Returns the kind to report for an error from building a limit.
pub(super) fn kind_of(error: &QuotaError) -> PolicyErrorKind {
    match error.kind() {
        crate::QuotaErrorKind::Name
        | crate::QuotaErrorKind::Unit
        | crate::QuotaErrorKind::TimeZone => PolicyErrorKind::Value,
        _ => PolicyErrorKind::Limit,
    }
}
