//! Default limit from `RATE_LIMIT_GLOBAL_CAPACITY` and `RATE_LIMIT_GLOBAL_REFILL_PER_SEC`.

use std::time::Duration;

use tollgate::{Limit, Policy, Quota};

use super::Environment;
use crate::error::SettingsError;

const CAPACITY: &str = "RATE_LIMIT_GLOBAL_CAPACITY";
const REFILL: &str = "RATE_LIMIT_GLOBAL_REFILL_PER_SEC";
/// Fixed, so that a changed refill converts the state of a client. A limit without a name is a new one if its window
/// changes.
const NAME: &str = "global";
const MILLION: u64 = 1_000_000;

/// Returns a token bucket if either variable is set (defaults: 60 tokens, 1 per second); otherwise 100 per minute.
pub(super) fn from_environment(environment: &Environment) -> Result<Limit, SettingsError> {
    let (capacity, refill) = (environment.get(CAPACITY), environment.get(REFILL));
    if capacity.is_none() && refill.is_none() {
        return Ok(Policy::builtin_limit());
    }
    let capacity = capacity.map_or(Ok(60), parse_capacity)?;
    let refill = refill.map_or(Ok(MILLION), parse_millionths)?;
    let quota = per_whole_seconds(refill).try_burst(capacity);
    let quota = quota.map_err(|error| SettingsError::new(CAPACITY, error))?;
    let limit = Limit::token_bucket(quota).and_then(|limit| limit.named(NAME));
    limit.map_err(|error| SettingsError::new(REFILL, error))
}

fn parse_capacity(text: &str) -> Result<u64, SettingsError> {
    text.trim().parse().map_err(|_| {
        SettingsError::new(CAPACITY, format!("{text:?} is not a whole number of tokens"))
    })
}

/// Parses a decimal number of tokens per second into millionths.
fn parse_millionths(text: &str) -> Result<u64, SettingsError> {
    let invalid = || {
        let reason = format!(
            "{text:?} is not a number of tokens per second above 0 with at most 6 decimals"
        );
        SettingsError::new(REFILL, reason)
    };
    let (whole, decimals) = text.trim().split_once('.').unwrap_or((text.trim(), ""));
    let is_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || decimals.len() > 6 || !is_digits(whole) || !is_digits(decimals) {
        return Err(invalid());
    }
    let digits = format!("{whole}{decimals:0<6}");
    digits.parse().ok().filter(|millionths| (1..1 << 53).contains(millionths)).ok_or_else(invalid)
}

/// Returns the rate with the shortest window of whole seconds: 0.5 per second becomes 1 per 2 s.
fn per_whole_seconds(millionths: u64) -> Quota {
    let mut seconds = MILLION;
    let mut count = millionths;
    for prime in [2, 5] {
        while seconds.is_multiple_of(prime) && count.is_multiple_of(prime) {
            (seconds, count) = (seconds / prime, count / prime);
        }
    }
    Quota::new(count, Duration::from_secs(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limit(pairs: [(&str, &str); 2]) -> Result<Limit, SettingsError> {
        from_environment(&Environment::from(pairs))
    }

    #[test]
    fn defaults_to_100_per_minute() {
        let limit = from_environment(&Environment::default()).unwrap();
        assert_eq!((limit.count(), limit.window().as_secs()), (100, 60));
        assert_eq!(limit.algorithm().as_str(), "sliding_window");
    }

    #[test]
    fn either_variable_makes_a_token_bucket() {
        let limit = limit([(CAPACITY, "10"), ("X", "")]).unwrap();
        assert_eq!((limit.capacity(), limit.count(), limit.window().as_secs()), (10, 1, 1));
        let limit = self::limit([(REFILL, "2.5"), ("X", "")]).unwrap();
        assert_eq!((limit.capacity(), limit.count(), limit.window().as_secs()), (60, 5, 2));
        let limit = self::limit([(REFILL, "0.000001"), ("X", "")]).unwrap();
        assert_eq!((limit.count(), limit.window().as_secs()), (1, 1_000_000));
    }

    #[test]
    fn errors_name_the_variable() {
        for (name, bad) in [
            (CAPACITY, "0"),
            (CAPACITY, "-1"),
            (CAPACITY, "ten"),
            (CAPACITY, "18446744073709551615"),
            (REFILL, "0"),
            (REFILL, "-1"),
            (REFILL, "NaN"),
            (REFILL, "1e308"),
            (REFILL, "0.0000001"),
            (REFILL, "."),
            (REFILL, "99999999999999999999"),
        ] {
            let error = limit([(name, bad), ("X", "")]).unwrap_err().to_string();
            assert!(error.starts_with(name), "{name}={bad}: {error}");
        }
    }
}
