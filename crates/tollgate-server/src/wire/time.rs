//! Moments as people and programs read them.

use jiff::Timestamp as Instant;
use tollgate::Timestamp;

/// RFC 3339 in UTC, as fine as the moment is.
pub(crate) fn rfc3339(moment: Timestamp) -> String {
    let micros = i64::try_from(moment.as_micros()).unwrap_or(i64::MAX);
    Instant::from_microsecond(micros).unwrap_or(Instant::MAX).to_string()
}

/// The moment of an RFC 3339 text, or why it is none that can be counted in.
pub(crate) fn moment(text: &str) -> Result<Timestamp, String> {
    let wrong = "must be a time as in 2030-01-31T18:00:00Z";
    let moment: Instant = text.parse().map_err(|_| wrong.to_owned())?;
    let micros = u64::try_from(moment.as_microsecond()).map_err(|_| wrong.to_owned())?;
    if micros >= 1 << 53 {
        return Err("must be before the year 2255".to_owned());
    }
    Ok(Timestamp::from_micros(micros))
}
