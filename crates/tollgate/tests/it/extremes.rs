//! Extreme valid numbers: correct results, no overflow, no panic.

use std::time::Duration;

use tollgate::algorithm::CalendarUnit;
use tollgate::{Limit, LocalLimiter, ManualClock, Quota, Timestamp, Verdict};

const CENTURY: Duration = Duration::from_secs(36_525 * 86_400);
const MAX_COUNT: u64 = (1 << 53) - 1;

fn extreme_limits() -> Vec<Limit> {
    let micro = Duration::from_micros(1);
    [
        Limit::token_bucket(Quota::new(1, CENTURY)),
        Limit::token_bucket(Quota::new(MAX_COUNT, CENTURY)),
        Limit::token_bucket(Quota::new(MAX_COUNT, micro)),
        Limit::token_bucket(Quota::new(1, micro).burst(MAX_COUNT)),
        Limit::token_bucket(Quota::new(MAX_COUNT, micro).burst(1)),
        Limit::sliding_window(Quota::new(100_000, CENTURY)),
        Limit::sliding_window(Quota::new(1, micro)),
        Limit::sliding_counter(Quota::new(MAX_COUNT, micro)),
        Limit::sliding_counter(Quota::new(2, CENTURY)),
        Limit::fixed_window(Quota::new(MAX_COUNT, CENTURY)),
        Limit::fixed_window(Quota::new(1, micro)),
        Limit::concurrency(100_000, CENTURY),
        Limit::concurrency(1, micro),
        Limit::calendar_window(MAX_COUNT, CalendarUnit::Year, "Pacific/Kiritimati"),
    ]
    .into_iter()
    .flatten()
    .collect()
}

#[test]
fn all_operations_handle_extreme_numbers() {
    assert!(extreme_limits().len() >= 13, "an extreme limit was rejected");
    let times = [0, 1, 1_794_765_516_667_233, Timestamp::MAX.as_micros(), 0];
    let costs = [0, 1, 2, MAX_COUNT - 1, MAX_COUNT, MAX_COUNT + 1, u64::MAX];
    let ages = [Duration::ZERO, Duration::from_micros(1), CENTURY, Duration::MAX];
    for limit in extreme_limits() {
        let clock = ManualClock::new();
        let capacity = limit.capacity();
        let builder = LocalLimiter::builder().limit(limit).clock(clock.clone());
        let limiter = builder.build().unwrap();
        for now in times {
            clock.set(Timestamp::from_micros(now));
            for cost in costs {
                let decision = limiter.take_n("k", cost);
                assert_eq!(decision.verdict() == Verdict::Never, cost > capacity);
                for age in ages {
                    let status = *limiter.debit("k", cost, age).deciding().unwrap();
                    assert_eq!(status.count() + status.remaining(), capacity);
                }
                assert!(limiter.refund("k", cost).remaining().unwrap() <= capacity);
            }
            limiter.pause("k", Duration::MAX);
            assert!(limiter.take("k").retry_after().unwrap() <= 2 * CENTURY);
            limiter.reset("k");
        }
    }
}

#[test]
fn one_per_century_refills_after_a_century() {
    let clock = ManualClock::new();
    let builder =
        LocalLimiter::builder().limit(Limit::token_bucket(Quota::new(1, CENTURY)).unwrap());
    let limiter = builder.clock(clock.clone()).build().unwrap();
    assert!(limiter.take("k").is_allowed());
    assert_eq!(limiter.take("k").retry_after(), Some(CENTURY));
    clock.advance(CENTURY - Duration::from_micros(1));
    assert!(!limiter.take("k").is_allowed());
    clock.advance(Duration::from_micros(1));
    assert!(limiter.take("k").is_allowed());
}
