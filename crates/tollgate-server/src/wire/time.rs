//! Moments as people and programs read them.

use jiff::Timestamp as Instant;
use tollgate::Timestamp;

/// RFC 3339 in UTC, as fine as the moment is.
pub(crate) fn rfc3339(moment: Timestamp) -> String {
    let micros = i64::try_from(moment.as_micros()).unwrap_or(i64::MAX);
    Instant::from_microsecond(micros).unwrap_or(Instant::MAX).to_string()
}
