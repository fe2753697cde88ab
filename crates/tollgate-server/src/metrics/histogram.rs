//! Latency histogram with fixed buckets.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Upper bucket bounds of decisions: nanoseconds, and the `le` label in seconds.
pub(super) const BOUNDS: [(u64, &str); 13] = [
    (1_000, "0.000001"),
    (5_000, "0.000005"),
    (10_000, "0.00001"),
    (50_000, "0.00005"),
    (100_000, "0.0001"),
    (250_000, "0.00025"),
    (500_000, "0.0005"),
    (1_000_000, "0.001"),
    (5_000_000, "0.005"),
    (10_000_000, "0.01"),
    (25_000_000, "0.025"),
    (50_000_000, "0.05"),
    (100_000_000, "0.1"),
];

/// Counts per bucket, not cumulative, so that recording a duration updates one bucket.
#[derive(Debug)]
pub(super) struct Histogram<const N: usize> {
    bounds: &'static [(u64, &'static str); N],
    buckets: [AtomicU64; N],
    /// Durations above the largest bound.
    overflow: AtomicU64,
    /// Sum of all durations in nanoseconds.
    total_nanos: AtomicU64,
}

impl<const N: usize> Histogram<N> {
    pub(super) const fn new(bounds: &'static [(u64, &'static str); N]) -> Self {
        Self {
            bounds,
            buckets: [const { AtomicU64::new(0) }; N],
            overflow: AtomicU64::new(0),
            total_nanos: AtomicU64::new(0),
        }
    }

    pub(super) fn record(&self, duration: Duration) {
        let nanos = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        let index = self.bounds.iter().position(|(bound, _)| nanos <= *bound);
        let bucket = index.and_then(|index| self.buckets.get(index)).unwrap_or(&self.overflow);
        bucket.fetch_add(1, Ordering::Relaxed);
        self.total_nanos.fetch_add(nanos, Ordering::Relaxed);
    }

    /// Returns each bound's label with the cumulative count up to that bound.
    pub(super) fn cumulative(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let mut sum = 0;
        self.bounds.iter().zip(&self.buckets).map(move |((_, label), bucket)| {
            sum += bucket.load(Ordering::Relaxed);
            (*label, sum)
        })
    }

    /// Returns the count of each bucket, then the overflow count.
    pub(super) fn counts(&self) -> impl Iterator<Item = u64> {
        self.buckets.iter().chain([&self.overflow]).map(|bucket| bucket.load(Ordering::Relaxed))
    }

    /// Returns the number of durations above the largest bound.
    pub(super) fn overflow(&self) -> u64 {
        self.overflow.load(Ordering::Relaxed)
    }

    /// Returns the sum of all durations in nanoseconds.
    pub(super) fn total_nanos(&self) -> u64 {
        self.total_nanos.load(Ordering::Relaxed)
    }
}
