//! Limits whose parameters change while keys exist, and clocks that step back.

use super::{Fixture, S, apply_one, at, drain, peek, take, ten_a_minute};
use crate::answer::Operation;
use crate::random::Random;
use crate::spec::{Align, Kind, LimitSpec};

/// Kinds that keep the used count when parameters change; a token bucket keeps the used share.
const COUNTING: [Kind; 5] = [
    Kind::SlidingWindow,
    Kind::SlidingCounter,
    Kind::FixedWindow,
    Kind::CalendarWindow,
    Kind::Concurrency,
];

fn per_minute(kind: Kind, count: u64) -> LimitSpec {
    match kind {
        Kind::CalendarWindow => LimitSpec::calendar(count, Align::Minute, "UTC"),
        _ => LimitSpec::new(kind, count, 60 * S),
    }
}

/// 10 of 10 raised to 20 leaves 10, lowered to 5 leaves 0, and raised to 20 again leaves 10.
pub async fn used_count_is_kept_when_the_limit_changes(fixture: &impl Fixture) {
    for kind in COUNTING {
        let subject = format!("{kind:?}");
        let with = |count| per_minute(kind, count).build().expect("valid limit");
        at(fixture, 0);
        assert_eq!(drain(fixture, &subject, &with(10)).await, 10);
        for (count, remaining) in [(20, 10), (5, 0), (20, 10), (10, 0)] {
            let answer = peek(fixture, &subject, &with(count), 1).await;
            assert_eq!(answer.remaining, remaining, "{kind:?} at {count}");
        }
    }
}

/// The previous one-minute window ended where the previous 10-second window starts, so none of it counts.
/// With 20-second windows, all of it may count.
pub async fn shorter_window_counts_only_takes_that_may_be_inside(fixture: &impl Fixture) {
    let with = |seconds| {
        LimitSpec::new(Kind::SlidingCounter, 10, seconds * S).build().expect("valid limit")
    };
    for (subject, seconds, count) in [("ten", 10, 1), ("twenty", 20, 3)] {
        at(fixture, 30 * S);
        let _ = take(fixture, subject, &with(60), 5).await;
        at(fixture, 75 * S);
        let _ = take(fixture, subject, &with(60), 1).await;
        let answer = peek(fixture, subject, &with(seconds), 1).await;
        assert_eq!(answer.count, count, "window of {seconds} s");
    }
}

/// A half-used bucket stays half used with any burst and rate.
pub async fn bucket_keeps_its_used_share(fixture: &impl Fixture) {
    let with = |count, burst| {
        LimitSpec::new(Kind::TokenBucket, count, 60 * S)
            .with_burst(burst)
            .build()
            .expect("valid limit")
    };
    at(fixture, 0);
    let _ = take(fixture, "k", &with(10, 10), 5).await;
    for (count, burst, remaining) in [(10, 20, 10), (100, 1000, 500), (1, 2, 1), (10, 10, 5)] {
        let answer = peek(fixture, "k", &with(count, burst), 1).await;
        assert_eq!(answer.remaining, remaining, "{count} with burst {burst}");
    }
}

/// A bucket that was full before its parameters changed is full after it, also after repeated peeks.
pub async fn full_bucket_stays_full_when_parameters_change(fixture: &impl Fixture) {
    let with = |count, window_us| {
        LimitSpec::new(Kind::TokenBucket, count, window_us)
            .with_burst(10)
            .build()
            .expect("valid limit")
    };
    at(fixture, 0);
    let _ = take(fixture, "k", &with(3, 1), 10).await;
    at(fixture, 4);
    for _ in 0..3 {
        assert_eq!(peek(fixture, "k", &with(1, S), 1).await.remaining, 10);
    }
}

/// Each algorithm has its own state, which is kept when another algorithm is used.
pub async fn changed_algorithm_starts_fresh(fixture: &impl Fixture) {
    at(fixture, 0);
    for kind in Kind::ALL {
        assert_eq!(drain(fixture, "k", &ten_a_minute(kind)).await, 10, "{kind:?}");
    }
    for kind in Kind::ALL {
        assert_eq!(drain(fixture, "k", &ten_a_minute(kind)).await, 0, "{kind:?}");
    }
}

/// Nodes that alternate between old and new parameters admit at most what the higher limit allows.
pub async fn alternating_parameters_never_admit_too_much(fixture: &impl Fixture) {
    for kind in Kind::ALL {
        for (old, new) in versions(kind) {
            let subject = format!("{kind:?}{}", new.count);
            let limits = [old.build().expect("valid limit"), new.build().expect("valid limit")];
            let mut random = Random::new(23);
            let (mut now, mut admitted) = (0, Vec::new());
            for _ in 0..fixture.suite_size().of(3000) {
                now += random.magnitude(2 * S);
                at(fixture, now);
                let limit = random.pick(&limits).expect("not empty");
                if take(fixture, &subject, limit, 1).await.is_allowed() {
                    admitted.push(now);
                }
            }
            let max = old.count.max(new.count);
            assert_within(kind, max, &admitted);
        }
    }
}

/// Returns pairs of old and new specs with different counts and windows.
fn versions(kind: Kind) -> Vec<(LimitSpec, LimitSpec)> {
    let mut versions = vec![(per_minute(kind, 10), per_minute(kind, 17))];
    if kind == Kind::CalendarWindow {
        versions.push((per_minute(kind, 10), LimitSpec::calendar(13, Align::Hour, "UTC")));
    } else {
        versions.push((per_minute(kind, 10), LimitSpec::new(kind, 13, 97 * S)));
    }
    versions
}

/// Asserts the bound on admissions in every minute: the count for sliding windows and unreleased slots, twice
/// the count (burst and refill, or a window boundary) for the others.
fn assert_within(kind: Kind, count: u64, admitted: &[u64]) {
    let is_exact = matches!(kind, Kind::SlidingWindow | Kind::Concurrency);
    let bound = if is_exact { count } else { 2 * count };
    for (index, start) in admitted.iter().enumerate() {
        let within = admitted[index..].iter().take_while(|at| *at - start < 60 * S).count();
        assert!(within as u64 <= bound, "{kind:?}: {within} in a minute, at most {bound}");
    }
}

/// A key that both versions refuse passes again after one refill, even if they alternate.
pub async fn alternating_parameters_never_refuse_forever(fixture: &impl Fixture) {
    for kind in Kind::ALL {
        for (old, new) in versions(kind) {
            let subject = format!("{kind:?}{}", new.count);
            let limits = [old.build().expect("valid limit"), new.build().expect("valid limit")];
            at(fixture, 0);
            let _ = drain(fixture, &subject, &limits[0]).await;
            let _ = drain(fixture, &subject, &limits[1]).await;
            let refill = if old.align == new.align { 2 * 97 * S } else { 3600 * S };
            let (mut now, steps) = (0, fixture.suite_size().of(refill / (S / 2)));
            while now < refill {
                now += refill / steps;
                at(fixture, now);
                for limit in &limits {
                    let _ = peek(fixture, &subject, limit, 1).await;
                }
            }
            for limit in &limits {
                let remaining = peek(fixture, &subject, limit, 1).await.remaining;
                assert!(remaining > 0, "{kind:?} is still refused after {refill} us");
            }
        }
    }
}

/// After a step back of an hour, later time stamps count as now, not for an hour.
pub async fn clock_step_back_delays_at_most_one_refill(fixture: &impl Fixture) {
    const HOUR: u64 = 3600 * S;
    for kind in Kind::ALL {
        let (limit, subject) = (ten_a_minute(kind), format!("{kind:?}"));
        at(fixture, 2 * HOUR);
        assert_eq!(drain(fixture, &subject, &limit).await, 10);
        let _ = apply_one(fixture, "paused", &limit, Operation::Pause { length_us: 5 * S }).await;
        at(fixture, HOUR);
        assert_eq!(
            drain(fixture, &subject, &limit).await,
            0,
            "{kind:?} was refilled by the step back"
        );
        assert!(
            !take(fixture, "paused", &limit, 1).await.is_allowed(),
            "{kind:?} was resumed by the step back"
        );
        // Two windows, because the previous window of a sliding counter still has weight.
        at(fixture, HOUR + 120 * S);
        assert_eq!(drain(fixture, &subject, &limit).await, 10, "{kind:?} is still refused");
        assert!(take(fixture, "paused", &limit, 1).await.is_allowed(), "{kind:?} is still paused");
    }
}

/// After a step back within an hour, the count belongs to the minute that the repair moved it to.
pub async fn repair_within_a_window_is_stored(fixture: &impl Fixture) {
    let hourly = LimitSpec::calendar(10, Align::Hour, "UTC").build().expect("valid limit");
    let by_minute = LimitSpec::calendar(10, Align::Minute, "UTC").build().expect("valid limit");
    at(fixture, 59 * 60 * S);
    let _ = take(fixture, "k", &hourly, 10).await;
    at(fixture, 10 * 60 * S);
    assert_eq!(peek(fixture, "k", &hourly, 1).await.remaining, 0);
    at(fixture, 11 * 60 * S);
    assert_eq!(peek(fixture, "k", &by_minute, 1).await.remaining, 10);
}

/// Without a stored repair, every peek would repeat it, and the key would never refill.
pub async fn peek_stores_the_repair(fixture: &impl Fixture) {
    const HOUR: u64 = 3600 * S;
    for kind in Kind::ALL {
        let (limit, subject) = (ten_a_minute(kind), format!("{kind:?}"));
        at(fixture, 2 * HOUR);
        assert_eq!(drain(fixture, &subject, &limit).await, 10);
        at(fixture, HOUR);
        let _ = peek(fixture, &subject, &limit, 1).await;
        at(fixture, HOUR + 59 * S);
        let _ = peek(fixture, &subject, &limit, 1).await;
        at(fixture, HOUR + 120 * S);
        assert_eq!(peek(fixture, &subject, &limit, 10).await.remaining, 10, "{kind:?}");
    }
}
