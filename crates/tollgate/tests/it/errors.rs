//! Messages of construction errors.

use std::time::Duration;

use tollgate::algorithm::CalendarUnit;
use tollgate::{
    Key, Limit, LocalLimiter, Plan, PlanErrorKind, Quota, QuotaError, QuotaErrorKind, Subject,
    Take, Unit,
};

#[track_caller]
fn assert_error<T: std::fmt::Debug>(
    result: Result<T, QuotaError>,
    kind: QuotaErrorKind,
    text: &str,
) {
    let error = result.unwrap_err();
    assert_eq!((error.kind(), error.to_string().as_str()), (kind, text));
    assert!(!error.is_transient());
}

#[test]
fn rejects_invalid_quotas() {
    use QuotaErrorKind::{Burst, Count, Period};
    let minute = Duration::from_secs(60);
    let count = "count must be at most 2^53 - 1";
    assert_error(Quota::try_new(1 << 53, minute), Count, count);
    assert_error(Quota::try_new(u64::MAX, minute), Count, count);
    assert_error(Quota::try_new(1, Duration::ZERO), Period, "period must be longer than zero");
    let too_long = "period must be at most 100 years (36525 days)";
    assert_error(Quota::try_new(1, Duration::MAX), Period, too_long);
    assert_error(Quota::try_new(1, Duration::from_secs(36_525 * 86_400 + 1)), Period, too_long);
    let fraction = "period must be in whole microseconds";
    assert_error(Quota::try_new(1, Duration::from_nanos(1500)), Period, fraction);
    assert_error(Quota::per_minute(1).try_burst(0), Burst, "burst must be at least 1");
    assert_error(Quota::per_minute(1).try_burst(1 << 53), Burst, "burst must be at most 2^53 - 1");
    assert!(Quota::try_new((1 << 53) - 1, Duration::from_secs(36_525 * 86_400)).is_ok());
}

#[test]
fn rejects_invalid_limits() {
    use QuotaErrorKind::{Burst, Count, Period, Precision, TimeZone};
    let quota_with_burst = Quota::per_minute(10).burst(20);
    for limit in [
        Limit::sliding_window(quota_with_burst),
        Limit::sliding_counter(quota_with_burst),
        Limit::fixed_window(quota_with_burst),
    ] {
        assert_error(limit, Burst, "burst is supported by token_bucket only");
    }
    assert_error(
        Limit::sliding_window(Quota::per_day(100_001)),
        Count,
        "a sliding window allows a count of at most 100000, not 100001; use sliding_counter or token_bucket",
    );
    let minute = Duration::from_secs(60);
    assert_error(
        Limit::concurrency(100_001, minute),
        Count,
        "a concurrency limit allows at most 100000 slots, not 100001",
    );
    assert_error(
        Limit::concurrency(0, minute),
        Count,
        "count must be at least 1 (use Limit::block to refuse everything)",
    );
    for (ttl, text) in [
        (Duration::ZERO, "ttl must be longer than zero"),
        (Duration::MAX, "ttl must be at most 100 years (36525 days)"),
        (Duration::from_nanos(1500), "ttl must be in whole microseconds"),
    ] {
        assert_error(Limit::concurrency(1, ttl), Period, text);
    }
    assert_error(
        Limit::token_bucket(Quota::new(1, Duration::from_secs(86_400 * 365)).burst(1_000_000)),
        Precision,
        "a token bucket of 1/31536000s with burst 1000000 needs more than 2^53 steps; \
         lower the burst or choose a rounder rate",
    );
    assert_error(
        Limit::sliding_counter(Quota::new(1 << 52, Duration::from_micros(7_000_003))),
        Precision,
        "the weighted sum of a sliding counter of 4503599627370496/7.000003s exceeds 2^53; lower the \
         count or choose a rounder period",
    );
    assert_error(
        Limit::calendar_window(1, CalendarUnit::Day, "Europe/Zurch"),
        TimeZone,
        "unknown time zone \"Europe/Zurch\"; use an IANA name such as \"UTC\" or \"Europe/Zurich\"",
    );
    assert_error(
        Limit::calendar_window(0, CalendarUnit::Day, "UTC"),
        Count,
        "count must be at least 1 (use Limit::block to refuse everything)",
    );
}

#[test]
fn rejects_invalid_names() {
    let limit = || Limit::token_bucket(Quota::per_minute(1)).unwrap();
    for name in ["", "a b", "a/b", "ü", "{x}", "60s#2", &"x".repeat(65)] {
        let error = limit().named(name).unwrap_err();
        assert_eq!(error.kind(), QuotaErrorKind::Name);
        assert!(
            error.to_string().ends_with("use 1 to 64 characters of A-Z a-z 0-9 . _ -"),
            "{error}"
        );
        assert!(limit().in_rule(name).is_err());
    }
    assert!(limit().named(&"x".repeat(64)).is_ok());
}

#[test]
fn rejects_invalid_units() {
    for name in ["", "input tokens", "ü", &"x".repeat(65)] {
        let error = Unit::new(name).unwrap_err();
        assert_eq!(error.kind(), QuotaErrorKind::Unit);
        assert!(
            error.to_string().ends_with("use 1 to 64 characters of A-Z a-z 0-9 . _ -"),
            "{error}"
        );
    }
    let slots = Limit::concurrency(1, Duration::from_secs(1)).unwrap();
    for limit in [slots, Limit::block()] {
        assert!(limit.clone().in_unit(Unit::requests()).is_ok());
        assert_error(
            limit.in_unit(Unit::new("tokens").unwrap()),
            QuotaErrorKind::Unit,
            "a concurrency limit or a limit of 0 has no unit",
        );
    }
}

#[test]
fn rejects_invalid_limiters() {
    let limit =
        |name: &str| Limit::token_bucket(Quota::per_minute(1)).unwrap().named(name).unwrap();
    let empty = LocalLimiter::builder().build().map(drop);
    assert_error(empty, QuotaErrorKind::Limits, "a limiter needs 1 to 16 limits, not 0");
    let duplicate = LocalLimiter::builder().limit(limit("a")).limit(limit("a")).build().map(drop);
    assert_error(
        duplicate,
        QuotaErrorKind::Name,
        "duplicate limit name \"a\"; limit names must be unique",
    );
    let many =
        (0..17).fold(LocalLimiter::builder(), |builder, n| builder.limit(limit(&n.to_string())));
    assert_error(
        many.build().map(drop),
        QuotaErrorKind::Limits,
        "a limiter needs 1 to 16 limits, not 17",
    );
}

#[test]
fn rejects_invalid_plans() {
    let subject = Subject::of(["k"]);
    let limits: Vec<Limit> = (0..17)
        .map(|n| Limit::token_bucket(Quota::per_minute(1)).unwrap().named(&n.to_string()).unwrap())
        .collect();
    let takes = || limits.iter().map(|limit| Take::new(Key::new(&subject, limit), 1));
    let error = Plan::new(takes()).unwrap_err();
    assert_eq!(error.kind(), PlanErrorKind::TooMany);
    assert_eq!(
        error.to_string(),
        "a plan can have at most 16 takes; key {:k}:default/16 exceeds this"
    );
    let first = takes().next().unwrap();
    let error = Plan::new([first, first.shadow(1)]).unwrap_err();
    assert_eq!(error.kind(), PlanErrorKind::Conflict);
    let other = Limit::token_bucket(Quota::per_minute(2)).unwrap().named("0").unwrap();
    let error = Plan::new([first, Take::new(Key::new(&subject, &other), 1)]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "two takes on key {:k}:default/0 differ in mode, distribution or parameters"
    );
}
