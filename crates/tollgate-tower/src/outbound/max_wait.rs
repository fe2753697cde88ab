//! The maximum wait of a caller.

use std::time::Duration;

use tokio::time::Instant;
use tollgate::policy::AcquireMode;

/// Substitute for a wait that overflows the clock: 30 years, longer than any process runs.
const FAR_FUTURE: Duration = Duration::from_secs(30 * 365 * 86_400);

/// The time until which a caller waits.
#[derive(Debug, Clone, Copy)]
pub(super) enum MaxWait {
    None,
    Until(Instant),
    Unlimited,
}

impl MaxWait {
    pub(super) fn from_mode(mode: AcquireMode) -> Self {
        match mode {
            AcquireMode::Blocking { longest_wait: Some(max) } => Self::from_now(max),
            AcquireMode::Blocking { longest_wait: None } => Self::Unlimited,
            // `AcquireMode` is non-exhaustive; unknown modes do not wait.
            _ => Self::None,
        }
    }

    pub(super) fn from_now(max: Duration) -> Self {
        match max {
            Duration::ZERO => Self::None,
            _ => Instant::now().checked_add(max).map_or(Self::Unlimited, Self::Until),
        }
    }

    /// Returns whether the wait ends before this instant.
    pub(super) fn ends_before(self, instant: Instant) -> bool {
        match self {
            Self::None => true,
            Self::Until(end) => end < instant,
            Self::Unlimited => false,
        }
    }
}

/// Returns the instant after this wait, saturating at about 30 years.
pub(super) fn instant_after(wait: Duration) -> Instant {
    let now = Instant::now();
    now.checked_add(wait).or_else(|| now.checked_add(FAR_FUTURE)).unwrap_or(now)
}
