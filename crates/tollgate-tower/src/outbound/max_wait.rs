//! How long a caller would wait.

use std::time::Duration;

use tokio::time::Instant;
use tollgate::policy::AcquireMode;

/// Beyond any wait that a program lives to see the end of, and within what clocks can add.
const AGES: Duration = Duration::from_secs(30 * 365 * 86_400);

/// How long a caller would wait, from when it came.
#[derive(Debug, Clone, Copy)]
pub(super) enum Patience {
    None,
    Until(Instant),
    Endless,
}

impl Patience {
    pub(super) fn of(mode: AcquireMode) -> Self {
        match mode {
            AcquireMode::Blocking { longest_wait: Some(longest) } => Self::lasting(longest),
            AcquireMode::Blocking { longest_wait: None } => Self::Endless,
            // What is not known to wait does not.
            _ => Self::None,
        }
    }

    pub(super) fn lasting(longest: Duration) -> Self {
        match longest {
            Duration::ZERO => Self::None,
            _ => Instant::now().checked_add(longest).map_or(Self::Endless, Self::Until),
        }
    }

    /// Whether it is over before then.
    pub(super) fn ends_before(self, then: Instant) -> bool {
        match self {
            Self::None => true,
            Self::Until(end) => end < then,
            Self::Endless => false,
        }
    }
}

/// So long from now.
pub(super) fn from_now(wait: Duration) -> Instant {
    let now = Instant::now();
    now.checked_add(wait).or_else(|| now.checked_add(AGES)).unwrap_or(now)
}
