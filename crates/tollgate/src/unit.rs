//! Units that limits count: requests, tokens, bytes and others.

use std::fmt;
use std::sync::Arc;

use crate::naming::is_name;
use crate::quota::{QuotaError, QuotaErrorKind};

/// Name of the default unit.
const REQUESTS_NAME: &str = "requests";

/// The default unit, to borrow from.
static REQUESTS: Unit = Unit::requests();

/// The unit that a [`Limit`](crate::Limit) counts: `requests` by default, or any name that matches
/// `[A-Za-z0-9._-]{1,64}`, such as `tokens`. A clone is cheap.
///
/// ```
/// use tollgate::Unit;
///
/// assert_eq!(Unit::new("tokens")?.as_str(), "tokens");
/// assert_eq!(Unit::new("requests")?, Unit::requests());
/// assert!(Unit::new("input tokens").is_err());
/// # Ok::<(), tollgate::QuotaError>(())
/// ```
// `None` is `requests`, so that a limit without another unit needs no memory and compares fast.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Unit(Option<Arc<str>>);

impl Unit {
    /// Returns the default unit.
    #[must_use]
    pub const fn requests() -> Self {
        Self(None)
    }

    /// Returns a reference to the default unit.
    pub(crate) fn requests_ref() -> &'static Self {
        &REQUESTS
    }

    /// Creates a unit.
    ///
    /// # Errors
    /// The name does not match `[A-Za-z0-9._-]{1,64}`.
    pub fn new(name: &str) -> Result<Self, QuotaError> {
        if !is_name(name) {
            let start: String = name.chars().take(64).collect();
            let reason =
                format!("invalid unit {start:?}; use 1 to 64 characters of A-Z a-z 0-9 . _ -");
            return Err(QuotaError::built(QuotaErrorKind::Unit, reason));
        }
        Ok(Self((name != REQUESTS_NAME).then(|| name.into())))
    }

    /// Returns the name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.as_deref().unwrap_or(REQUESTS_NAME)
    }

    /// Returns whether this is the default unit.
    ///
    /// ```
    /// use tollgate::Unit;
    ///
    /// assert!(Unit::requests().is_requests());
    /// assert!(!Unit::new("bytes")?.is_requests());
    /// # Ok::<(), tollgate::QuotaError>(())
    /// ```
    #[must_use]
    #[inline]
    pub const fn is_requests(&self) -> bool {
        self.0.is_none()
    }
}

/// The default unit.
impl Default for Unit {
    fn default() -> Self {
        Self::requests()
    }
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Unit({})", self.as_str())
    }
}
