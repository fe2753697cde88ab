//! What a limiter tells.

use std::time::Duration;

use tollgate::{Decision, Status, Verdict};

/// The call may be made.
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
    /// What could still be taken, of the limit with the least left.
    pub remaining: u64,
    /// How long there was no room, or others were first; zero for who found room at once.
    pub waited: Duration,
    /// Whether a fallback answered because the store could not.
    pub is_degraded: bool,
}

/// What an acquire would be told, though nothing was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Checked {
    /// Whether there is room.
    pub allowed: bool,
    /// What could be taken now, of the limit that decides.
    pub remaining: u64,
    /// How long to wait; none if there is room, and if waiting will not help.
    pub retry_after: Option<Duration>,
}

/// The figures of one limit. What has left the window is no longer in them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// What is used now.
    pub count: u64,
    /// The most that can be used: the burst of a token bucket, the count of all others.
    pub limit: u64,
    /// In how long.
    pub window: Duration,
    /// What could be taken now.
    pub remaining: u64,
}

impl Checked {
    pub(super) fn of(decision: &Decision<'_>) -> Self {
        Self {
            allowed: decision.is_allowed(),
            remaining: remaining(decision),
            retry_after: decision.retry_after(),
        }
    }
}

impl Stats {
    pub(super) fn of(status: &Status<'_>) -> Self {
        Self {
            count: status.count(),
            limit: status.limit().capacity(),
            window: status.limit().window(),
            remaining: status.remaining(),
        }
    }
}

/// A decision without the plan it borrows from.
#[derive(Debug, Clone, Copy)]
pub(super) struct Answer {
    pub(super) verdict: Verdict,
    pub(super) remaining: u64,
    pub(super) is_degraded: bool,
}

impl Answer {
    pub(super) fn of(decision: &Decision<'_>) -> Self {
        Self {
            verdict: decision.verdict(),
            remaining: remaining(decision),
            is_degraded: decision.is_degraded(),
        }
    }
}

fn remaining(decision: &Decision<'_>) -> u64 {
    // A limiter has a limit, so one decides.
    decision.remaining().unwrap_or_default()
}
