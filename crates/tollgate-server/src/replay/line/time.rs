//! Times of log lines, in microseconds since the Unix epoch.

use super::LineError;

const INVALID: LineError =
    "the time is not RFC 3339, a Unix time or a date such as 10/Oct/2026:13:55:36 +0200";

const MONTHS: [&[u8; 3]; 12] = [
    b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec",
];

/// Latest supported time: 2^53 µs.
const MAX_MICROS: i64 = (1 << 53) - 1;

/// Reads digits and separators from the start of a text.
struct Scanner<'t>(&'t [u8]);

impl Scanner<'_> {
    fn digits(&mut self, count: usize) -> Option<i64> {
        let (digits, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        let mut number = 0;
        for digit in digits {
            number = number * 10 + i64::from(digit.is_ascii_digit().then(|| digit - b'0')?);
        }
        Some(number)
    }

    fn any_of(&mut self, bytes: &[u8]) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        bytes.contains(first).then_some(*first)
    }

    /// Reads a fraction of a second after its point, as microseconds; further digits are dropped.
    fn fraction(&mut self) -> i64 {
        let (mut micros, mut unit) = (0, 100_000);
        while let Some((digit, rest)) =
            self.0.split_first().filter(|(byte, _)| byte.is_ascii_digit())
        {
            micros += i64::from(digit - b'0') * unit;
            unit /= 10;
            self.0 = rest;
        }
        micros
    }

    /// Reads `Z`, `+0200` or `+02:00`, as seconds east of UTC.
    fn offset(&mut self) -> Option<i64> {
        let sign = match self.any_of(b"Zz+-")? {
            b'+' => 1,
            b'-' => -1,
            _ => return Some(0),
        };
        let hours = self.digits(2)?;
        if self.0.first() == Some(&b':') {
            self.any_of(b":")?;
        }
        let minutes = self.digits(2)?;
        (hours < 24 && minutes < 60).then_some(sign * (hours * 3600 + minutes * 60))
    }

    fn clock(&mut self) -> Option<i64> {
        let hour = self.digits(2)?;
        self.any_of(b":")?;
        let minute = self.digits(2)?;
        self.any_of(b":")?;
        let second = self.digits(2)?;
        // 60 is a leap second.
        (hour < 24 && minute < 60 && second <= 60).then_some(hour * 3600 + minute * 60 + second)
    }
}

/// Days from the Unix epoch to a date of the Gregorian calendar.
fn days(year: i64, month: i64, day: i64) -> Option<i64> {
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    // Years begin in March, so that a leap day is the last day of a year.
    let year = if month <= 2 { year - 1 } else { year };
    let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    Some(
        era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year
            - 719_468,
    )
}

fn micros(days: i64, seconds: i64, offset: i64, fraction: i64) -> Option<u64> {
    let total = (days * 86_400 + seconds - offset) * 1_000_000 + fraction;
    u64::try_from(total).ok().filter(|_| total <= MAX_MICROS)
}

/// Parses the date of an access log: `10/Oct/2026:13:55:36 +0200`.
pub(super) fn access_log(text: &[u8]) -> Result<u64, LineError> {
    let mut scanner = Scanner(text);
    let mut parse = || {
        let day = scanner.digits(2)?;
        scanner.any_of(b"/")?;
        let (name, rest) = scanner.0.split_first_chunk::<3>()?;
        let month = i64::try_from(MONTHS.iter().position(|month| *month == name)?).ok()? + 1;
        scanner.0 = rest;
        scanner.any_of(b"/")?;
        let year = scanner.digits(4)?;
        scanner.any_of(b":")?;
        let seconds = scanner.clock()?;
        scanner.any_of(b" ")?;
        let offset = scanner.offset()?;
        micros(days(year, month, day)?, seconds, offset, 0).filter(|_| scanner.0.is_empty())
    };
    parse().ok_or(INVALID)
}

/// Parses the text of a time: RFC 3339, the date of an access log, or a Unix time.
pub(super) fn text(text: &[u8]) -> Result<u64, LineError> {
    let mut scanner = Scanner(text);
    let mut rfc3339 = || {
        let year = scanner.digits(4)?;
        scanner.any_of(b"-")?;
        let month = scanner.digits(2)?;
        scanner.any_of(b"-")?;
        let day = scanner.digits(2)?;
        scanner.any_of(b"Tt ")?;
        let seconds = scanner.clock()?;
        let mut fraction = 0;
        if scanner.0.first() == Some(&b'.') {
            scanner.any_of(b".")?;
            fraction = scanner.fraction();
        }
        let offset = scanner.offset()?;
        micros(days(year, month, day)?, seconds, offset, fraction).filter(|_| scanner.0.is_empty())
    };
    rfc3339().or_else(|| unix_text(text)).map_or_else(|| access_log(text), Ok)
}

fn unix_text(text: &[u8]) -> Option<u64> {
    let point = text.iter().position(|byte| *byte == b'.').unwrap_or(text.len());
    let (whole, fraction) = text.split_at_checked(point)?;
    if whole.is_empty() || whole.len() > 16 {
        return None;
    }
    let whole = u64::try_from(Scanner(whole).digits(whole.len())?).ok()?;
    let mut scanner = Scanner(fraction.get(1..).unwrap_or_default());
    let fraction = u64::try_from(scanner.fraction()).ok()?;
    if !scanner.0.is_empty() {
        return None;
    }
    // A fraction belongs to seconds; milliseconds and microseconds are whole numbers.
    let micros = unix(whole).ok()?;
    Some(if whole < MIN_MILLIS { micros + fraction } else { micros })
}

/// Smallest number that is read as milliseconds, and as microseconds: years 5138 and 1973.
const MIN_MILLIS: u64 = 100_000_000_000;
const MIN_MICROS: u64 = 100_000_000_000_000;

/// Reads a Unix time in seconds, milliseconds or microseconds, by its magnitude.
pub(super) fn unix(number: u64) -> Result<u64, LineError> {
    let micros = match number {
        MIN_MICROS.. => number,
        MIN_MILLIS.. => number * 1000,
        _ => number * 1_000_000,
    };
    if micros > MAX_MICROS.unsigned_abs() {
        Err("the time is after the year 2255")
    } else {
        Ok(micros)
    }
}

/// Reads a Unix time with a fraction of a second.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the range is checked; rounded to the nearest microsecond"
)]
pub(super) fn unix_float(number: f64) -> Result<u64, LineError> {
    let factor = if number < 1e11 {
        1e6
    } else if number < 1e14 {
        1e3
    } else {
        1.0
    };
    let micros = (number * factor).round();
    if (0.0..9e15).contains(&micros) { Ok(micros as u64) } else { Err(INVALID) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_all_notations_agree() {
        let expected = Ok(1_791_633_336_000_000);
        assert_eq!(access_log(b"10/Oct/2026:13:55:36 +0200"), expected);
        for same in [
            "2026-10-10T11:55:36Z",
            "2026-10-10 11:55:36.000+00:00",
            "2026-10-10T13:55:36+02:00",
            "10/Oct/2026:06:55:36 -0500",
            "1791633336",
            "1791633336.000",
            "1791633336000",
            "1791633336000000",
        ] {
            assert_eq!(text(same.as_bytes()), expected, "{same}");
        }
        assert_eq!(text(b"2026-10-10T11:55:36.1234567Z"), Ok(1_791_633_336_123_456));
        assert_eq!(text(b"1791633336.25"), Ok(1_791_633_336_250_000));
        assert_eq!(unix_float(1_791_633_336.123), Ok(1_791_633_336_123_000));
        assert_eq!(text(b"2000-02-29T00:00:00Z"), Ok(951_782_400_000_000));
        assert_eq!(text(b"1970-01-01T00:00:00Z"), Ok(0));
    }

    #[test]
    fn invalid_times_are_refused() {
        for invalid in [
            "",
            "-",
            "yesterday",
            "2026-13-01T00:00:00Z",
            "2026-10-10T25:00:00Z",
            "1969-12-31T23:59:59Z",
            "2026-10-10T11:55:36",
            "10/Okt/2026:13:55:36 +0200",
            "99999999999999999",
            "1.2.3",
            "2026-10-10T11:55:36Zx",
        ] {
            assert!(text(invalid.as_bytes()).is_err(), "{invalid}");
        }
    }
}
