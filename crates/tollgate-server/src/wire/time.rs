//! RFC 3339 times.

use jiff::Timestamp as Instant;
use tollgate::Timestamp;

/// Formats a time in UTC with up to microsecond precision.
pub(crate) fn rfc3339(time: Timestamp) -> String {
    let micros = i64::try_from(time.as_micros()).unwrap_or(i64::MAX);
    Instant::from_microsecond(micros).unwrap_or(Instant::MAX).to_string()
}

/// Parses a time. The error describes what is wrong with the text.
pub(crate) fn parse_rfc3339(text: &str) -> Result<Timestamp, String> {
    let invalid = "must be an RFC 3339 time such as 2030-01-31T18:00:00Z";
    let time: Instant = text.parse().map_err(|_| invalid.to_owned())?;
    let micros = u64::try_from(time.as_microsecond()).map_err(|_| invalid.to_owned())?;
    if micros >= 1 << 53 {
        return Err("must be before the year 2255".to_owned());
    }
    Ok(Timestamp::from_micros(micros))
}
