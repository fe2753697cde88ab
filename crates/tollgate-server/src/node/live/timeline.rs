//! Counts for each of the last seconds.

use std::collections::BTreeMap;
use std::time::Duration;

use tollgate::Timestamp;

use crate::metrics::{RuleTally, Slice, Tally};
use crate::node::report::NodeReport;

/// One second in milliseconds.
pub(super) const SECOND_MS: u64 = 1000;
/// How long seconds are kept.
pub(super) const HISTORY: Duration = tollgate_redis::REPORT_HISTORY;

/// Counts of the last seconds, by start in milliseconds since the Unix epoch.
#[derive(Debug, Default)]
pub(super) struct Timeline {
    seconds: BTreeMap<u64, Second>,
}

/// Counts of one second, multiplied by `metrics::SCALE`.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Second {
    pub(super) all: Tally,
    pub(super) rules: BTreeMap<String, RuleTally>,
}

impl Timeline {
    /// Adds a report that ends at `until`, spread evenly over the seconds that it covers.
    pub(super) fn add(&mut self, until: Timestamp, report: &NodeReport) {
        let until = millis(until);
        let history_ms = u64::try_from(HISTORY.as_millis()).unwrap_or(u64::MAX);
        let span = report.span_ms.clamp(1, history_ms);
        let start = until.saturating_sub(span);
        let mut from = start;
        while from < until {
            let second = from - from % SECOND_MS;
            let to = until.min(second + SECOND_MS);
            let slice = Slice { from: from - start, to: to - start, of: span };
            self.seconds.entry(second).or_default().add(report, slice);
            from = to;
        }
        let oldest = until.saturating_sub(history_ms);
        if self.seconds.first_key_value().is_some_and(|(first, _)| *first < oldest) {
            self.seconds = self.seconds.split_off(&oldest);
        }
    }

    /// Returns the last `max` seconds that were complete at `end`, oldest first.
    pub(super) fn before(
        &self,
        end: Timestamp,
        max: usize,
    ) -> impl Iterator<Item = (u64, &Second)> {
        let complete = self.seconds.range(..=millis(end).saturating_sub(SECOND_MS));
        let skipped = complete.clone().count().saturating_sub(max);
        complete.skip(skipped).map(|(start, second)| (*start, second))
    }
}

impl Second {
    fn add(&mut self, report: &NodeReport, slice: Slice) {
        self.all = self.all.plus(&report.tally.slice(slice));
        for (rule, tally) in &report.rules {
            let tally = tally.slice(slice);
            match self.rules.get_mut(rule) {
                Some(sum) => *sum = sum.plus(&tally),
                None => {
                    self.rules.insert(rule.clone(), tally);
                }
            }
        }
    }
}

/// Returns milliseconds since the Unix epoch.
pub(super) fn millis(time: Timestamp) -> u64 {
    time.as_micros() / 1000
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::SCALE;

    fn at(millis: u64) -> Timestamp {
        Timestamp::from_micros(millis * 1000)
    }

    fn report(span_ms: u64, allowed: u64) -> NodeReport {
        let text = format!(
            r#"{{"ms":{span_ms},"all":[{allowed},0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0],"rules":{{"r":[{allowed},1,0,0,0]}}}}"#
        );
        serde_json::from_str(&text).expect("a valid report")
    }

    fn allowed(timeline: &Timeline) -> Vec<(u64, u64)> {
        let seconds = timeline.before(at(u64::MAX / 2000), usize::MAX);
        seconds.map(|(start, second)| (start, second.all.allowed())).collect()
    }

    #[test]
    fn report_is_spread_over_its_seconds() {
        let mut timeline = Timeline::default();
        timeline.add(at(12_500), &report(2000, 8));
        let expected = [(10_000, 2 * SCALE), (11_000, 4 * SCALE), (12_000, 2 * SCALE)];
        assert_eq!(allowed(&timeline), expected);
        timeline.add(at(13_000), &report(1000, 2));
        assert_eq!(allowed(&timeline).last(), Some(&(12_000, 4 * SCALE)));
        let (_, second) = timeline.before(at(20_000), 1).next().expect("one second");
        assert_eq!(second.rules["r"].checked(), 4 * SCALE);
    }

    #[test]
    fn spreading_a_report_loses_no_count() {
        let mut timeline = Timeline::default();
        timeline.add(at(99_999), &report(7777, 13));
        let sum: u64 = allowed(&timeline).iter().map(|(_, allowed)| allowed).sum();
        assert_eq!(sum, 13 * SCALE);
    }

    #[test]
    fn returns_only_complete_seconds() {
        let mut timeline = Timeline::default();
        timeline.add(at(10_000), &report(5000, 5));
        let shown = |end: u64, max| timeline.before(at(end), max).map(|(start, _)| start);
        assert_eq!(shown(7_000, 9).collect::<Vec<_>>(), [5000, 6000]);
        assert_eq!(shown(7_999, 9).collect::<Vec<_>>(), [5000, 6000]);
        assert_eq!(shown(20_000, 2).collect::<Vec<_>>(), [8000, 9000]);
    }

    #[test]
    fn drops_seconds_older_than_the_history() {
        let mut timeline = Timeline::default();
        timeline.add(at(10_000), &report(5000, 5));
        let history_ms = u64::try_from(HISTORY.as_millis()).unwrap();
        timeline.add(at(8000 + history_ms), &report(1000, 1));
        assert_eq!(allowed(&timeline).first().unwrap().0, 8000);
        timeline.add(at(history_ms * 9), &report(u64::MAX, 1));
        let kept = allowed(&timeline).len();
        assert!(kept <= 902, "an invalid span is clamped to the history: {kept}");
    }
}
