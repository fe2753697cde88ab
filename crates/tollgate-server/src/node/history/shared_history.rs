//! The history of all nodes, in Redis.

use std::collections::BTreeMap;
use std::time::Duration;

use tollgate::{StoreError, Timestamp};
use tollgate_redis::{Directory, Interval, OutgoingInterval, ReportId};

use super::interval::{IntervalCounts, split};
use super::range::HistoryRange;
use crate::node::report::NodeReport;

/// Name of the counts of all rules in Redis; not a valid rule name.
const ALL: &str = "";
/// Intervals that are kept longer than their range, for nodes that report late.
const MARGIN_INTERVALS: u32 = 2;
/// Maximum pages of node reports per read.
const MAX_PAGES: usize = 100;

/// Returns the counts of a report that ends at `until`, for Redis. The last five minutes need none, because the reports
/// themselves are kept for longer.
pub(crate) fn outgoing_intervals(report: &NodeReport, until: Timestamp) -> Vec<OutgoingInterval> {
    let ranges = [HistoryRange::Hour, HistoryRange::Day];
    let intervals = ranges.into_iter().flat_map(|range| {
        split(report, until, range).into_iter().map(move |(start, counts)| OutgoingInterval {
            length: range.resolution(),
            start: Timestamp::EPOCH + Duration::from_millis(start),
            keep: range.length() + range.resolution() * MARGIN_INTERVALS,
            counts: named_counts(counts),
        })
    });
    intervals.collect()
}

fn named_counts(counts: IntervalCounts) -> Vec<(String, Vec<u64>)> {
    let rules = counts.rules.into_iter().map(|(rule, counts)| (rule, counts.to_vec()));
    [(ALL.to_owned(), counts.all.to_vec())].into_iter().chain(rules).collect()
}

/// Reads the intervals of a range up to `end`, oldest first.
pub(crate) async fn read_shared(
    directory: &Directory,
    range: HistoryRange,
    end: Timestamp,
) -> Result<Vec<(u64, IntervalCounts)>, StoreError> {
    let starts: Vec<u64> = range.starts(end).collect();
    if range == HistoryRange::FiveMinutes {
        let mut sums = sums_of_reports(directory, end).await?;
        return Ok(starts
            .into_iter()
            .map(|at| (at, sums.remove(&at).unwrap_or_default()))
            .collect());
    }
    let times: Vec<Timestamp> =
        starts.iter().map(|start| Timestamp::EPOCH + Duration::from_millis(*start)).collect();
    let intervals = directory.history(range.resolution(), &times).await?;
    Ok(starts.into_iter().zip(intervals.iter().map(parse)).collect())
}

/// Returns the counts per second of the node reports of the last five minutes.
async fn sums_of_reports(
    directory: &Directory,
    end: Timestamp,
) -> Result<BTreeMap<u64, IntervalCounts>, StoreError> {
    let range = HistoryRange::FiveMinutes;
    let mut last = ReportId::before(end - range.length());
    let mut sums: BTreeMap<u64, IntervalCounts> = BTreeMap::new();
    for _ in 0..MAX_PAGES {
        let page = directory.node_reports(&last).await?;
        let Some(next) = page.last else { break };
        last = next;
        for entry in &page.reports {
            // Reports in the format of a newer version are ignored.
            let Ok(report) = serde_json::from_str::<NodeReport>(&entry.figures) else { continue };
            for (start, counts) in split(&report, entry.id.time(), range) {
                sums.entry(start).or_default().add(&counts);
            }
        }
    }
    Ok(sums)
}

/// Parses an interval. Counts in the format of a newer version are ignored.
fn parse(interval: &Interval) -> IntervalCounts {
    let mut parsed = IntervalCounts::default();
    for (name, counts) in &interval.counts {
        if name == ALL {
            parsed.all = (**counts).try_into().unwrap_or_default();
        } else if let Ok(counts) = (**counts).try_into() {
            parsed.rules.insert(name.clone(), counts);
        }
    }
    parsed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_survive_the_format_of_redis() {
        let rules = BTreeMap::from([("api".to_owned(), [5, 4, 3, 2, 1])]);
        let counts = IntervalCounts { all: [1, 2, 3, 4], rules };
        let mut interval = Interval::default();
        interval.counts = named_counts(counts.clone());
        assert_eq!(parse(&interval), counts);
        interval.counts.push(("later version".to_owned(), vec![1]));
        assert_eq!(parse(&interval), counts);
    }

    #[test]
    fn every_count_is_sent_once_per_resolution() {
        let report = r#"{"ms":65000,"all":[100,7,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0]}"#;
        let report: NodeReport = serde_json::from_str(report).expect("a report");
        let intervals = outgoing_intervals(&report, Timestamp::from_micros(900_000_000));
        for range in [HistoryRange::Hour, HistoryRange::Day] {
            let of_range = intervals.iter().filter(|it| it.length == range.resolution());
            let sum: u64 = of_range.flat_map(|it| &it.counts).map(|(_, counts)| counts[0]).sum();
            assert_eq!(sum, 100);
        }
    }
}
