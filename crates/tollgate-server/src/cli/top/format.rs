//! Short formats of numbers and times.

/// Placeholder for a missing value.
pub(super) const MISSING: &str = "-";

/// Formats a count or a rate.
pub(super) fn count(number: f64) -> String {
    let steps = [(1e12, 1e12, "T"), (1e9, 1e9, "G"), (1e6, 1e6, "M"), (1e5, 1e3, "k")];
    for (from, unit, name) in steps {
        if number >= from {
            return format!("{:.1}{name}", number / unit);
        }
    }
    // NaN and negative numbers become 0.
    let number = number.max(0.0);
    let whole = number >= 100.0 || number.fract() < 0.05;
    if whole { format!("{number:.0}") } else { format!("{number:.1}") }
}

/// Formats a time given in microseconds.
pub(super) fn micros(us: Option<f64>) -> String {
    match us {
        None => MISSING.to_owned(),
        Some(us) if us < 1e3 => format!("{:.0}µs", us.max(0.0)),
        Some(us) if us < 1e6 => format!("{:.1}ms", us / 1e3),
        Some(us) => format!("{:.1}s", us / 1e6),
    }
}

/// Formats the age of `then` at `now`, both in Unix milliseconds.
pub(super) fn ago(now: i64, then: i64) -> String {
    length(now.saturating_sub(then).max(0) / 1000)
}

/// Formats a length given in seconds.
pub(super) fn length(seconds: i64) -> String {
    match seconds {
        ..120 => format!("{seconds}s"),
        120..7200 => format!("{}m", seconds / 60),
        _ => format!("{}h", seconds / 3600),
    }
}

/// Returns `part` as a percentage of `whole`; 0 if `whole` is 0.
pub(super) fn percent(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { (part / whole * 100.0).clamp(0.0, 100.0) } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_numbers_in_few_characters() {
        let counts = [(0.0, "0"), (0.2, "0.2"), (7.0, "7"), (12.34, "12.3"), (123.4, "123")];
        let more = [(99_999.0, "99999"), (123_456.0, "123.5k"), (2.5e6, "2.5M"), (3e9, "3.0G")];
        for (number, text) in counts.into_iter().chain(more) {
            assert_eq!(count(number), text);
        }
        assert_eq!([count(f64::NAN), count(-3.0), count(4e15)], ["0", "0", "4000.0T"]);
        assert_eq!(micros(None), "-");
        assert_eq!([210.0, 1500.0, 2.5e6].map(|us| micros(Some(us))), ["210µs", "1.5ms", "2.5s"]);
    }

    #[test]
    fn formats_extreme_times() {
        assert_eq!(ago(10_000, 7_900), "2s");
        assert_eq!(ago(1_000, 9_000), "0s");
        assert_eq!(ago(i64::MAX, i64::MIN), "2562047788015h");
        assert_eq!([length(119), length(120), length(7200)], ["119s", "2m", "2h"]);
        assert_eq!([percent(1.0, 4.0), percent(0.0, 0.0), percent(5.0, 4.0)], [25.0, 0.0, 100.0]);
    }
}
