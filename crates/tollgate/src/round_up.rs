//! Times as they are shown outside, rounded up: who waits as long as told is not refused for a
//! fraction.

use std::time::Duration;

/// Whole milliseconds, a part of one counted whole.
///
/// ```
/// use std::time::Duration;
/// use tollgate::round_up;
///
/// assert_eq!(round_up::millis(Duration::from_micros(1)), 1);
/// assert_eq!(round_up::millis(Duration::from_millis(5)), 5);
/// ```
#[must_use]
pub fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}

/// Whole seconds, a part of one counted whole.
///
/// ```
/// use std::time::Duration;
/// use tollgate::round_up;
///
/// assert_eq!(round_up::seconds(Duration::from_millis(900)), 1);
/// assert_eq!(round_up::seconds(Duration::ZERO), 0);
/// ```
#[must_use]
pub fn seconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos().div_ceil(1_000_000_000)).unwrap_or(u64::MAX)
}
