//! Decisions on existing keys do not allocate.

use allocation_counter::measure;
use tollgate::{Limit, LocalLimiter, ManualClock, Quota};

fn assert_no_allocation(limiter: &LocalLimiter<ManualClock>) {
    let long_key = "a-subject-longer-than-what-fits-into-a-slot";
    for key in ["user:1", long_key] {
        assert!(limiter.take(key).is_allowed());
        let allocations = measure(|| {
            for _ in 0..1000 {
                let _ = limiter.take(key);
                let _ = limiter.peek(key);
                let _ = limiter.refund(key, 1);
            }
        });
        assert_eq!(allocations.count_total, 0, "{allocations:?}");
    }
}

#[test]
fn decision_with_one_limit_does_not_allocate() {
    let quota = Quota::per_minute(10);
    for limit in [
        Limit::token_bucket(quota),
        Limit::sliding_counter(quota),
        Limit::fixed_window(quota),
        Limit::calendar_window(10, tollgate::algorithm::CalendarUnit::Day, "Europe/Zurich"),
    ] {
        let builder = LocalLimiter::builder().limit(limit.unwrap()).clock(ManualClock::new());
        assert_no_allocation(&builder.build().unwrap());
    }
}

#[test]
fn decision_with_two_limits_does_not_allocate() {
    let builder = LocalLimiter::builder()
        .limit(Limit::token_bucket(Quota::per_minute(10)).unwrap())
        .limit(Limit::token_bucket(Quota::per_hour(100)).unwrap())
        .clock(ManualClock::new());
    assert_no_allocation(&builder.build().unwrap());
}

/// Each take is so late that the log is empty.
#[test]
fn infrequent_sliding_window_takes_do_not_allocate() {
    let clock = ManualClock::new();
    let builder =
        LocalLimiter::builder().limit(Limit::sliding_window(Quota::per_minute(4)).unwrap());
    let limiter = builder.clock(clock.clone()).build().unwrap();
    let _ = limiter.take("user:1");
    let allocations = measure(|| {
        for _ in 0..1000 {
            clock.advance(std::time::Duration::from_secs(60));
            assert!(limiter.take("user:1").is_allowed());
        }
    });
    assert_eq!(allocations.count_total, 0, "{allocations:?}");
}

#[test]
fn refusal_does_not_allocate() {
    let builder = LocalLimiter::builder().limit(Limit::sliding_window(Quota::per_day(1)).unwrap());
    let limiter = builder.clock(ManualClock::new()).build().unwrap();
    assert!(limiter.take("user:1").is_allowed());
    let allocations = measure(|| {
        for _ in 0..1000 {
            assert!(!limiter.take("user:1").is_allowed());
        }
    });
    assert_eq!(allocations.count_total, 0, "{allocations:?}");
}
