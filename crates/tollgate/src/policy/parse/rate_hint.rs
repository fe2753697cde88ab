//! Suggestions for rates and durations that are written in another common way: `10/minute`, `10 per minute`, `10r/s`.

/// The names of a unit in policies, and other common names of it.
const UNITS: &[(&str, &[&str])] = &[
    ("ms", &["msec", "msecs", "millis", "millisecond", "milliseconds"]),
    ("s", &["sec", "secs", "second", "seconds"]),
    ("min", &["m", "mins", "minute", "minutes"]),
    ("h", &["hr", "hrs", "hour", "hours"]),
    ("d", &["day", "days"]),
    ("w", &["wk", "week", "weeks"]),
    ("month", &["mo", "mon", "months"]),
    ("year", &["y", "yr", "years"]),
];

/// Words between a count and its period that policies do not use.
const COUNTED: &[&str] = &["", "r", "req", "reqs", "request", "requests"];

/// Returns the rate that `text` probably means.
pub(super) fn rate(text: &str) -> Option<String> {
    let text = compact(text);
    let (count, rest) = text.split_at_checked(digits(&text))?;
    let (counted, period) = rest.split_once('/').or_else(|| rest.split_once("per"))?;
    if count.is_empty() || !COUNTED.contains(&counted) {
        return None;
    }
    Some(format!("{count}/{}", compact_duration(period)?))
}

/// Returns the duration that `text` probably means.
pub(super) fn duration(text: &str) -> Option<String> {
    compact_duration(&compact(text))
}

fn compact_duration(text: &str) -> Option<String> {
    let (number, unit) = text.split_at_checked(digits(text))?;
    let is_unit = |(name, others): &&(&str, &[&str])| *name == unit || others.contains(&unit);
    let (unit, _) = UNITS.iter().find(is_unit)?;
    Some(format!("{number}{unit}"))
}

/// Returns the text in lower case and without spaces; empty if it is too long to be a rate.
fn compact(text: &str) -> String {
    let short = if text.len() <= 40 { text } else { "" };
    short
        .chars()
        .filter(|char| !char.is_whitespace())
        .map(|char| char.to_ascii_lowercase())
        .collect()
}

fn digits(text: &str) -> usize {
    text.bytes().take_while(u8::is_ascii_digit).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suggests_the_valid_form() {
        for (text, expected) in [
            ("10/minute", "10/min"),
            ("10/minutes", "10/min"),
            ("10/m", "10/min"),
            ("10/Min", "10/min"),
            ("10 / min", "10/min"),
            ("10 per minute", "10/min"),
            ("5/sec", "5/s"),
            ("5r/s", "5/s"),
            ("100 requests/2 hours", "100/2h"),
            ("1/day", "1/d"),
            ("1/months", "1/month"),
        ] {
            assert_eq!(rate(text).as_deref(), Some(expected), "{text}");
        }
        for text in ["", "10", "ten/min", "10/fortnight", "-1/min", "1.5/min", "١/s"] {
            assert_eq!(rate(text), None, "{text}");
        }
        assert_eq!(duration("30 seconds").as_deref(), Some("30s"));
        assert_eq!(duration("soon"), None);
    }
}
