//! Counts of one interval, and the division of a report among intervals.

use std::collections::BTreeMap;

use tollgate::Timestamp;

use super::range::HistoryRange;
use crate::metrics::Slice;
use crate::node::report::{NodeReport, REST};

/// Maximum number of rules of an interval. Further rules are added up under [`REST`].
const MAX_RULES: usize = 63;

/// Counts of one interval.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct IntervalCounts {
    /// Allowed, refused, degraded, store errors.
    pub(crate) all: [u64; 4],
    /// For each rule that refused or is on trial: checked, refused, shadow, next, diverged.
    pub(crate) rules: BTreeMap<String, [u64; 5]>,
}

impl IntervalCounts {
    /// Adds counts.
    pub(crate) fn add(&mut self, other: &Self) {
        add(&mut self.all, other.all);
        for (rule, counts) in &other.rules {
            let is_full = self.rules.len() >= MAX_RULES && !self.rules.contains_key(rule);
            let rule = if is_full { REST } else { rule };
            add(self.rules.entry(rule.to_owned()).or_default(), *counts);
        }
    }

    fn is_empty(&self) -> bool {
        self.all == [0; 4] && self.rules.is_empty()
    }

    fn of(report: &NodeReport, slice: Slice) -> Self {
        let tally = &report.tally;
        let all = [tally.allowed(), tally.refused(), tally.degraded(), tally.errors()];
        let rules = report
            .rules
            .iter()
            .map(|(rule, tally)| (rule.clone(), tally.figures().map(|count| slice.part(count))));
        Self {
            all: all.map(|count| slice.part(count)),
            rules: rules.filter(|(_, counts)| *counts != [0; 5]).collect(),
        }
    }
}

fn add<const N: usize>(sums: &mut [u64; N], counts: [u64; N]) {
    for (sum, count) in sums.iter_mut().zip(counts) {
        *sum = sum.saturating_add(count);
    }
}

/// Divides a report that ends at `until` evenly among the intervals that it covers, without losing a count. Omits
/// intervals without counts, and the part of the report before the range.
pub(super) fn split(
    report: &NodeReport,
    until: Timestamp,
    range: HistoryRange,
) -> Vec<(u64, IntervalCounts)> {
    let (until, length) = (until.as_micros() / 1000, range.resolution_ms());
    let span = report.span_ms.clamp(1, until.max(1));
    let start = until.saturating_sub(span);
    let oldest = until.saturating_sub(length * range.intervals());
    let (mut from, mut intervals) = (start.max(oldest), Vec::new());
    while from < until {
        let interval = from - from % length;
        let to = until.min(interval + length);
        let slice = Slice { from: from - start, to: to - start, of: span };
        let counts = IntervalCounts::of(report, slice);
        if !counts.is_empty() {
            intervals.push((interval, counts));
        }
        from = to;
    }
    intervals
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Timestamp {
        Timestamp::from_micros(millis * 1000)
    }

    fn report(span_ms: u64, allowed: u64) -> NodeReport {
        let text = format!(
            r#"{{"ms":{span_ms},"all":[{allowed},1,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0],"rules":{{"r":[{allowed},1,0,0,0]}}}}"#
        );
        serde_json::from_str(&text).expect("a valid report")
    }

    #[test]
    fn split_report_loses_no_count() {
        for (span, until, allowed) in [(1000, 20_500, 7), (60_000, 99_999, 13), (7, 10_003, 1)] {
            for range in HistoryRange::ALL {
                let intervals = split(&report(span, allowed), at(until), range);
                let mut sum = IntervalCounts::default();
                for (start, counts) in &intervals {
                    assert_eq!(start % range.resolution_ms(), 0);
                    sum.add(counts);
                }
                assert_eq!(sum.all, [allowed, 1, 0, 0], "{span} {until} {range:?}");
                assert_eq!(sum.rules["r"], [allowed, 1, 0, 0, 0]);
            }
        }
    }

    #[test]
    fn report_is_divided_evenly() {
        let intervals = split(&report(20_000, 40), at(25_000), HistoryRange::Hour);
        let allowed: Vec<(u64, u64)> =
            intervals.iter().map(|(start, counts)| (*start, counts.all[0])).collect();
        assert_eq!(allowed, [(0, 10), (10_000, 20), (20_000, 10)]);
        assert_eq!(split(&report(1000, 0), at(25_000), HistoryRange::Day).len(), 1);
        assert_eq!(split(&NodeReport::default(), at(25_000), HistoryRange::Day), []);
    }

    #[test]
    fn only_the_part_of_a_report_inside_the_range_counts() {
        let three_hours = split(&report(3 * 3_600_000, 9000), at(20_000_000), HistoryRange::Hour);
        assert_eq!(three_hours.iter().map(|(_, counts)| counts.all[0]).sum::<u64>(), 3000);
        let intervals = split(&report(u64::MAX, 9), at(u64::MAX / 2000), HistoryRange::Hour);
        assert!(intervals.len() <= 361, "{}", intervals.len());
    }

    #[test]
    fn number_of_rules_is_bounded_without_losing_counts() {
        let mut sum = IntervalCounts::default();
        for nth in 0..200 {
            let rules = BTreeMap::from([(format!("rule-{nth}"), [1, 1, 0, 0, 0])]);
            sum.add(&IntervalCounts { all: [0; 4], rules });
        }
        assert_eq!(sum.rules.len(), MAX_RULES + 1);
        assert_eq!(sum.rules.values().map(|counts| counts[0]).sum::<u64>(), 200);
    }
}
