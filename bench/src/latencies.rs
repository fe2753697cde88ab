//! Latency histogram.

use std::time::Duration;

use hdrhistogram::Histogram;

use crate::Outcome;

/// Resolution of three significant digits, finer than the spread between runs, up to one minute.
const DIGITS: u8 = 3;
const LONGEST_NANOS: u64 = 60_000_000_000;

/// A histogram of latencies.
#[derive(Debug)]
pub struct Latencies(Histogram<u32>);

impl Latencies {
    /// Creates an empty histogram.
    ///
    /// # Errors
    /// Never with these constants.
    pub fn new() -> Outcome<Self> {
        Ok(Self(Histogram::new_with_max(LONGEST_NANOS, DIGITS)?))
    }

    /// Records one latency.
    pub fn push(&mut self, latency: Duration) {
        self.push_many(latency, 1);
    }

    /// Records a latency that `count` responses have in common.
    pub fn push_many(&mut self, latency: Duration, count: u32) {
        let nanos = u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX);
        self.0.saturating_record_n(nanos, count);
    }

    /// Returns the number of recorded latencies.
    ///
    /// # Errors
    /// There are none, so quantiles do not exist.
    pub fn count(&self) -> Outcome<f64> {
        match u32::try_from(self.0.len())? {
            0 => Err("no response within the measured window".into()),
            count => Ok(f64::from(count)),
        }
    }

    /// Returns the latency at this quantile (0.0 to 1.0), in microseconds.
    #[must_use]
    pub fn quantile_micros(&self, quantile: f64) -> f64 {
        Duration::from_nanos(self.0.value_at_quantile(quantile)).as_secs_f64() * 1e6
    }
}
