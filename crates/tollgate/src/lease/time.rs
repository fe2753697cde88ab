//! Time of leases: a reading of two clocks of a node.

use std::time::Duration;

/// The time of a node by its monotonic clock and by its wall clock.
///
/// A lease ends when either clock says so. The monotonic clock does not move with changes of the time, but stands still
/// while a machine is suspended; the wall clock does not.
///
/// ```
/// use std::time::Duration;
/// use tollgate::lease::LeaseTime;
///
/// let begun = LeaseTime::new(Duration::from_secs(10), Duration::from_secs(1_000_000));
/// let second = Duration::from_secs(1);
/// assert!(begun.is_within(begun, second));
/// let suspended = LeaseTime::new(Duration::from_secs(10), Duration::from_secs(1_000_060));
/// assert!(!suspended.is_within(begun, second));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LeaseTime {
    monotonic: Duration,
    wall: Duration,
}

impl LeaseTime {
    /// Creates a time from the readings of a monotonic clock and of a wall clock, each since any fixed time.
    #[must_use]
    pub const fn new(monotonic: Duration, wall: Duration) -> Self {
        Self { monotonic, wall }
    }

    /// Returns whether less than `length` has passed since `begun`, by both clocks. A wall clock that was set back may
    /// have hidden time, so then the answer is no.
    #[must_use]
    pub fn is_within(self, begun: Self, length: Duration) -> bool {
        let has_passed_less = |now: Duration, begun: Duration| {
            now.checked_sub(begun).is_some_and(|passed| passed < length)
        };
        has_passed_less(self.monotonic, begun.monotonic) && has_passed_less(self.wall, begun.wall)
    }

    /// Returns the later reading by the monotonic clock. Readings of several threads arrive in any order.
    pub(super) fn latest(self, other: Self) -> Self {
        if self.monotonic < other.monotonic { other } else { self }
    }

    /// Returns the time since `begun` by the monotonic clock.
    pub(super) const fn since(self, begun: Self) -> Duration {
        self.monotonic.saturating_sub(begun.monotonic)
    }

    /// Returns the number of the period of this length, by the monotonic clock.
    pub(super) fn period(self, length: Duration) -> u64 {
        let periods = self.monotonic.as_micros() / length.as_micros().max(1);
        u64::try_from(periods).unwrap_or(u64::MAX)
    }
}
