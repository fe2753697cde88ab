//! Why a saved state cannot be restored.

use thiserror::Error;

/// Why a saved state cannot be restored. The store is as it was.
///
/// ```
/// use tollgate::{MemoryStore, SnapshotErrorKind};
///
/// let error = MemoryStore::new().restore(b"something else").unwrap_err();
/// assert_eq!(error.kind(), SnapshotErrorKind::Foreign);
/// assert_eq!(error.to_string(), "this is not a saved state");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{}", .kind.reason())]
pub struct SnapshotError {
    kind: SnapshotErrorKind,
}

/// What a [`SnapshotError`] is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SnapshotErrorKind {
    /// It is something else than a saved state.
    Foreign,
    /// It was saved by a newer version.
    Version,
    /// Some of it is missing or has changed.
    Torn,
    /// It is whole, but says what no store would save.
    Content,
    /// The store has keys already.
    Occupied,
    /// The store has no place for so many keys.
    TooMany,
}

impl SnapshotErrorKind {
    const fn reason(self) -> &'static str {
        match self {
            Self::Foreign => "this is not a saved state",
            Self::Version => "the state was saved by a newer version",
            Self::Torn => "the saved state is cut short or damaged",
            Self::Content => "the saved state says what no store would save",
            Self::Occupied => "a state is restored into an empty store only",
            Self::TooMany => "the saved state has more keys than the store may hold",
        }
    }
}

impl SnapshotError {
    /// What was wrong.
    #[must_use]
    pub const fn kind(&self) -> SnapshotErrorKind {
        self.kind
    }

    /// Always false: the same bytes will be wrong again.
    #[must_use]
    pub const fn is_transient(&self) -> bool {
        false
    }
}

impl From<SnapshotErrorKind> for SnapshotError {
    fn from(kind: SnapshotErrorKind) -> Self {
        Self { kind }
    }
}
