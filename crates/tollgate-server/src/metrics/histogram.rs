//! Durations by bucket.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Upper bounds: in nanoseconds, and as the label says them in seconds.
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

/// Counts per bucket, not yet added up: recording touches one of them.
#[derive(Debug, Default)]
pub(super) struct Histogram {
    buckets: [AtomicU64; BOUNDS.len()],
    beyond: AtomicU64,
    nanos: AtomicU64,
}

impl Histogram {
    pub(super) fn record(&self, took: Duration) {
        let nanos = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        let place = BOUNDS.iter().position(|(bound, _)| nanos <= *bound);
        let bucket = place.and_then(|place| self.buckets.get(place)).unwrap_or(&self.beyond);
        bucket.fetch_add(1, Ordering::Relaxed);
        self.nanos.fetch_add(nanos, Ordering::Relaxed);
    }

    /// The bounds' labels, each with how many took no longer.
    pub(super) fn cumulative(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let mut sum = 0;
        BOUNDS.iter().zip(&self.buckets).map(move |((_, label), bucket)| {
            sum += bucket.load(Ordering::Relaxed);
            (*label, sum)
        })
    }

    /// How many are in each bucket, and how many beyond.
    pub(super) fn counts(&self) -> impl Iterator<Item = u64> {
        self.buckets.iter().chain([&self.beyond]).map(|bucket| bucket.load(Ordering::Relaxed))
    }

    /// How many took longer than every bound.
    pub(super) fn beyond(&self) -> u64 {
        self.beyond.load(Ordering::Relaxed)
    }

    /// All durations together, in nanoseconds.
    pub(super) fn nanos(&self) -> u64 {
        self.nanos.load(Ordering::Relaxed)
    }
}
