//! Errors of restoring a snapshot.

use thiserror::Error;

/// Reason why a snapshot cannot be restored. The store is unchanged.
///
/// ```
/// use tollgate::{MemoryStore, SnapshotErrorKind};
///
/// let error = MemoryStore::new().restore(b"something else").unwrap_err();
/// assert_eq!(error.kind(), SnapshotErrorKind::NotASnapshot);
/// assert_eq!(error.to_string(), "not a tollgate snapshot");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{}", .kind.reason())]
pub struct SnapshotError {
    kind: SnapshotErrorKind,
}

/// Kind of a [`SnapshotError`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SnapshotErrorKind {
    /// The input is not a snapshot.
    NotASnapshot,
    /// A newer version wrote the snapshot.
    Version,
    /// The snapshot is truncated or modified.
    Damaged,
    /// The checksum is correct, but the content is invalid.
    Invalid,
    /// The store already has keys.
    StoreNotEmpty,
    /// The snapshot has more keys than the store's `max_keys`.
    TooMany,
}

impl SnapshotErrorKind {
    const fn reason(self) -> &'static str {
        match self {
            Self::NotASnapshot => "not a tollgate snapshot",
            Self::Version => "the snapshot was written by a newer version of tollgate",
            Self::Damaged => "the snapshot is truncated or damaged",
            Self::Invalid => "the snapshot contains invalid data",
            Self::StoreNotEmpty => "a snapshot can only be restored into an empty store",
            Self::TooMany => "the snapshot has more keys than the store's max_keys",
        }
    }
}

impl SnapshotError {
    /// Kind of the error.
    #[must_use]
    pub const fn kind(&self) -> SnapshotErrorKind {
        self.kind
    }

    /// Always false: retrying with the same snapshot fails again.
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
