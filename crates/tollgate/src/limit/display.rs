//! The text of a limit in the notation of policy files: `60/min`, `5 concurrent`, `blocked`.

use std::fmt;
use std::time::Duration;

use super::Limit;
use crate::algorithm::CalendarUnit;

/// Units of a window with their length in microseconds, longest first.
const UNITS: [(&str, u128); 7] = [
    ("w", 604_800_000_000),
    ("d", 86_400_000_000),
    ("h", 3_600_000_000),
    ("min", 60_000_000),
    ("s", 1_000_000),
    ("ms", 1000),
    ("us", 1),
];

/// A limit is shown as in a policy file: `60/min`, `1000/month`, `5 concurrent`. A limit of 0 is `blocked`. The burst is
/// not part of the text.
///
/// ```
/// use tollgate::{Limit, Quota};
///
/// assert_eq!(Limit::token_bucket(Quota::per_minute(60))?.to_string(), "60/min");
/// assert_eq!(Limit::block().to_string(), "blocked");
/// # Ok::<(), tollgate::QuotaError>(())
/// ```
impl fmt::Display for Limit {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.calendar() {
            Some(calendar) if self.count > 0 => {
                write!(formatter, "{}/{}", self.count, calendar.unit().rate_unit())
            }
            _ => {
                let window = Some(self.window).filter(|window| !window.is_zero());
                RateText { count: self.count, window }.fmt(formatter)
            }
        }
    }
}

/// A count per window, or a number of slots if there is no window, as text like that of a [`Limit`].
///
/// ```
/// use std::time::Duration;
/// use tollgate::RateText;
///
/// let rate = RateText { count: 10, window: Some(Duration::from_secs(120)) };
/// assert_eq!(rate.to_string(), "10/2min");
/// assert_eq!(RateText { count: 5, window: None }.to_string(), "5 concurrent");
/// ```
#[derive(Debug, Clone, Copy)]
pub struct RateText {
    /// The count; 0 is a block.
    pub count: u64,
    /// The window; `None` for slots.
    pub window: Option<Duration>,
}

impl fmt::Display for RateText {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (count, window) = match (self.count, self.window) {
            (0, _) => return formatter.write_str("blocked"),
            (count, None) => return write!(formatter, "{count} concurrent"),
            (count, Some(window)) => (count, window.as_micros()),
        };
        let unit = UNITS.into_iter().find(|(_, length)| window.is_multiple_of(*length));
        let (unit, length) = unit.unwrap_or(("us", 1));
        match window / length {
            1 => write!(formatter, "{count}/{unit}"),
            units => write!(formatter, "{count}/{units}{unit}"),
        }
    }
}

impl CalendarUnit {
    /// Returns one unit as the period of a rate.
    pub(crate) const fn rate_unit(self) -> &'static str {
        match self {
            Self::Second => "s",
            Self::Minute => "min",
            Self::Hour => "h",
            Self::Day => "d",
            Self::Week => "w",
            Self::Month => "month",
            Self::Year => "year",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Quota;

    #[test]
    fn limits_are_shown_as_in_a_policy_file() {
        let limits = [
            (Limit::fixed_window(Quota::per_minute(10)).unwrap(), "10/min"),
            (Limit::from_rate("5/250ms").unwrap(), "5/250ms"),
            (Limit::from_rate("5/90s").unwrap(), "5/90s"),
            (Limit::from_rate("5/7200s").unwrap(), "5/2h"),
            (Limit::calendar_window(9, CalendarUnit::Month, "UTC").unwrap(), "9/month"),
            (Limit::concurrency(5, Duration::from_secs(1)).unwrap(), "5 concurrent"),
            (Limit::block(), "blocked"),
        ];
        for (limit, text) in limits {
            assert_eq!(limit.to_string(), text);
        }
    }
}
