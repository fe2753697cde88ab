//! Times single decisions during development. `scripts/bench` runs the comparison with peers.

use std::hint::black_box;
use std::time::Duration;

use criterion::{Criterion, criterion_group, criterion_main};
use governor::DefaultKeyedRateLimiter;
use tollgate::algorithm::CalendarUnit;
use tollgate::{Limit, LocalLimiter, ManualClock, Quota};
use tollgate_bench::Outcome;
use tollgate_bench::limiter::{self, Limiter};

const KEY: &str = "user:00001234";
const PLENTY: Quota = Quota::per_day(1_000_000_000);

/// Benchmarks allowed decisions on one hot key, per algorithm.
fn algorithms(criterion: &mut Criterion) -> Outcome<()> {
    let mut group = criterion.benchmark_group("allowed");
    let zone = "America/New_York";
    for (name, limit) in [
        ("token_bucket", limiter::limit()?),
        ("sliding_counter", Limit::sliding_counter(PLENTY)?),
        ("fixed_window", Limit::fixed_window(PLENTY)?),
        ("calendar_window", Limit::calendar_window(PLENTY.count(), CalendarUnit::Day, zone)?),
    ] {
        let limiter = LocalLimiter::new(limit);
        group.bench_function(name, |bencher| bencher.iter(|| limiter.take(black_box(KEY))));
    }
    Ok(())
}

/// Benchmarks a sliding-window log of constant length: each decision expires one entry and adds
/// one.
fn sliding_windows(criterion: &mut Criterion) -> Outcome<()> {
    let mut group = criterion.benchmark_group("allowed/sliding_window");
    let step = Duration::from_micros(100);
    for entries in [10, 1000] {
        let clock = ManualClock::new();
        let quota = Quota::new(u64::from(entries), step * entries);
        let limiter = LocalLimiter::builder()
            .limit(Limit::sliding_window(quota)?)
            .clock(clock.clone())
            .build()?;
        let mut decide = || {
            clock.advance(step);
            limiter.take(black_box(KEY))
        };
        for _ in 0..entries {
            assert!(decide().is_allowed());
        }
        group.bench_function(format!("{entries} entries"), |bencher| bencher.iter(&mut decide));
    }
    Ok(())
}

/// Benchmarks a plan of two limits on one key.
fn plan(criterion: &mut Criterion) -> Outcome<()> {
    let limiter = LocalLimiter::builder()
        .limit(limiter::limit()?)
        .limit(Limit::fixed_window(PLENTY)?)
        .build()?;
    criterion.bench_function("allowed/plan of two", |bencher| {
        bencher.iter(|| limiter.take(black_box(KEY)));
    });
    Ok(())
}

/// Benchmarks the peers on one hot key, with the quota of `allowed/token_bucket`.
fn peers(criterion: &mut Criterion) -> Outcome<()> {
    let mut group = criterion.benchmark_group("allowed/peers");
    let key = KEY.to_owned();
    let governor = limiter::governor()?;
    group.bench_function("governor", |bencher| bencher.iter(|| governor.admit(black_box(&key))));
    let mut throttlecrab = limiter::adaptive_with_slots(7 << 10);
    group.bench_function("throttlecrab", |bencher| {
        bencher.iter(|| throttlecrab.admit_exclusive(black_box(&key)));
    });
    Ok(())
}

/// Benchmarks refusals of a hot key without remaining quota.
fn refused(criterion: &mut Criterion) -> Outcome<()> {
    let mut group = criterion.benchmark_group("refused");
    let limiter = LocalLimiter::new(Limit::token_bucket(Quota::per_day(1))?);
    assert!(limiter.take(KEY).is_allowed());
    group.bench_function("token_bucket", |bencher| bencher.iter(|| limiter.take(black_box(KEY))));

    let day = Duration::from_secs(86_400);
    let quota = governor::Quota::with_period(day).ok_or("governor rejected the period")?;
    let governor = DefaultKeyedRateLimiter::keyed(quota);
    let key = KEY.to_owned();
    assert!(governor.check_key(&key).is_ok());
    group.bench_function("governor", |bencher| {
        bencher.iter(|| governor.check_key(black_box(&key)).is_ok());
    });
    Ok(())
}

#[expect(clippy::panic, reason = "criterion groups cannot return errors")]
fn all(criterion: &mut Criterion) {
    let groups = [algorithms, sliding_windows, plan, peers, refused];
    for group in groups {
        if let Err(error) = group(criterion) {
            panic!("{error}");
        }
    }
}

criterion_group!(decisions, all);
criterion_main!(decisions);
