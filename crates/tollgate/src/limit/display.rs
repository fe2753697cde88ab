//! The text of a limit in the notation of policy files: `60/min`, `5 concurrent`, `blocked`.

use std::fmt;
use std::time::Duration;

use super::Limit;
use crate::algorithm::CalendarUnit;
use crate::unit::Unit;

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

/// A limit is shown as in a policy file: `60/min`, `1000/month`, `5 concurrent`. A limit of 0 is `blocked`. A limit in
/// another unit than `requests` is shown with it: `90000 tokens/min`. The burst is not part of the text.
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
                let unit = UnitText(self.unit.as_str());
                write!(formatter, "{}{unit}/{}", self.count, calendar.unit().rate_unit())
            }
            _ => {
                let window = Some(self.window).filter(|window| !window.is_zero());
                RateText { count: self.count, window, unit: self.unit.as_str() }.fmt(formatter)
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
/// let rate = RateText { count: 10, window: Some(Duration::from_secs(120)), unit: "requests" };
/// assert_eq!(rate.to_string(), "10/2min");
/// assert_eq!(RateText { unit: "tokens", ..rate }.to_string(), "10 tokens/2min");
/// assert_eq!(RateText { count: 5, window: None, unit: "requests" }.to_string(), "5 concurrent");
/// ```
#[derive(Debug, Clone, Copy)]
pub struct RateText<'a> {
    /// The count; 0 is a block.
    pub count: u64,
    /// The window; `None` for slots.
    pub window: Option<Duration>,
    /// The unit; `requests` is not shown.
    pub unit: &'a str,
}

impl fmt::Display for RateText<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (count, window) = match (self.count, self.window) {
            (0, _) => return formatter.write_str("blocked"),
            (count, None) => return write!(formatter, "{count} concurrent"),
            (count, Some(window)) => (count, window.as_micros()),
        };
        let unit = UNITS.into_iter().find(|(_, length)| window.is_multiple_of(*length));
        let (unit, length) = unit.unwrap_or(("us", 1));
        let counted = UnitText(self.unit);
        match window / length {
            1 => write!(formatter, "{count}{counted}/{unit}"),
            units => write!(formatter, "{count}{counted}/{units}{unit}"),
        }
    }
}

/// The unit after a count, with a space before it; empty for `requests`.
struct UnitText<'a>(&'a str);

impl fmt::Display for UnitText<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == Unit::requests().as_str() {
            return Ok(());
        }
        write!(formatter, " {}", self.0)
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

    fn in_tokens(limit: Limit) -> Limit {
        limit.in_unit(Unit::new("tokens").unwrap()).unwrap()
    }

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
            (in_tokens(Limit::from_rate("5/90s").unwrap()), "5 tokens/90s"),
            (
                in_tokens(Limit::calendar_window(9, CalendarUnit::Month, "UTC").unwrap()),
                "9 tokens/month",
            ),
        ];
        for (limit, text) in limits {
            assert_eq!(limit.to_string(), text);
        }
    }
}
