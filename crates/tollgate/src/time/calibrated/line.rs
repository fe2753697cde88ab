//! Line from counter readings to times, and its lock-free shared form.

use std::sync::atomic::{AtomicU64, Ordering, fence};

/// Nanoseconds in a microsecond.
pub(super) const MICRO: u64 = 1000;

/// A counter reading and the time of the system clock at the same moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sample {
    pub(super) raw: u64,
    /// Nanoseconds since the Unix epoch.
    pub(super) nanos: u64,
}

/// Microseconds per tick of the counter, in units of 2^-64. A counter must be faster than 1 MHz.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Rate(u64);

impl Rate {
    /// Returns the mean rate between two samples; `None` if the counter did not advance or is too slow.
    pub(super) fn between(first: Sample, last: Sample) -> Option<Self> {
        let ticks = last.raw.checked_sub(first.raw).filter(|ticks| *ticks > 0)?;
        let nanos = last.nanos.checked_sub(first.nanos)?;
        let rate = (u128::from(nanos) << 64) / (u128::from(ticks) * u128::from(MICRO));
        u64::try_from(rate).ok().filter(|rate| *rate > 0).map(Self)
    }

    /// Returns the same rate reduced by `part / whole`.
    pub(super) fn reduced(self, part: u64, whole: u64) -> Self {
        let kept = u128::from(whole.saturating_sub(part));
        let reduced = u128::from(self.0) * kept / u128::from(whole.max(1));
        Self(u64::try_from(reduced).unwrap_or(self.0))
    }

    /// Converts ticks to nanoseconds.
    pub(super) fn nanos(self, ticks: u64) -> u64 {
        let micros = u128::from(ticks) * u128::from(self.0);
        // The fraction of a microsecond has 64 bits; 54 of them are exact enough for a nanosecond.
        u64::try_from(((micros >> 10) * u128::from(MICRO)) >> 54).unwrap_or(u64::MAX)
    }

    /// Converts nanoseconds to ticks.
    pub(super) fn ticks(self, nanos: u64) -> u64 {
        let ticks = (u128::from(nanos) << 64) / (u128::from(self.0.max(1)) * u128::from(MICRO));
        u64::try_from(ticks).unwrap_or(u64::MAX)
    }
}

/// Line from counter readings to times, valid for `span` ticks from `raw`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Line {
    raw: u64,
    micros: u64,
    rate: u64,
    span: u64,
}

impl Line {
    /// A line without readings.
    pub(super) const NONE: Self = Self { raw: 0, micros: 0, rate: 0, span: 0 };

    /// Creates a line that starts at `start` and is valid for `length` nanoseconds.
    pub(super) fn new(start: Sample, rate: Rate, length: u64) -> Self {
        // A line starts at a whole microsecond, so a reading needs one multiplication and one addition.
        let fraction = rate.ticks(start.nanos % MICRO);
        Self {
            raw: start.raw.wrapping_sub(fraction),
            micros: start.nanos / MICRO,
            rate: rate.0,
            span: rate.ticks(length).saturating_add(fraction),
        }
    }

    /// Returns the time of a counter reading in microseconds; `None` if the reading is outside the line.
    #[inline]
    pub(super) fn micros_at(&self, raw: u64) -> Option<u64> {
        let ticks = raw.wrapping_sub(self.raw);
        if ticks >= self.span {
            return None;
        }
        let micros = (u128::from(ticks) * u128::from(self.rate)) >> 64;
        Some(self.micros.wrapping_add(micros as u64))
    }

    /// Returns the time in nanoseconds of a counter reading, or of the line's end if the reading is later.
    pub(super) fn nanos_until(&self, raw: u64) -> u64 {
        let ticks = raw.wrapping_sub(self.raw).min(self.span);
        self.micros * MICRO + Rate(self.rate).nanos(ticks)
    }

    /// Returns the end of the line in nanoseconds: no reading of it is later.
    pub(super) fn end_nanos(&self) -> u64 {
        self.nanos_until(self.raw.wrapping_add(self.span))
    }
}

/// A [`Line`] that any thread reads without a lock (a seqlock): `version` is odd while a thread writes, and changes
/// with every write.
#[derive(Debug, Default)]
#[repr(align(64))]
pub(super) struct SharedLine {
    version: AtomicU64,
    raw: AtomicU64,
    micros: AtomicU64,
    rate: AtomicU64,
    span: AtomicU64,
}

impl SharedLine {
    /// Returns the time in microseconds of the reading that `read` returns; `None` if the line does not
    /// include it, or another thread writes the line.
    #[inline]
    pub(super) fn micros(&self, read: impl FnOnce() -> Option<u64>) -> Option<u64> {
        let version = self.version.load(Ordering::Acquire);
        let line = self.load();
        if line.span == 0 {
            return None;
        }
        let raw = read()?;
        fence(Ordering::Acquire);
        // The check is after the reading: a thread that was suspended here must not use an old line.
        if !version.is_multiple_of(2) || self.version.load(Ordering::Relaxed) != version {
            return None;
        }
        line.micros_at(raw)
    }

    /// Returns the line. Only exact while no other thread writes.
    #[inline]
    pub(super) fn load(&self) -> Line {
        Line {
            raw: self.raw.load(Ordering::Relaxed),
            micros: self.micros.load(Ordering::Relaxed),
            rate: self.rate.load(Ordering::Relaxed),
            span: self.span.load(Ordering::Relaxed),
        }
    }

    /// Replaces the line. The caller must hold the lock of the writer.
    pub(super) fn store(&self, line: Line) {
        let version = self.version.load(Ordering::Relaxed);
        self.version.store(version.wrapping_add(1), Ordering::Relaxed);
        fence(Ordering::Release);
        self.raw.store(line.raw, Ordering::Relaxed);
        self.micros.store(line.micros, Ordering::Relaxed);
        self.rate.store(line.rate, Ordering::Relaxed);
        self.span.store(line.span, Ordering::Relaxed);
        self.version.store(version.wrapping_add(2), Ordering::Release);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.span.load(Ordering::Relaxed) == 0
    }
}
