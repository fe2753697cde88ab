//! Clock on the CPU's cycle counter, calibrated against the system clock.

mod calibration;
mod counter;
mod line;
#[cfg(test)]
mod tests;

use std::sync::LazyLock;

use calibration::Calibration;
use counter::CpuCounter;

use super::{Clock, Timestamp};

/// Clock that reads the CPU's cycle counter, which takes a third of the time of a [`SystemClock`] reading.
///
/// It returns the time of [`SystemClock`] with an error of at most 50 µs. Every 50 ms a reading compares
/// the counter with the system clock and corrects the difference gradually. If the two disagree by more than
/// the permitted error, the clock uses the system clock and calibrates again; after three such
/// disagreements, or if the CPU has no counter with a constant rate, it uses the system clock for
/// the rest of the process. The first 1000 readings also use the system clock, so that a short program
/// pays for no calibration; then a thread prepares the counter and ends.
///
/// What a disagreement costs:
/// - The counter jumps forward (suspend, live migration): the first reading detects it and returns the
///   time of the system clock.
/// - The counter jumps back or stops: the next reading of a thread that has read it before detects it.
/// - The counter changes its speed by a factor `k`: it is detected when the counter has advanced by 50 ms.
///   Until then the time is ahead by less than 50 ms (`k > 1`) or behind by less than `50 ms / k` (`k < 1`).
///
/// The time never steps back by more than 50 µs: if it is further ahead, it stands still until the
/// system clock reaches it. Readings of different threads can be out of order by up to 50 µs;
/// the stores use the latest reading of each key.
///
/// [`SystemClock`]: crate::SystemClock
///
/// ```
/// use tollgate::{CalibratedClock, Clock, Limit, LocalLimiter, Quota, SystemClock};
///
/// let clock = CalibratedClock::new();
/// let before = clock.now();
/// assert!(clock.now().max(before) >= before);
///
/// // This clock is the default. To select the other one:
/// let limiter = LocalLimiter::builder()
///     .limit(Limit::token_bucket(Quota::per_second(1))?)
///     .clock(SystemClock::new())
///     .build()?;
/// assert!(limiter.take("job").is_allowed());
/// # Ok::<(), tollgate::QuotaError>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct CalibratedClock {
    calibration: &'static Calibration<CpuCounter>,
}

impl CalibratedClock {
    /// Returns the process-wide calibrated clock; all copies share one calibration.
    #[must_use]
    pub fn new() -> Self {
        static SHARED: LazyLock<Calibration<CpuCounter>> =
            LazyLock::new(|| Calibration::new(CpuCounter::new()));
        Self { calibration: &SHARED }
    }

    /// Returns true if readings use the counter now, false if they use the system clock.
    #[must_use]
    pub fn uses_counter(&self) -> bool {
        self.calibration.uses_counter()
    }
}

impl Default for CalibratedClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for CalibratedClock {
    #[inline]
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(self.calibration.micros())
    }

    #[inline]
    fn monotonic_now(&self) -> Option<Timestamp> {
        Some(self.now())
    }
}
