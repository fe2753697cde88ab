//! Memory and descriptors of the nodes over time.

use super::system::System;

/// Samples by node.
#[derive(Debug, Default)]
pub(super) struct Samples {
    nodes: Vec<Vec<Sample>>,
}

#[derive(Debug, Clone, Copy)]
struct Sample {
    rss: u64,
    files: u64,
}

/// The trend of one node in the second half of the soak. In the first one its tables reach their size: the audit
/// has a thousand entries after four minutes, and the refused keys are those of five minutes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Trend {
    /// The median of the resident memory in the first third of the measured time, in bytes.
    pub(super) rss: u64,
    /// The growth of the memory in the measured time, relative to its begin.
    pub(super) growth: f64,
    /// The median numbers of descriptors in the first and in the last third of the measured time.
    pub(super) files: [u64; 2],
}

impl Samples {
    pub(super) fn new() -> Self {
        Self::default()
    }

    pub(super) fn take(&mut self, system: &System) {
        for (number, node) in system.nodes().enumerate() {
            if self.nodes.len() == number {
                self.nodes.push(Vec::new());
            }
            let files = u64::try_from(node.files()).unwrap_or(u64::MAX);
            let sample = Sample { rss: node.rss(), files };
            self.nodes[number].push(sample);
        }
    }

    /// The trend of each node.
    pub(super) fn trends(&self) -> Vec<Trend> {
        self.nodes.iter().map(|samples| trend(&samples[samples.len() / 2..])).collect()
    }
}

fn trend(samples: &[Sample]) -> Trend {
    let third = samples.len() / 3;
    let (first, last) = (&samples[..third], &samples[samples.len() - third..]);
    let median = |samples: &[Sample], value: fn(&Sample) -> u64| {
        let mut values: Vec<u64> = samples.iter().map(value).collect();
        values.sort_unstable();
        values.get(values.len() / 2).copied().unwrap_or_default()
    };
    let rss = [first, last].map(|samples| median(samples, |sample| sample.rss));
    let files = [first, last].map(|samples| median(samples, |sample| sample.files));
    Trend { rss: rss[0], growth: growth(rss), files }
}

/// The slope of the line through the medians of the first and of the last third, for the whole time: the medians are
/// two thirds of it apart. Medians, because a node needs more memory for some seconds around each loss of Redis.
#[expect(clippy::cast_precision_loss, reason = "memory is far below 2^53 bytes")]
fn growth([first, last]: [u64; 2]) -> f64 {
    (last as f64 / first.max(1) as f64 - 1.0) * 1.5
}

#[cfg(test)]
mod tests {
    use super::{Sample, trend};

    #[test]
    fn growth_is_that_of_a_line_through_the_samples() {
        let sample = |second: u64| Sample { rss: 1000 + second, files: 9 };
        let grows: Vec<Sample> = (0..=300).map(sample).collect();
        let growth = trend(&grows).growth;
        assert!((growth - 0.3 * 1000.0 / 1050.0).abs() < 0.01, "{growth}");
        assert_eq!(trend(&grows).files, [9, 9]);
    }

    #[test]
    fn peaks_are_no_growth() {
        let sample =
            |second: u64| Sample { rss: if second % 30 < 5 { 1500 } else { 1000 }, files: 9 };
        let peaks: Vec<Sample> = (0..300).map(sample).collect();
        assert!(trend(&peaks).growth.abs() < f64::EPSILON);
    }
}
