//! Results of the limiter methods.

use std::time::Duration;

use tollgate::{Decision, Status, Verdict};

/// A successful acquire: the call may be made.
///
/// ```
/// use tollgate::MemoryStore;
/// use tollgate::policy::NamedLimits;
/// use tollgate_tower::outbound::NamedLimiter;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let tmdb = NamedLimiter::new(MemoryStore::new(), NamedLimits::tmdb());
/// let acquired = tmdb.acquire_many(3).await?;
/// assert_eq!((acquired.remaining, acquired.waited.as_secs()), (37, 0));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Acquired {
    /// The amount that can still be taken, of the limit with the least remaining.
    pub remaining: u64,
    /// The time spent waiting for quota or for earlier callers; zero if the take succeeded immediately.
    pub waited: Duration,
    /// Whether the decision was made in degraded mode, without the store.
    pub is_degraded: bool,
}

/// The result of a peek, which takes nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct PeekResult {
    /// Whether a take of 1 would succeed.
    pub allowed: bool,
    /// The amount that can be taken now, of the deciding limit.
    pub remaining: u64,
    /// The time to wait; none if a take would succeed, or if waiting does not help.
    pub retry_after: Option<Duration>,
}

/// The current figures of one limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// The amount used now.
    pub count: u64,
    /// The maximum amount: the burst of a token bucket, the count of any other limit.
    pub limit: u64,
    /// The window length.
    pub window: Duration,
    /// The amount that can be taken now.
    pub remaining: u64,
}

impl PeekResult {
    pub(super) fn from_decision(decision: &Decision<'_>) -> Self {
        Self {
            allowed: decision.is_allowed(),
            remaining: remaining(decision),
            retry_after: decision.retry_after(),
        }
    }
}

impl Stats {
    pub(super) fn from_status(status: &Status<'_>) -> Self {
        Self {
            count: status.count(),
            limit: status.limit().capacity(),
            window: status.limit().window(),
            remaining: status.remaining(),
        }
    }
}

/// The owned part of a decision.
#[derive(Debug, Clone, Copy)]
pub(super) struct TakeReply {
    pub(super) verdict: Verdict,
    pub(super) remaining: u64,
    pub(super) is_degraded: bool,
}

impl TakeReply {
    pub(super) fn from_decision(decision: &Decision<'_>) -> Self {
        Self {
            verdict: decision.verdict(),
            remaining: remaining(decision),
            is_degraded: decision.is_degraded(),
        }
    }
}

fn remaining(decision: &Decision<'_>) -> u64 {
    // A limiter has at least one limit, so there is a deciding limit.
    decision.remaining().unwrap_or_default()
}
