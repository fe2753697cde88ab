//! proptest strategies for limits, costs and time steps.

use std::time::Duration;

use proptest::prelude::*;
use tollgate::algorithm::CalendarUnit;
use tollgate::{Limit, Quota};

fn count() -> impl Strategy<Value = u64> {
    prop_oneof![4 => 1..20_u64, 1 => 1..100_000_u64, 1 => Just((1 << 53) - 1)]
}

/// A few common windows, so that limit names collide, and arbitrary ones.
fn window() -> impl Strategy<Value = Duration> {
    let few = [Duration::from_secs(60), Duration::from_millis(1500), Duration::from_secs(86_400)];
    prop_oneof![
        2 => prop::sample::select(few.to_vec()),
        1 => (1..100_000_000_u64).prop_map(Duration::from_micros),
    ]
}

/// A limit of any algorithm. Falls back to a fixed window if the algorithm rejects the numbers.
pub(crate) fn limit() -> impl Strategy<Value = Limit> {
    (0..7_u8, count(), 1..30_u64, window()).prop_map(|(algorithm, count, burst, window)| {
        let quota = Quota::new(count, window);
        let limit = match algorithm {
            0 => Limit::token_bucket(quota),
            1 => Limit::token_bucket(quota.burst(burst)),
            2 => Limit::sliding_window(quota),
            3 => Limit::sliding_counter(quota),
            4 => Limit::calendar_window(count, CalendarUnit::Month, "Europe/Zurich"),
            5 => Limit::concurrency(count, window),
            _ => Ok(Limit::block()),
        };
        limit.unwrap_or_else(|_| Limit::fixed_window(quota).unwrap())
    })
}

pub(crate) fn cost() -> impl Strategy<Value = u64> {
    prop_oneof![6 => 0..4_u64, 1 => 4..40_u64, 1 => any::<u64>()]
}

/// From zero to about 25 hours, with fractions of a second.
pub(crate) fn step() -> impl Strategy<Value = Duration> {
    let micros = prop_oneof![Just(0), 0..3_000_000_u64, 0..90_000_000_000_u64];
    micros.prop_map(Duration::from_micros)
}
