//! Rates and lengths of time, as they are written: `10/min`, `100/60s`, `30s`.

use std::time::Duration;

use crate::algorithm::CalendarUnit;

/// So many in so long.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::policy) enum Rate {
    /// None at all.
    Block,
    Count {
        count: u64,
        period: Period,
    },
}

/// How long a rate's window is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::policy) enum Period {
    Length(Duration),
    /// A month or a year, whose lengths differ.
    Calendar(CalendarUnit),
}

/// Units of a fixed length, in milliseconds.
const UNITS: &[(&str, u64)] = &[
    ("ms", 1),
    ("s", 1000),
    ("min", 60_000),
    ("h", 3_600_000),
    ("d", 86_400_000),
    ("w", 7 * 86_400_000),
];

const FORM: &str = "must be a rate such as 10/min, 100/60s or 5/250ms";
const LONG: &str = "period must be at most 100 years (36525 days)";

impl Rate {
    /// Reads a rate, or says what is wrong with it.
    pub(in crate::policy) fn parse(text: &str) -> Result<Self, &'static str> {
        if text == "0" {
            return Ok(Self::Block);
        }
        if is_digits(text) {
            return Err("says how many but not in how long; write a rate such as 10/min");
        }
        let (count, period) = text.split_once('/').ok_or(FORM)?;
        if !is_digits(count) {
            return Err("the count before / must be a whole number of at least 0, such as 10/min");
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
                Err("months and years come one at a time, as in 1000/month")
            }
            _ => length(text).map(Self::Length),
        }
    }

    /// One unit of the calendar.
    pub(super) const fn of(unit: CalendarUnit) -> Self {
        match unit.length() {
            Some(length) => Self::Length(length),
            None => Self::Calendar(unit),
        }
    }
}

/// Reads a length of time: `60s`, or `s` for one second.
pub(in crate::policy) fn length(text: &str) -> Result<Duration, &'static str> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at_checked(digits).unwrap_or(("", text));
    let known = UNITS.iter().find(|(name, _)| *name == unit);
    let (_, millis) = known.ok_or("the unit must be one of ms, s, min, h, d, w (60s, 5min)")?;
    let number = if number.is_empty() { Ok(1) } else { number.parse::<u64>() };
    let millis = number.ok().and_then(|number| number.checked_mul(*millis));
    millis.map(Duration::from_millis).ok_or(LONG)
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::{CalendarUnit, Duration, Period, Rate, length};

    #[test]
    fn rates_are_a_count_and_a_length() {
        let per = |count, millis| {
            Ok(Rate::Count { count, period: Period::Length(Duration::from_millis(millis)) })
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
    fn what_is_no_rate_is_refused() {
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
        assert!(length("99999999999999999999s").is_err());
        assert!(length("18446744073709551615w").is_err());
    }
}
