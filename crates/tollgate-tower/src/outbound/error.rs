//! Errors of outbound limiters.

use std::time::Duration;

use thiserror::Error;
use tollgate::{RateLimitExceeded, StoreError, StoreErrorKind};

/// Why an acquire failed.
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
///     other => unreachable!("the limit is 4 per second: {other:?}"),
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum AcquireError {
    /// The limit is exceeded, and the wait would be longer than the caller's maximum.
    #[error(transparent)]
    Exceeded(#[from] RateLimitExceeded),
    /// The store is unreachable or out of service. Usually nothing was taken; if the connection was lost before the
    /// reply, the take may have been counted.
    #[error("the limiter's store is unreachable")]
    Unavailable(#[source] StoreError),
    /// The store did not reply in time. The take may have been counted.
    #[error("the limiter's store timed out")]
    Timeout(#[source] StoreError),
    /// Too many calls of this process wait for the store, which replies. The take was not sent and not counted.
    #[error("too many calls wait for the limiter's store")]
    Overloaded(#[source] StoreError),
    /// Another store error.
    #[error("the limiter's store failed")]
    Store(#[source] StoreError),
    /// The registry has no limiter with this name.
    #[error(transparent)]
    Unknown(#[from] UnknownLimiter),
    /// The caller must wait, but there is no Tokio runtime.
    #[error("waiting for the limiter needs a Tokio runtime; outside of one use outbound::blocking")]
    NoRuntime,
    /// A blocking limiter was called inside a Tokio runtime, where it would block other tasks.
    #[error("a blocking limiter was called within a Tokio runtime; use NamedLimiter there")]
    WithinRuntime,
}

impl AcquireError {
    /// Returns whether the same call may succeed later.
    #[must_use]
    pub const fn is_transient(&self) -> bool {
        match self {
            Self::Exceeded(refused) => refused.retry_after.is_some(),
            Self::Unavailable(error)
            | Self::Timeout(error)
            | Self::Overloaded(error)
            | Self::Store(error) => error.is_transient(),
            Self::Unknown(_) | Self::NoRuntime | Self::WithinRuntime => false,
        }
    }

    /// Returns whether the store did not decide.
    pub(super) const fn is_store_error(&self) -> bool {
        matches!(
            self,
            Self::Unavailable(_) | Self::Timeout(_) | Self::Overloaded(_) | Self::Store(_)
        )
    }

    /// Returns the time to wait, if it is known and waiting helps.
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
            StoreErrorKind::Unavailable | StoreErrorKind::Misconfigured | StoreErrorKind::Lost => {
                Self::Unavailable(error)
            }
            StoreErrorKind::Timeout => Self::Timeout(error),
            StoreErrorKind::Overloaded => Self::Overloaded(error),
            _ => Self::Store(error),
        }
    }
}

/// A registry has no limiter with this name.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("unknown limiter '{name}'; known limiters: {}", if known.is_empty() { "none".to_owned() } else { known.join(", ") })]
#[non_exhaustive]
pub struct UnknownLimiter {
    /// The requested name.
    pub name: String,
    /// The known names, in alphabetical order.
    pub known: Vec<String>,
}
