//! Parses rates (`10/min`, `100/60s`) and durations (`30s`).

use std::borrow::Cow;
use std::time::Duration;

use crate::algorithm::CalendarUnit;
use crate::limit::Limit;
use crate::quota::{Quota, QuotaError, QuotaErrorKind};

use super::rate_hint as hint;

/// A count per period, or a block.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::policy) enum Rate {
    /// A count of 0: every request is refused.
    Block,
    Count {
        count: u64,
        period: Period,
    },
}

/// The period of a rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::policy) enum Period {
    Duration(Duration),
    /// A month or a year, which vary in length.
    Calendar(CalendarUnit),
}

/// Time units with their length in milliseconds.
const UNITS: &[(&str, u64)] = &[
    ("ms", 1),
    ("s", 1000),
    ("min", 60_000),
    ("h", 3_600_000),
    ("d", 86_400_000),
    ("w", 7 * 86_400_000),
];

/// The error for a value that does not have the form of a rate.
pub(super) const NOT_A_RATE: &str = "must be a rate such as 10/min, 100/60s or 5/250ms";
/// The error for a month or a year where only fixed periods are valid.
pub(in crate::policy) const NO_CALENDAR: &str =
    "months and years are not supported here; use days, as in 1000/30d";
const TOO_LONG: &str = "period must be at most 100 years (36525 days)";

impl Rate {
    /// Parses a rate. The error suggests the valid form of a rate that is written in another common way.
    pub(in crate::policy) fn parse(text: &str) -> Result<Self, Cow<'static, str>> {
        Self::parse_exact(text).map_err(|reason| {
            let nearest = hint::rate(text).filter(|rate| Self::parse_exact(rate).is_ok());
            nearest.map_or(reason.into(), |rate| {
                format!("not a valid rate, did you mean {rate}?").into()
            })
        })
    }

    fn parse_exact(text: &str) -> Result<Self, &'static str> {
        if text == "0" {
            return Ok(Self::Block);
        }
        if is_digits(text) {
            return Err("a rate needs a period after the count, as in 10/min");
        }
        let (count, period) = text.split_once('/').ok_or(NOT_A_RATE)?;
        if !is_digits(count) {
            return Err("the count before / must be a whole number of at least 0, as in 10/min");
        }
        let period = Period::parse(period)?;
        match count.parse() {
            Ok(0) => Ok(Self::Block),
            Ok(count) => Ok(Self::Count { count, period }),
            Err(_) => Err("count must be at most 2^53 - 1"),
        }
    }
}

impl Period {
    fn parse(text: &str) -> Result<Self, &'static str> {
        match text {
            "month" | "1month" => Ok(Self::Calendar(CalendarUnit::Month)),
            "year" | "1year" => Ok(Self::Calendar(CalendarUnit::Year)),
            _ if text.ends_with("month") || text.ends_with("year") => {
                Err("a period must be one month or one year, as in 1000/month")
            }
            _ => duration(text).map(Self::Duration),
        }
    }

    /// Returns the period of one calendar unit.
    pub(super) const fn of(unit: CalendarUnit) -> Self {
        match unit.length() {
            Some(duration) => Self::Duration(duration),
            None => Self::Calendar(unit),
        }
    }
}

/// Parses a duration: `60s`, or `s` for one second.
pub(in crate::policy) fn duration(text: &str) -> Result<Duration, &'static str> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at_checked(digits).unwrap_or(("", text));
    let known = UNITS.iter().find(|(name, _)| *name == unit);
    let (_, millis) =
        known.ok_or("unknown time unit; use ms, s, min, h, d or w, as in 60s or 5min")?;
    let number = if number.is_empty() { Ok(1) } else { number.parse::<u64>() };
    let millis = number.ok().and_then(|number| number.checked_mul(*millis));
    millis.map(Duration::from_millis).ok_or(TOO_LONG)
}

/// Like [`duration`]. The error suggests the valid form of a duration that is written in another common way.
pub(super) fn duration_with_hint(text: &str) -> Result<Duration, Cow<'static, str>> {
    duration(text).map_err(|reason| {
        let nearest = hint::duration(text).filter(|text| duration(text).is_ok());
        nearest.map_or(reason.into(), |text| {
            format!("not a valid duration, did you mean {text}?").into()
        })
    })
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

impl Limit {
    /// Creates a token bucket from a rate in policy syntax: `10/min`, `100/60s`. A count of 0 is a block.
    ///
    /// ```
    /// use tollgate::{Limit, Quota};
    ///
    /// assert_eq!(Limit::from_rate("10/min")?, Limit::token_bucket(Quota::per_minute(10))?);
    /// assert_eq!(Limit::from_rate("0")?, Limit::block());
    /// assert!(Limit::from_rate("10 per minute").is_err());
    /// # Ok::<(), tollgate::QuotaError>(())
    /// ```
    ///
    /// # Errors
    /// The text is not a rate, the period is a month or a year, or the numbers exceed those of a token bucket.
    pub fn from_rate(rate: &str) -> Result<Self, QuotaError> {
        let invalid =
            |reason: Cow<'_, str>| QuotaError::built(QuotaErrorKind::Rate, reason.into_owned());
        match Rate::parse(rate).map_err(invalid)? {
            Rate::Block => Ok(Self::block()),
            Rate::Count { count, period: Period::Duration(period) } => {
                Self::token_bucket(Quota::try_new(count, period)?)
            }
            Rate::Count { .. } => Err(invalid(NO_CALENDAR.into())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{CalendarUnit, Duration, Period, Rate, duration};

    #[test]
    fn parses_a_count_and_a_period() {
        let per = |count, millis| {
            Ok(Rate::Count { count, period: Period::Duration(Duration::from_millis(millis)) })
        };
        for (text, rate) in [
            ("10/min", per(10, 60_000)),
            ("100/60s", per(100, 60_000)),
            ("5/250ms", per(5, 250)),
            ("1/1d", per(1, 86_400_000)),
            ("7/2w", per(7, 14 * 86_400_000)),
            ("0", Ok(Rate::Block)),
            ("0/min", Ok(Rate::Block)),
        ] {
            assert_eq!(Rate::parse(text), rate, "{text}");
        }
        let month = Period::Calendar(CalendarUnit::Month);
        assert_eq!(Rate::parse("9/month"), Ok(Rate::Count { count: 9, period: month }));
    }

    #[test]
    fn rejects_invalid_rates() {
        for text in [
            "",
            "/",
            "10",
            "10/",
            "/min",
            "-1/s",
            "+1/s",
            "1.5/s",
            "1e3/s",
            "NaN/s",
            "10/m",
            "10/minute",
            "10 / min",
            "10/min/s",
            "0x10/s",
            "10/-1s",
            "1/2month",
            "0/",
            "0/x",
            "١/s",
            "18446744073709551616/s",
        ] {
            assert!(Rate::parse(text).is_err(), "{text}");
        }
        assert!(duration("99999999999999999999s").is_err());
        assert!(duration("18446744073709551615w").is_err());
    }
}
