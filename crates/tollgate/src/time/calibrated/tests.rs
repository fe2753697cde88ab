//! A counter and a reference clock that the tests set, with every fault that a counter can have.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use proptest::prelude::*;

use super::calibration::{
    Calibration, FIRST_LENGTH, LENGTH, MAX_ERROR, MAX_FAULTS, READINGS_BEFORE_USE, Readiness,
    Source,
};
use crate::time::{Clock, Timestamp};
use crate::{Key, Limit, LocalLimiter, MemoryStore, Plan, Quota, Subject, Take};

const START: u64 = 1_700_000_000_000_000_000;
const MILLI: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MILLI;
/// Ticks per second of the counter.
const FREQUENCY: u64 = 2_500_000_000;

thread_local! {
    /// Previous reading of this thread, separate from that of the real counter.
    static LAST: Cell<u64> = const { Cell::new(0) };
}

/// A counter and a reference clock that only the test advances.
#[derive(Debug)]
struct FakeCounter {
    nanos: AtomicU64,
    raw: AtomicU64,
    readiness: Readiness,
    /// Every second reading is this number of ticks ahead, as on another core.
    skew: AtomicU64,
    readings: AtomicU64,
}

impl FakeCounter {
    fn new(readiness: Readiness) -> Self {
        LAST.set(0);
        let (nanos, raw) = (AtomicU64::new(START), AtomicU64::new(1 << 40));
        Self { nanos, raw, readiness, skew: AtomicU64::new(0), readings: AtomicU64::new(0) }
    }

    fn advance(&self, nanos: u64, ticks_per_second: u64) {
        let ticks = u128::from(nanos) * u128::from(ticks_per_second) / u128::from(SECOND);
        self.nanos.fetch_add(nanos, Ordering::Relaxed);
        self.raw.fetch_add(u64::try_from(ticks).unwrap(), Ordering::Relaxed);
    }
}

impl Source for FakeCounter {
    fn readiness(&self) -> Readiness {
        self.readiness
    }

    fn raw(&self) -> u64 {
        let skew = self.skew.load(Ordering::Relaxed);
        let is_ahead = self.readings.fetch_add(1, Ordering::Relaxed) % 2;
        // A reading takes a tick, so that the counter stops only if the test stops it.
        self.raw.fetch_add(1, Ordering::Relaxed) + skew * is_ahead
    }

    fn replace_last(&self, raw: u64) -> u64 {
        // With a skew, each reading is that of another core and thread.
        let last = LAST.replace(raw);
        if self.skew.load(Ordering::Relaxed) == 0 { last } else { 0 }
    }

    fn reference_nanos(&self) -> u64 {
        self.nanos.load(Ordering::Relaxed)
    }
}

#[derive(Debug, Clone)]
struct FakeClock(Arc<Calibration<FakeCounter>>);

impl Clock for FakeClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(self.0.micros())
    }

    fn monotonic_now(&self) -> Option<Timestamp> {
        Some(self.now())
    }
}

impl FakeClock {
    fn new(readiness: Readiness) -> Self {
        Self(Arc::new(Calibration::new(FakeCounter::new(readiness))))
    }

    /// Returns a clock that reads the counter.
    fn calibrated() -> Self {
        let clock = Self::new(Readiness::Ready);
        clock.calibrate();
        clock
    }

    fn calibrate(&self) {
        for _ in 0..=READINGS_BEFORE_USE + 1 {
            self.now();
        }
        self.source().advance(FIRST_LENGTH, FREQUENCY);
        self.now();
        assert!(self.0.uses_counter());
    }

    fn source(&self) -> &FakeCounter {
        self.0.source()
    }

    /// Error of a reading in nanoseconds; positive if it is ahead.
    fn error(&self) -> i128 {
        let micros = self.now().as_micros();
        i128::from(micros) * 1000 - i128::from(self.source().reference_nanos())
    }

    /// Advances in steps and returns the largest error of a reading. Readings must not step back.
    fn run(&self, length: u64, ticks_per_second: u64) -> u128 {
        let step = MILLI / 2;
        let (mut worst, mut last) = (0, self.now());
        for _ in 0..length / step {
            self.source().advance(step, ticks_per_second);
            worst = worst.max(self.error().unsigned_abs());
            let now = self.now();
            assert!(now >= last, "{now:?} after {last:?}");
            last = now;
        }
        worst
    }

    fn assert_off(&self) {
        self.run(SECOND, FREQUENCY);
        assert!(!self.0.uses_counter());
        assert!(self.error().unsigned_abs() < 1000, "exact to the microsecond");
    }
}

const BOUND: u128 = MAX_ERROR as u128;
/// 15 µs: below the tolerance, so the counter stays in use.
const SKEW: u64 = FREQUENCY / 1_000_000 * 15;

#[test]
fn first_readings_use_the_reference_clock() {
    let clock = FakeClock::new(Readiness::Ready);
    for _ in 0..READINGS_BEFORE_USE {
        clock.source().advance(MILLI, 0);
        assert!(clock.error().unsigned_abs() < 1000);
        assert!(!clock.0.uses_counter());
    }
}

#[test]
fn counter_that_is_not_available_is_never_used() {
    let clock = FakeClock::new(Readiness::Unavailable);
    assert!(clock.run(SECOND, FREQUENCY) < 1000);
    clock.assert_off();
    let preparing = FakeClock::new(Readiness::Preparing);
    assert!(preparing.run(SECOND, FREQUENCY) < 1000);
    assert!(!preparing.0.uses_counter());
}

#[test]
fn readings_use_the_counter_between_comparisons() {
    let clock = FakeClock::calibrated();
    let before = clock.now();
    // Only the counter advances, by 5 ms.
    clock.source().raw.fetch_add(FREQUENCY / 200, Ordering::Relaxed);
    assert_eq!(clock.now().as_micros() - before.as_micros(), 5_000);
}

#[test]
fn changes_of_the_rate_up_to_500_ppm_stay_within_the_bound() {
    let clock = FakeClock::calibrated();
    for ppm in [0, 500, 0, -500, -20, 480, 0] {
        let frequency =
            FREQUENCY.checked_add_signed(FREQUENCY.cast_signed() / 1_000_000 * ppm).unwrap();
        let worst = clock.run(SECOND, frequency);
        assert!(worst <= BOUND + 1000, "{ppm} ppm: {worst} ns");
        assert!(clock.0.uses_counter(), "{ppm} ppm");
    }
}

#[test]
fn idle_time_is_no_disagreement() {
    let clock = FakeClock::calibrated();
    for _ in 0..10 {
        // 20 ppm of a day are 1.7 s, in which no thread reads the clock.
        clock.source().advance(86_400 * SECOND, FREQUENCY + FREQUENCY / 50_000);
        assert!(clock.error().unsigned_abs() <= BOUND);
        assert!(clock.0.uses_counter());
    }
}

#[test]
fn forward_jump_is_detected_by_the_first_reading() {
    let clock = FakeClock::calibrated();
    clock.run(SECOND, FREQUENCY);
    let before = clock.now();
    clock.source().raw.fetch_add(3600 * FREQUENCY, Ordering::Relaxed);
    let after = clock.now();
    assert!(after >= before && after.as_micros() - before.as_micros() <= LENGTH / 1000);
    assert!(!clock.0.uses_counter());
    // It is calibrated again.
    assert!(clock.run(SECOND, FREQUENCY) <= u128::from(LENGTH));
    assert!(clock.0.uses_counter());
    assert!(clock.run(SECOND, FREQUENCY) <= BOUND);
}

#[test]
fn backward_jump_is_detected_by_the_next_reading() {
    for back in [FREQUENCY / 1000, FREQUENCY / 100, 300 * FREQUENCY] {
        let clock = FakeClock::calibrated();
        clock.run(SECOND, FREQUENCY);
        let before = clock.now();
        clock.source().raw.fetch_sub(back, Ordering::Relaxed);
        let after = clock.now();
        assert!(after >= before && after.as_micros() - before.as_micros() <= LENGTH / 1000);
        assert!(!clock.0.uses_counter(), "{back} ticks");
    }
}

#[test]
fn stopped_counter_is_detected_and_turned_off() {
    let clock = FakeClock::calibrated();
    clock.run(SECOND, FREQUENCY);
    let stopped = clock.source().raw.load(Ordering::Relaxed);
    for _ in 0..20_000 {
        clock.source().nanos.fetch_add(MILLI / 10, Ordering::Relaxed);
        clock.source().raw.store(stopped, Ordering::Relaxed);
        let error = clock.error();
        // The time waits at most until the end of the last line.
        assert!(error.unsigned_abs() <= u128::from(LENGTH), "{error}");
    }
    clock.assert_off();
}

#[test]
fn double_and_half_speed_are_detected_after_one_line() {
    for (frequency, bound) in [(FREQUENCY * 2, LENGTH / 2), (FREQUENCY / 2, LENGTH)] {
        let clock = FakeClock::calibrated();
        clock.run(SECOND, FREQUENCY);
        let worst = clock.run(SECOND, frequency);
        assert!(worst <= u128::from(bound + MILLI), "{worst} ns");
        // The new speed is measured, and then correct.
        assert!(clock.run(SECOND, frequency) <= BOUND);
        assert!(clock.0.uses_counter());
    }
}

#[test]
fn counter_is_off_after_three_disagreements() {
    let clock = FakeClock::calibrated();
    for faults in 1..=MAX_FAULTS {
        clock.source().raw.fetch_add(3600 * FREQUENCY, Ordering::Relaxed);
        clock.now();
        assert!(!clock.0.uses_counter());
        clock.run(SECOND, FREQUENCY);
        assert_eq!(clock.0.uses_counter(), faults < MAX_FAULTS);
    }
    clock.assert_off();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever the counter does, a reading is at most one line ahead and never steps back.
    #[test]
    fn erratic_counter_is_never_far_ahead(
        steps in prop::collection::vec((0u64..20 * MILLI, 0u64..5 * FREQUENCY, -9i64..9), 1..200)
    ) {
        let clock = FakeClock::calibrated();
        let mut last = clock.now();
        for (nanos, frequency, jump) in steps {
            clock.source().advance(nanos, frequency);
            if jump.abs() == 8 {
                clock.source().raw.fetch_add((jump << 30).cast_unsigned(), Ordering::Relaxed);
            }
            let now = clock.now();
            prop_assert!(now >= last);
            last = now;
            prop_assert!(clock.error() <= i128::from(LENGTH));
        }
    }
}

/// Takes from several threads, and returns the time of each by the order in which they were decided: `remaining` falls
/// by one with each.
fn times_in_order(limiter: &LocalLimiter<impl Clock>, during: impl Fn() + Sync) -> Vec<Timestamp> {
    let times = Mutex::new(BTreeMap::new());
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..20_000 {
                    let decision = limiter.take("hot");
                    times
                        .lock()
                        .unwrap()
                        .insert(u64::MAX - decision.remaining().unwrap(), decision.at());
                    during();
                }
            });
        }
    });
    times.into_inner().unwrap().into_values().collect()
}

fn limiter<C: Clock>(clock: C) -> LocalLimiter<C> {
    // No refill during the test.
    let limit = Limit::token_bucket(Quota::per_hour(1).burst(100_000)).unwrap();
    LocalLimiter::builder().limit(limit).clock(clock).build().unwrap()
}

#[test]
fn decisions_on_a_key_are_in_the_order_of_their_times_on_all_threads() {
    let clock = super::CalibratedClock::new();
    let times = times_in_order(&limiter(clock), || {});
    assert_eq!(times.len(), 80_000);
    assert!(times.is_sorted());
}

#[test]
fn skew_between_cores_does_not_reorder_decisions() {
    let clock = FakeClock::calibrated();
    clock.source().skew.store(SKEW, Ordering::Relaxed);
    let advance = || clock.source().advance(2_000, FREQUENCY);
    let times = times_in_order(&limiter(clock.clone()), advance);
    assert_eq!(times.len(), 80_000);
    assert!(times.is_sorted());
}

#[test]
fn plans_over_two_shards_follow_the_later_one() {
    let clock = FakeClock::calibrated();
    clock.source().skew.store(SKEW, Ordering::Relaxed);
    let store = MemoryStore::builder().clock(clock.clone()).build();
    let limit = Limit::token_bucket(Quota::per_second(1000).burst(1)).unwrap();
    let subjects: Vec<Subject> = (0..64).map(|n| Subject::of([n.to_string()])).collect();
    let take = |subject| Take::new(Key::new(subject, &limit), 1);
    let mut last = Timestamp::EPOCH;
    for pair in subjects.windows(2) {
        let now = store.take(&Plan::new(pair.iter().map(take)).unwrap()).at();
        assert!(now >= last, "{now:?} after {last:?}");
        last = now;
    }
}

#[test]
fn uneven_readings_give_no_extra_refill() {
    let clock = FakeClock::calibrated();
    let limit = Limit::token_bucket(Quota::per_second(100_000).burst(10)).unwrap();
    let limiter = LocalLimiter::builder().limit(limit).clock(clock.clone()).build().unwrap();
    let (mut allowed, begin) = (0, clock.source().reference_nanos());
    clock.source().skew.store(SKEW, Ordering::Relaxed);
    for _ in 0..200_000 {
        allowed += u64::from(limiter.take("hot").is_allowed());
        clock.source().advance(1_000, FREQUENCY);
    }
    let elapsed = clock.source().reference_nanos() - begin;
    // 10 µs per token; the readings end at most one bound ahead.
    let refilled = (elapsed + MAX_ERROR) / 10_000;
    assert!(allowed <= 10 + refilled, "{allowed} > 10 + {refilled}");
}
