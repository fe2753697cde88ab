//! Times as they are shown outside, rounded up: who waits as long as told is not refused for a
//! fraction.

use std::time::Duration;

use crate::time::{SECOND, Timestamp};

/// Whole milliseconds, a part of one counted whole.
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

/// Whole seconds, a part of one counted whole.
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

/// Whole seconds since the Unix epoch, a part of one counted whole.
///
/// ```
/// use tollgate::{Timestamp, rounding};
///
/// assert_eq!(rounding::unix_seconds(Timestamp::from_micros(1_000_001)), 2);
/// assert_eq!(rounding::unix_seconds(Timestamp::from_micros(1_000_000)), 1);
/// ```
#[must_use]
pub const fn unix_seconds(moment: Timestamp) -> u64 {
    moment.as_micros().div_ceil(SECOND)
}
