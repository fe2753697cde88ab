//! Calibration of a counter against a reference clock.

use std::fmt::Debug;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::Mutex;

use super::line::{Line, MICRO, Rate, Sample, SharedLine};

/// Number of readings before the counter is prepared.
pub(super) const READINGS_BEFORE_USE: u32 = 1000;
/// Length of the first measurement of the rate, and of the first line, in nanoseconds.
pub(super) const FIRST_LENGTH: u64 = 10_000_000;
/// Length of all later lines: the time between two comparisons with the reference clock.
pub(super) const LENGTH: u64 = 50_000_000;
/// Minimum time between two samples from which a rate is computed.
const MIN_LENGTH: u64 = 5_000_000;
/// Maximum time in which the three readings of a sample are taken.
const MAX_SAMPLE: u64 = 5_000;
const SAMPLE_ATTEMPTS: u32 = 4;

/// Maximum difference between counter and reference clock at a comparison: a constant part for
/// imprecise samples, and a part of the elapsed time, because programs like ntpd change the rate of the
/// reference clock by up to 500 ppm. Over one line these are 50 µs.
const TOLERANCE: u64 = 20_000;
const TOLERANCE_PPM: u64 = 600;
/// Maximum time by which readings may be ahead of the reference clock when a line begins.
pub(super) const MAX_ERROR: u64 = TOLERANCE + LENGTH / 1_000_000 * TOLERANCE_PPM;

/// Number of disagreements after which the counter is not used again.
pub(super) const MAX_FAULTS: u32 = 3;

/// State of a counter's preparation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Readiness {
    Preparing,
    Ready,
    Unavailable,
}

/// A counter with a constant rate, and a reference clock.
pub(super) trait Source: Debug + Send + Sync {
    /// Starts the preparation of the counter, or returns its state. Does not wait.
    fn readiness(&self) -> Readiness;

    /// Reads the counter.
    fn raw(&self) -> u64;

    /// Stores this thread's reading and returns its previous one.
    fn replace_last(&self, raw: u64) -> u64;

    /// Time of the reference clock, in nanoseconds since the Unix epoch. Never decreases.
    fn reference_nanos(&self) -> u64;
}

/// A counter as a clock.
#[derive(Debug)]
pub(super) struct Calibration<S> {
    line: SharedLine,
    /// Readings of the reference clock are not below this time in microseconds: the latest that the
    /// counter can have returned before a disagreement.
    floor: AtomicU64,
    is_off: AtomicBool,
    writer: Mutex<Writer>,
    source: S,
}

#[derive(Debug)]
struct Writer {
    phase: Phase,
    faults: u32,
}

#[derive(Debug)]
enum Phase {
    /// Reads the reference clock until the clock is used often enough and the counter is ready.
    Waiting { readings: u32 },
    /// Measures the rate since `first`.
    Measuring { first: Sample },
    /// Reads the counter, which had this rate until the sample.
    Counting { last: Sample, rate: Rate },
}

impl<S: Source> Calibration<S> {
    pub(super) fn new(source: S) -> Self {
        Self {
            line: SharedLine::default(),
            floor: AtomicU64::new(0),
            is_off: AtomicBool::new(false),
            writer: Mutex::new(Writer { phase: Phase::Waiting { readings: 0 }, faults: 0 }),
            source,
        }
    }

    pub(super) fn uses_counter(&self) -> bool {
        !self.line.is_empty()
    }

    #[cfg(test)]
    pub(super) fn source(&self) -> &S {
        &self.source
    }

    /// Returns the time in microseconds since the Unix epoch.
    #[inline]
    pub(super) fn micros(&self) -> u64 {
        self.line.micros(|| self.read_advancing()).unwrap_or_else(|| self.micros_slow())
    }

    /// Reads the counter; `None` if it has not advanced since this thread's previous reading.
    #[inline]
    fn read_advancing(&self) -> Option<u64> {
        let raw = self.source.raw();
        (raw > self.source.replace_last(raw)).then_some(raw)
    }

    #[cold]
    #[inline(never)]
    fn micros_slow(&self) -> u64 {
        if !self.is_off.load(Ordering::Relaxed)
            // Never waits: another thread is doing the same work.
            && let Some(mut writer) = self.writer.try_lock()
            && let Some(micros) = self.calibrate(&mut writer)
        {
            return micros;
        }
        let micros = self.source.reference_nanos() / MICRO;
        micros.max(self.floor.load(Ordering::Relaxed))
    }

    /// Advances the calibration. Returns the time in microseconds, or `None` to use the reference clock.
    fn calibrate(&self, writer: &mut Writer) -> Option<u64> {
        match &mut writer.phase {
            Phase::Waiting { readings } if *readings < READINGS_BEFORE_USE => *readings += 1,
            Phase::Waiting { .. } => match self.source.readiness() {
                Readiness::Preparing => {}
                Readiness::Ready => writer.phase = Phase::Measuring { first: self.sample()? },
                Readiness::Unavailable => self.turn_off(),
            },
            &mut Phase::Measuring { first } => self.measure(writer, first),
            &mut Phase::Counting { last, rate } => return self.compare(writer, last, rate),
        }
        None
    }

    fn measure(&self, writer: &mut Writer, first: Sample) {
        let is_measured = |nanos: u64| {
            nanos.saturating_sub(first.nanos) >= FIRST_LENGTH
                && nanos / MICRO >= self.floor.load(Ordering::Relaxed)
        };
        if !is_measured(self.source.reference_nanos()) {
            return;
        }
        let Some(last) = self.sample() else { return };
        match Rate::between(first, last) {
            Some(rate) => {
                self.line.store(Line::new(last, rate, FIRST_LENGTH));
                writer.phase = Phase::Counting { last, rate };
            }
            None => self.record_fault(writer, last),
        }
    }

    /// Compares the counter with the reference clock and begins a new line.
    fn compare(&self, writer: &mut Writer, last: Sample, rate: Rate) -> Option<u64> {
        let sample = self.sample()?;
        let elapsed = sample.nanos.saturating_sub(last.nanos);
        let counted = rate.nanos(sample.raw.wrapping_sub(last.raw));
        let tolerance = TOLERANCE + elapsed / 1_000_000 * TOLERANCE_PPM;
        let line = self.line.load();
        // Readings stay in order: a new line begins where the old one was, if that is ahead.
        let start = Sample { nanos: line.nanos_until(sample.raw).max(sample.nanos), ..sample };
        let ahead = start.nanos - sample.nanos;
        if counted.abs_diff(elapsed) > tolerance || ahead > MAX_ERROR {
            self.record_fault(writer, sample);
            return None;
        }
        if elapsed < MIN_LENGTH {
            return Some(line.nanos_until(sample.raw) / MICRO);
        }
        let Some(rate) = Rate::between(last, sample) else {
            self.record_fault(writer, sample);
            return None;
        };
        // A slightly lower rate returns to the reference clock by the end of the line.
        self.line.store(Line::new(start, rate.reduced(ahead, LENGTH), LENGTH));
        writer.phase = Phase::Counting { last: sample, rate };
        Some(start.nanos / MICRO)
    }

    /// Stops using the counter until its rate is measured again, or forever.
    fn record_fault(&self, writer: &mut Writer, sample: Sample) {
        // The line's last readings may be ahead of the reference clock. Time waits for it.
        let latest = self.line.load().end_nanos() / MICRO;
        self.floor.fetch_max(latest, Ordering::Relaxed);
        self.line.store(Line::NONE);
        writer.faults += 1;
        writer.phase = Phase::Measuring { first: sample };
        if writer.faults >= MAX_FAULTS {
            self.turn_off();
        }
    }

    fn turn_off(&self) {
        self.is_off.store(true, Ordering::Relaxed);
    }

    /// Reads counter and reference clock at the same moment; `None` if this thread is interrupted each time.
    fn sample(&self) -> Option<Sample> {
        (0..SAMPLE_ATTEMPTS).find_map(|_| {
            let before = self.source.reference_nanos();
            let raw = self.source.raw();
            let duration = self.source.reference_nanos().saturating_sub(before);
            (duration <= MAX_SAMPLE).then_some(Sample { raw, nanos: before + duration / 2 })
        })
    }
}
