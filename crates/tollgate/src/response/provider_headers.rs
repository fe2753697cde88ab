//! Headers in the style of LLM providers: limit, remaining amount and reset of requests and of tokens.

use std::cmp::Reverse;
use std::fmt;
use std::time::Duration;

use super::headers::FieldValue;
use super::policy_name::enforced;
use crate::decision::Status;
use crate::time::rounding;

/// The headers of a unit: limit, remaining amount, reset.
struct UnitHeaders {
    unit: &'static str,
    names: [&'static str; 3],
}

/// The units that have headers, in output order.
const UNITS: [UnitHeaders; 2] = [
    UnitHeaders { unit: "requests", names: [NAMES[0], NAMES[1], NAMES[2]] },
    UnitHeaders { unit: "tokens", names: [NAMES[3], NAMES[4], NAMES[5]] },
];

/// The names of all headers, in output order.
pub(super) const NAMES: [&str; 6] = [
    "x-ratelimit-limit-requests",
    "x-ratelimit-remaining-requests",
    "x-ratelimit-reset-requests",
    "x-ratelimit-limit-tokens",
    "x-ratelimit-remaining-tokens",
    "x-ratelimit-reset-tokens",
];

/// Calls `put` with the headers of each unit that an enforced limit counts.
pub(super) fn write(statuses: &[Status<'_>], put: impl FnMut(&'static str, FieldValue)) {
    write_units(statuses, unit_of, put);
}

/// Returns the unit that a limit counts.
fn unit_of<'s>(status: &'s Status<'_>) -> &'s str {
    status.limit().unit().as_str()
}

fn write_units(
    statuses: &[Status<'_>],
    unit_of: impl for<'s> Fn(&'s Status<'_>) -> &'s str,
    mut put: impl FnMut(&'static str, FieldValue),
) {
    for UnitHeaders { unit, names: [limit, remaining, reset] } in UNITS {
        let of_unit = enforced(statuses).filter(|status| unit_of(status) == unit);
        // Clients read the figures as a rate, so concurrency limits come last.
        let strictness = |status: &&Status<'_>| {
            let holds_slots = status.limit().algorithm().holds_slots();
            (holds_slots, status.remaining(), Reverse(status.reset_after()))
        };
        if let Some(status) = of_unit.min_by_key(strictness) {
            put(limit, FieldValue::Number(status.limit().capacity()));
            put(remaining, FieldValue::Number(status.remaining()));
            put(reset, FieldValue::Text(ShortTime(status.reset_after()).to_string()));
        }
    }
}

/// A time in hours, minutes and seconds, rounded up: `1s`, `6m0s`, `1h0m0s`.
struct ShortTime(Duration);

impl fmt::Display for ShortTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = rounding::seconds(self.0);
        let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
        match (hours, minutes) {
            (0, 0) => write!(f, "{seconds}s"),
            (0, _) => write!(f, "{minutes}m{seconds}s"),
            _ => write!(f, "{hours}h{minutes}m{seconds}s"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{ShortTime, write_units};
    use crate::algorithm::{Reply, Verdict};
    use crate::decision::Status;
    use crate::limit::Limit;
    use crate::plan::Mode;
    use crate::quota::Quota;

    #[test]
    fn times_have_hours_minutes_and_seconds() {
        for (millis, text) in [
            (0, "0s"),
            (1, "1s"),
            (999, "1s"),
            (1001, "2s"),
            (59_001, "1m0s"),
            (360_000, "6m0s"),
            (3_599_000, "59m59s"),
            (3_599_001, "1h0m0s"),
            (3_661_000, "1h1m1s"),
            (31 * 86_400_000, "744h0m0s"),
        ] {
            assert_eq!(ShortTime(Duration::from_millis(millis)).to_string(), text);
        }
    }

    /// A limit of `count` per minute, with this remaining amount and reset. Its name is that of its unit.
    fn limit(unit: &str, count: u64) -> Limit {
        Limit::fixed_window(Quota::per_minute(count)).unwrap().named(unit).unwrap()
    }

    fn status(limit: &Limit, mode: Mode, remaining: u64, reset: u64) -> Status<'_> {
        Status::new(limit, mode, Reply::new(Verdict::Allow, remaining, Duration::from_secs(reset)))
    }

    fn headers(statuses: &[Status<'_>]) -> Vec<String> {
        let mut headers = Vec::new();
        let put = |name, value| headers.push(format!("{name}: {value}"));
        write_units(statuses, |status| status.limit().name(), put);
        headers
    }

    #[test]
    fn each_unit_shows_its_strictest_limit() {
        let (few, many, other) = (limit("tokens", 10), limit("tokens", 90), limit("usd", 1));
        let requests = limit("requests", 5);
        let shadow = Mode::Shadow { group: 0 };
        let statuses = [
            status(&many, Mode::Enforce, 7, 3),
            status(&few, Mode::Enforce, 7, 60),
            status(&few, Mode::Enforce, 8, 600),
            status(&many, shadow, 1, 1),
            status(&requests, Mode::Enforce, 5, 0),
            status(&other, Mode::Enforce, 0, 0),
        ];
        let of_tokens = [
            "x-ratelimit-limit-tokens: 10",
            "x-ratelimit-remaining-tokens: 7",
            "x-ratelimit-reset-tokens: 1m0s",
        ];
        let of_requests = [
            "x-ratelimit-limit-requests: 5",
            "x-ratelimit-remaining-requests: 5",
            "x-ratelimit-reset-requests: 0s",
        ];
        assert_eq!(headers(&statuses), [of_requests, of_tokens].concat());
        assert_eq!(headers(&statuses[..3]), of_tokens);
        assert_eq!(headers(&statuses[3..4]), [""; 0]);
    }

    #[test]
    fn a_concurrency_limit_is_shown_only_without_a_rate() {
        let slots = Limit::concurrency(5, Duration::from_secs(60)).unwrap();
        let slots = slots.named("requests").unwrap();
        let rate = limit("requests", 60);
        let (slots, rate) =
            (status(&slots, Mode::Enforce, 4, 60), status(&rate, Mode::Enforce, 59, 1));
        assert_eq!(headers(&[slots, rate])[1], "x-ratelimit-remaining-requests: 59");
        assert_eq!(headers(&[slots])[1], "x-ratelimit-remaining-requests: 4");
    }
}
