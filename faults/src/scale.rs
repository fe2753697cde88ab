//! How long a row runs: seconds in the test suite, or the full extent.

/// The scale of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// Seconds, for the test suite.
    Quick,
    /// The full extent of the fault matrix.
    Full,
}

impl Scale {
    /// Returns the value for this scale.
    pub fn pick<T>(self, quick: T, full: T) -> T {
        match self {
            Self::Quick => quick,
            Self::Full => full,
        }
    }
}
