//! The value of the `Date` header, formatted once per second and connection.

use std::fmt::Write;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use httpdate::HttpDate;

/// The current value of the `Date` header.
#[derive(Debug, Default)]
pub(super) struct Date {
    text: String,
    /// When the text is no longer that of the current second.
    expires: Option<Instant>,
}

impl Date {
    /// Returns the text at the time `now`.
    pub(super) fn at(&mut self, now: Instant) -> &str {
        if self.expires.is_none_or(|expires| now >= expires) {
            self.format(now, SystemTime::now());
        }
        &self.text
    }

    #[cold]
    fn format(&mut self, now: Instant, time: SystemTime) {
        self.text.clear();
        // Writing to a `String` cannot fail.
        let _ = write!(self.text, "{}", HttpDate::from(time));
        let nanos = time.duration_since(UNIX_EPOCH).unwrap_or_default().subsec_nanos();
        self.expires = now.checked_add(Duration::from_secs(1) - Duration::from_nanos(nanos.into()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_changes_with_the_second() {
        let (mut date, now) = (Date::default(), Instant::now());
        let time = UNIX_EPOCH + Duration::new(784_111_777, 250_000_000);
        date.format(now, time);
        assert_eq!(date.at(now + Duration::from_millis(749)), "Sun, 06 Nov 1994 08:49:37 GMT");
        assert_ne!(date.at(now + Duration::from_millis(750)), "Sun, 06 Nov 1994 08:49:37 GMT");
    }
}
