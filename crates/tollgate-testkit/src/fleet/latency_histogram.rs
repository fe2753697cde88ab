//! Latencies in constant memory, with a relative error below 7 %.

/// Counts of latencies in microseconds, by their highest five bits.
#[derive(Debug, Clone, Default)]
pub(super) struct LatencyHistogram {
    counts: Vec<u64>,
    total: u64,
}

const BITS: u32 = 4;

impl LatencyHistogram {
    pub(super) fn record(&mut self, micros: u64) {
        let bucket = bucket_of(micros);
        if bucket >= self.counts.len() {
            self.counts.resize(bucket + 1, 0);
        }
        self.counts[bucket] += 1;
        self.total += 1;
    }

    /// Returns the latency that this part of all latencies does not exceed, in microseconds.
    pub(super) fn quantile(&self, part: f64) -> u64 {
        let wanted = (self.total as f64 * part).ceil() as u64;
        let mut seen = 0;
        for (bucket, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= wanted {
                return highest_of(bucket);
            }
        }
        0
    }
}

/// Values below 32 have buckets of their own.
fn bucket_of(value: u64) -> usize {
    let shift = (64 - value.leading_zeros()).saturating_sub(BITS + 1);
    ((u64::from(shift) << BITS) + (value >> shift)) as usize
}

fn highest_of(bucket: usize) -> u64 {
    let (bucket, base) = (bucket as u64, 1_u64 << BITS);
    if bucket < 2 * base {
        return bucket;
    }
    let shift = bucket / base - 1;
    ((bucket % base + base + 1) << shift) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_at_most_a_sixteenth_too_high() {
        let mut histogram = LatencyHistogram::default();
        (0..100_000).for_each(|value| histogram.record(value));
        for (part, exact) in [(0.5, 50_000), (0.99, 99_000), (0.999, 99_900)] {
            let found = histogram.quantile(part);
            assert!((exact - 1..=exact + exact / 16).contains(&found), "{found} for {exact}");
        }
        assert_eq!(LatencyHistogram::default().quantile(0.5), 0);
    }
}
