//! Bound on admissions of each algorithm, checked without an oracle.

use std::time::Duration;

use proptest::prelude::*;
use tollgate::{Limit, LocalLimiter, ManualClock, Quota, Timestamp};

/// Generates attempts: wait in microseconds before each one, and cost.
fn attempts() -> impl Strategy<Value = Vec<(u64, u64)>> {
    let wait = prop_oneof![3 => Just(0u64), 3 => 0u64..2_000_000, 1 => 0u64..20_000_000];
    prop::collection::vec((wait, 1u64..4), 1..200)
}

/// Makes all attempts and returns the times and costs of the admitted ones.
fn admitted(limit: &Limit, attempts: &[(u64, u64)]) -> Vec<(u64, u64)> {
    let clock = ManualClock::new();
    let builder = LocalLimiter::builder().limit(limit.clone()).clock(clock.clone());
    let limiter = builder.build().unwrap();
    let (mut now, mut admitted) = (0, Vec::new());
    for (wait, cost) in attempts {
        now += wait;
        clock.set(Timestamp::from_micros(now));
        if limiter.take_n("k", *cost).is_allowed() {
            admitted.push((now, *cost));
        }
    }
    admitted
}

/// Returns the maximum cost admitted in any interval of `length` microseconds, both ends included.
fn max_admitted(admitted: &[(u64, u64)], length: u64) -> u64 {
    let within = |index: usize| {
        let (start, _) = admitted[index];
        let inside = admitted[index..].iter().take_while(|(at, _)| at - start <= length);
        inside.map(|(_, cost)| cost).sum::<u64>()
    };
    (0..admitted.len()).map(within).max().unwrap_or(0)
}

fn quota(count: u64, seconds: u64) -> Quota {
    Quota::new(count, Duration::from_secs(seconds))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn bucket_admits_at_most_burst_plus_refill_in_any_interval(
        attempts in attempts(), count in 1u64..20, seconds in 1u64..20, burst in 1u64..20,
        length in 0u64..60_000_000,
    ) {
        let limit = Limit::token_bucket(quota(count, seconds).burst(burst)).unwrap();
        let refill = length * count / (seconds * 1_000_000);
        prop_assert!(max_admitted(&admitted(&limit, &attempts), length) <= burst + refill);
    }

    #[test]
    fn sliding_window_admits_at_most_count_in_any_window(
        attempts in attempts(), count in 1u64..20, seconds in 1u64..20,
    ) {
        let limit = Limit::sliding_window(quota(count, seconds)).unwrap();
        let max = max_admitted(&admitted(&limit, &attempts), seconds * 1_000_000 - 1);
        prop_assert!(max <= count);
    }

    #[test]
    fn sliding_counter_admits_at_most_count_per_aligned_window(
        attempts in attempts(), count in 1u64..20, seconds in 1u64..20,
    ) {
        let limit = Limit::sliding_counter(quota(count, seconds)).unwrap();
        let mut windows = std::collections::HashMap::new();
        for (at, cost) in admitted(&limit, &attempts) {
            *windows.entry(at / (seconds * 1_000_000)).or_insert(0) += cost;
        }
        prop_assert!(windows.values().all(|used| *used <= count));
    }

    #[test]
    fn fixed_window_admits_at_most_count_while_open(
        attempts in attempts(), count in 1u64..20, seconds in 1u64..20,
    ) {
        let limit = Limit::fixed_window(quota(count, seconds)).unwrap();
        let admitted = admitted(&limit, &attempts);
        let (mut opened, mut used) = (None, 0);
        for (at, cost) in admitted {
            if opened.is_none_or(|opened| at - opened >= seconds * 1_000_000) {
                (opened, used) = (Some(at), 0);
            }
            used += cost;
            prop_assert!(used <= count);
        }
    }

    #[test]
    fn remaining_never_rises_while_time_stands_still(
        costs in prop::collection::vec(0u64..5, 1..60), start in 0u64..100_000_000,
    ) {
        let clock = ManualClock::at(Timestamp::from_micros(start));
        for limit in [
            Limit::token_bucket(quota(20, 7)), Limit::sliding_window(quota(20, 7)),
            Limit::sliding_counter(quota(20, 7)), Limit::fixed_window(quota(20, 7)),
        ] {
            let builder = LocalLimiter::builder().limit(limit.unwrap()).clock(clock.clone());
            let limiter = builder.build().unwrap();
            let mut before = 20;
            for cost in &costs {
                let decision = limiter.take_n("k", *cost);
                let after = decision.remaining().unwrap();
                prop_assert!(after <= before);
                prop_assert_eq!(before - after, if decision.is_allowed() { *cost } else { 0 });
                before = after;
            }
        }
    }
}

/// A key that takes at every `retry_after` gets every token of its rate.
#[test]
fn no_fraction_of_a_token_is_lost() {
    for (count, seconds) in [(7, 60), (999_983, 86_400), (3, 7), (1_000_000, 86_400)] {
        // At most one token of the burst of two is available, so the bucket is never full.
        let limit = Limit::token_bucket(quota(count, seconds).burst(2)).unwrap();
        let clock = ManualClock::new();
        let builder = LocalLimiter::builder().limit(limit).clock(clock.clone());
        let limiter = builder.build().unwrap();
        assert!(limiter.take_n("k", 2).is_allowed());
        let (mut taken, window) = (0u64, u128::from(seconds) * 1_000_000);
        for _ in 0..10_000 {
            let wait = limiter.peek("k").retry_after().unwrap();
            clock.advance(wait);
            assert!(limiter.take("k").is_allowed());
            taken += 1;
            // A take passes at the first whole microsecond after its refill; the rest is kept.
            let exact = (u128::from(taken) * window).div_ceil(u128::from(count));
            let now = u128::from(tollgate::Clock::now(&clock).as_micros());
            assert!(now >= exact, "{count}/{seconds}s admitted early");
            assert!(now - exact <= 1 + exact / 1_000_000_000, "{count}/{seconds}s lost a fraction");
        }
    }
}
