//! Why a call may not be made.

use std::time::Duration;

use thiserror::Error;
use tollgate::{RateLimitExceeded, StoreError, StoreErrorKind};

/// Why a call may not be made now.
///
/// ```
/// use tollgate::MemoryStore;
/// use tollgate::policy::NamedLimits;
/// use tollgate_tower::outbound::{AcquireError, NamedLimiter};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), AcquireError> {
/// let limiter = NamedLimiter::new(MemoryStore::new(), NamedLimits::igdb());
/// limiter.acquire_many(4).await?;
/// match limiter.try_acquire().await {
///     Err(AcquireError::Exceeded(refused)) => {
///         assert_eq!(refused.to_string(), "Rate limit exceeded for key 'igdb:api'");
///         assert!(refused.retry_after.is_some());
///     }
///     other => unreachable!("four a second: {other:?}"),
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum AcquireError {
    /// There is no room, and the caller would not wait for as long as it takes.
    #[error(transparent)]
    Exceeded(#[from] RateLimitExceeded),
    /// The store could not be reached, or not be used by anybody. Mostly nothing was taken; if the connection
    /// was lost before the answer came, it may have been.
    #[error("the store of the limiter cannot be reached")]
    Unavailable(#[source] StoreError),
    /// The store did not answer in time: it may have been taken.
    #[error("the store of the limiter did not answer in time")]
    Timeout(#[source] StoreError),
    /// The store could not be used for another reason.
    #[error("the store of the limiter cannot be used")]
    Store(#[source] StoreError),
    /// The registry has no limiter of this name.
    #[error(transparent)]
    Unknown(#[from] UnknownLimiter),
    /// The caller has to wait, and there is no Tokio runtime to wake it.
    #[error("waiting for the limiter needs a Tokio runtime; outside of one use outbound::blocking")]
    NoRuntime,
    /// A blocking limiter was called where blocking would stop a runtime's other work.
    #[error("a blocking limiter was called within a Tokio runtime; use NamedLimiter there")]
    WithinRuntime,
}

impl AcquireError {
    /// Whether the same call may succeed later.
    #[must_use]
    pub const fn is_transient(&self) -> bool {
        match self {
            Self::Exceeded(refused) => refused.retry_after.is_some(),
            Self::Unavailable(error) | Self::Timeout(error) | Self::Store(error) => {
                error.is_transient()
            }
            Self::Unknown(_) | Self::NoRuntime | Self::WithinRuntime => false,
        }
    }

    /// Whether the store gave no answer.
    pub(super) const fn is_of_store(&self) -> bool {
        matches!(self, Self::Unavailable(_) | Self::Timeout(_) | Self::Store(_))
    }

    /// How long to wait, where that is known and helps.
    #[must_use]
    pub const fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Exceeded(refused) => refused.retry_after,
            _ => None,
        }
    }
}

impl From<StoreError> for AcquireError {
    fn from(error: StoreError) -> Self {
        match error.kind() {
            StoreErrorKind::Unavailable => Self::Unavailable(error),
            StoreErrorKind::Timeout => Self::Timeout(error),
            _ => Self::Store(error),
        }
    }
}

/// A registry has no limiter of this name.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("there is no limiter called '{name}'; there are {}", if known.is_empty() { "none".to_owned() } else { known.join(", ") })]
#[non_exhaustive]
pub struct UnknownLimiter {
    /// What was asked for.
    pub name: String,
    /// What there is, in alphabetical order.
    pub known: Vec<String>,
}
