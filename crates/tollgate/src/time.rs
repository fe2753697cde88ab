//! Time as the algorithms count it: whole microseconds.

use std::time::Duration;

/// Every number an algorithm touches stays at or below this, so that a language with only doubles
/// computes the same decisions.
pub(crate) const MAX_EXACT: u64 = 1 << 53;

/// Microseconds in a second.
pub(crate) const SECOND: u64 = 1_000_000;

/// The longest period or pause: 100 years of 365.25 days. Adding two of them to today stays exact.
pub(crate) const MAX_PERIOD: u64 = 36_525 * 86_400 * SECOND;

/// A moment, in microseconds since the Unix epoch.
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

    /// The last moment that can be told apart from the one before it in every store (the year 2255).
    pub const MAX: Timestamp = Timestamp(MAX_EXACT - 1);

    /// A moment so many microseconds after the Unix epoch; later than [`Timestamp::MAX`] is `MAX`.
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

    /// Moves forward, stopping at [`Timestamp::MAX`].
    fn add(self, by: Duration) -> Timestamp {
        Timestamp::from_micros(self.0.saturating_add(saturating_micros(by)))
    }
}

impl std::ops::Sub<Duration> for Timestamp {
    type Output = Timestamp;

    /// Moves back, stopping at the epoch.
    fn sub(self, by: Duration) -> Timestamp {
        Timestamp(self.0.saturating_sub(saturating_micros(by)))
    }
}

/// The duration in microseconds, a fraction of one counted whole; `u64::MAX` when there are more.
pub(crate) fn micros_up(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos().div_ceil(1000)).unwrap_or(u64::MAX)
}

/// Whole microseconds of a duration, `u64::MAX` when there are more.
pub(crate) fn saturating_micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}
