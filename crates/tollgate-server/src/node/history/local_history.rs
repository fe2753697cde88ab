//! The history of this node, in its memory.

use std::collections::BTreeMap;

use parking_lot::Mutex;
use tollgate::Timestamp;

use super::interval::{IntervalCounts, split};
use super::range::HistoryRange;
use crate::node::report::NodeReport;

/// Counts of this node per interval, for each range.
#[derive(Debug, Default)]
pub(crate) struct LocalHistory {
    ranges: Mutex<[BTreeMap<u64, IntervalCounts>; HistoryRange::ALL.len()]>,
}

impl LocalHistory {
    /// Adds a report that ends at `until`, and drops intervals older than their range.
    pub(crate) fn add(&self, until: Timestamp, report: &NodeReport) {
        let mut ranges = self.ranges.lock();
        for (range, intervals) in HistoryRange::ALL.into_iter().zip(ranges.iter_mut()) {
            for (start, counts) in split(report, until, range) {
                intervals.entry(start).or_default().add(&counts);
            }
            let oldest = range.starts(until).next().unwrap_or_default();
            if intervals.first_key_value().is_some_and(|(start, _)| *start < oldest) {
                *intervals = intervals.split_off(&oldest);
            }
        }
    }

    /// Returns the intervals with these starts.
    pub(crate) fn read(
        &self,
        range: HistoryRange,
        starts: impl Iterator<Item = u64>,
    ) -> Vec<(u64, IntervalCounts)> {
        let ranges = self.ranges.lock();
        let mut all = HistoryRange::ALL.into_iter().zip(ranges.iter());
        let intervals = all.find(|(other, _)| *other == range).map(|(_, intervals)| intervals);
        let counts = |start: u64| intervals.and_then(|it| it.get(&start)).cloned();
        starts.map(|start| (start, counts(start).unwrap_or_default())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_add_up_and_expire() {
        let history = LocalHistory::default();
        let second = |second: u64| Timestamp::from_micros((1_000_000 + second) * 1_000_000);
        let report = r#"{"ms":10000,"all":[10,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0]}"#;
        let report = serde_json::from_str(report).expect("a report");
        for nth in 0..9000 {
            history.add(second(nth * 10), &report);
        }
        for range in HistoryRange::ALL {
            let now = second(89_990);
            let points = history.read(range, range.starts(now));
            let sum: u64 = points.iter().map(|(_, counts)| counts.all[0]).sum();
            let expected = range.length().as_secs();
            assert!((expected - range.resolution_s()..=expected).contains(&sum), "{range:?} {sum}");
        }
        let kept: usize = history.ranges.lock().iter().map(BTreeMap::len).sum();
        assert!(kept <= 300 + 360 + 288, "{kept}");
    }
}
