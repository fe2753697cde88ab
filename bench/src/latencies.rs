//! How long answers took.

use std::time::Duration;

use hdrhistogram::Histogram;

use crate::Outcome;

/// Latencies are kept to three digits, which is finer than their spread, and up to a minute.
const DIGITS: u8 = 3;
const LONGEST_NANOS: u64 = 60_000_000_000;

/// A histogram of them.
#[derive(Debug)]
pub struct Latencies(Histogram<u32>);

impl Latencies {
    /// None yet.
    ///
    /// # Errors
    /// Never, but the histogram cannot know that.
    pub fn new() -> Outcome<Self> {
        Ok(Self(Histogram::new_with_max(LONGEST_NANOS, DIGITS)?))
    }

    /// One more.
    pub fn push(&mut self, latency: Duration) {
        self.0.saturating_record(u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX));
    }

    /// How many there are.
    ///
    /// # Errors
    /// None, of which nothing can be said.
    pub fn count(&self) -> Outcome<f64> {
        match u32::try_from(self.0.len())? {
            0 => Err("no answer within the window".into()),
            count => Ok(f64::from(count)),
        }
    }

    /// What this share of the answers took at most, in microseconds.
    #[must_use]
    pub fn micros(&self, share: f64) -> f64 {
        Duration::from_nanos(self.0.value_at_quantile(share)).as_secs_f64() * 1e6
    }
}
