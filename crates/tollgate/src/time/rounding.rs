//! Rounding of times for output. All times are rounded up, so that a client that waits for the reported
//! time is not refused because of a fraction.

use std::time::Duration;

use crate::time::{SECOND, Timestamp};

/// Returns a duration in milliseconds, rounded up.
///
/// ```
/// use std::time::Duration;
/// use tollgate::rounding;
///
/// assert_eq!(rounding::millis(Duration::from_micros(1)), 1);
/// assert_eq!(rounding::millis(Duration::from_millis(5)), 5);
/// ```
#[must_use]
pub fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}

/// Returns a duration in seconds, rounded up.
///
/// ```
/// use std::time::Duration;
/// use tollgate::rounding;
///
/// assert_eq!(rounding::seconds(Duration::from_millis(900)), 1);
/// assert_eq!(rounding::seconds(Duration::ZERO), 0);
/// ```
#[must_use]
pub fn seconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos().div_ceil(1_000_000_000)).unwrap_or(u64::MAX)
}

/// Returns the seconds since the Unix epoch, rounded up.
///
/// ```
/// use tollgate::{Timestamp, rounding};
///
/// assert_eq!(rounding::unix_seconds(Timestamp::from_micros(1_000_001)), 2);
/// assert_eq!(rounding::unix_seconds(Timestamp::from_micros(1_000_000)), 1);
/// ```
#[must_use]
pub const fn unix_seconds(timestamp: Timestamp) -> u64 {
    timestamp.as_micros().div_ceil(SECOND)
}
