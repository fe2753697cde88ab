//! Time in whole microseconds: time stamps, clocks, rounding and jitter.

mod calibrated;
mod clock;
mod jitter;
pub mod rounding;

use std::time::Duration;

pub use calibrated::CalibratedClock;
pub use clock::{Clock, ManualClock, SystemClock, TickingClock};
pub use jitter::jittered;

/// Maximum of every number in the algorithms (2^53), so that Lua, which has only doubles, computes the
/// same decisions.
pub(crate) const MAX_EXACT: u64 = 1 << 53;

/// Microseconds in a second.
pub(crate) const SECOND: u64 = 1_000_000;

/// Maximum period or pause in microseconds: 100 years of 365.25 days. Today plus two of them is below 2^53.
pub(crate) const MAX_PERIOD: u64 = 36_525 * 86_400 * SECOND;

/// A point in time, in microseconds since the Unix epoch.
///
/// ```
/// use std::time::Duration;
/// use tollgate::Timestamp;
///
/// let start = Timestamp::from_micros(1_000_000);
/// assert_eq!(start + Duration::from_millis(500), Timestamp::from_micros(1_500_000));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp(u64);

impl Timestamp {
    /// The Unix epoch.
    pub const EPOCH: Timestamp = Timestamp(0);

    /// Latest supported time (2^53 − 1 µs, in the year 2255).
    pub const MAX: Timestamp = Timestamp(MAX_EXACT - 1);

    /// Creates a timestamp from microseconds since the Unix epoch, clamped to [`Timestamp::MAX`].
    #[must_use]
    pub const fn from_micros(micros: u64) -> Self {
        if micros < Self::MAX.0 { Self(micros) } else { Self::MAX }
    }

    /// Microseconds since the Unix epoch.
    #[must_use]
    pub const fn as_micros(self) -> u64 {
        self.0
    }
}

impl std::ops::Add<Duration> for Timestamp {
    type Output = Timestamp;

    /// Adds a duration, saturating at [`Timestamp::MAX`].
    fn add(self, by: Duration) -> Timestamp {
        Timestamp::from_micros(self.0.saturating_add(saturating_micros(by)))
    }
}

impl std::ops::Sub<Duration> for Timestamp {
    type Output = Timestamp;

    /// Subtracts a duration, saturating at the epoch.
    fn sub(self, by: Duration) -> Timestamp {
        Timestamp(self.0.saturating_sub(saturating_micros(by)))
    }
}

/// Returns a duration in microseconds, rounded up and saturating at `u64::MAX`.
pub(crate) fn micros_up(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos().div_ceil(1000)).unwrap_or(u64::MAX)
}

/// Returns a duration in microseconds, rounded down and saturating at `u64::MAX`.
pub(crate) fn saturating_micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}
