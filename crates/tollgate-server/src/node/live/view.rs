//! Merged reports of one or more nodes: counts per second for all nodes, and recent rates per node.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use tollgate::Timestamp;

use super::timeline::{SECOND_MS, Second, Timeline, millis};
use crate::metrics::{Slice, Tally};
use crate::node::report::NodeReport;

/// Averaging window of the rates, if nodes report once a second.
const RATE_WINDOW: Duration = Duration::from_secs(5);

/// Merged reports.
#[derive(Debug)]
pub(super) struct View {
    pub(super) timeline: Timeline,
    /// Time between two reports of a node.
    pub(super) report_interval: Duration,
    /// Reports within the rate window, by node.
    recent: BTreeMap<String, VecDeque<RecentReport>>,
}

/// A report: end and length in milliseconds, and its counts.
#[derive(Debug)]
struct RecentReport {
    until: u64,
    span: u64,
    tally: Tally,
    /// Requests by front end.
    requests: BTreeMap<String, u64>,
    /// Checks decided from a lease.
    leased: u64,
}

impl RecentReport {
    /// Returns the part of the report after `start`. A long report, as after an outage, counts only with its part inside
    /// the rate window.
    fn slice_after(&self, start: u64) -> Slice {
        let inside = self.until.saturating_sub(start).min(self.span);
        Slice { from: self.span - inside, to: self.span, of: self.span }
    }
}

/// Average counts per second over the rate window, multiplied by `metrics::SCALE`.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Rate {
    pub(super) allowed: u64,
    pub(super) refused: u64,
    pub(super) degraded: u64,
    pub(super) errors: u64,
    /// Checks decided from a lease; 0 in the rate of a second, which has no such count.
    pub(super) leased: u64,
    /// All counts in the window, for the latency quantiles.
    pub(super) tally: Tally,
}

impl Rate {
    /// Returns the rate of one second, from its scaled counts.
    pub(super) const fn of_second(tally: Tally) -> Self {
        Self {
            allowed: tally.allowed(),
            refused: tally.refused(),
            degraded: tally.degraded(),
            errors: tally.errors(),
            leased: 0,
            tally,
        }
    }
}

impl Default for View {
    fn default() -> Self {
        let report_interval = Duration::from_millis(SECOND_MS);
        Self { timeline: Timeline::default(), report_interval, recent: BTreeMap::new() }
    }
}

impl View {
    pub(super) fn add(&mut self, node: &str, until: Timestamp, report: &NodeReport) {
        self.timeline.add(until, report);
        let recent = RecentReport {
            until: millis(until),
            span: report.span_ms.max(1),
            tally: report.tally,
            requests: report.requests.clone(),
            leased: report.leased,
        };
        match self.recent.get_mut(node) {
            Some(reports) => reports.push_back(recent),
            None => {
                self.recent.insert(node.to_owned(), VecDeque::from([recent]));
            }
        }
    }

    /// Drops reports that ended before the rate window.
    pub(super) fn drop_expired(&mut self, now: Timestamp) {
        let start = self.window_start(now);
        self.recent.retain(|_, reports| {
            while reports.front().is_some_and(|report| report.until <= start) {
                reports.pop_front();
            }
            !reports.is_empty()
        });
    }

    /// Returns the start of the rate window. The window is longer if nodes report less often.
    fn window_start(&self, now: Timestamp) -> u64 {
        millis(now - RATE_WINDOW.max(self.report_interval * 3))
    }

    /// Returns a node's average rate; `None` without reports in the window.
    pub(super) fn rate(&self, node: &str, now: Timestamp) -> Option<Rate> {
        let start = self.window_start(now);
        let (mut tally, mut leased, mut covered) = (Tally::default(), 0_u64, 0_u64);
        for report in self.recent.get(node)? {
            let slice = report.slice_after(start);
            tally = tally.plus(&report.tally.slice(slice));
            leased = leased.saturating_add(slice.apply(report.leased));
            covered = covered.saturating_add(slice.length());
        }
        let per_second = |count| per_second(count, covered);
        Some(Rate {
            allowed: per_second(tally.allowed()),
            refused: per_second(tally.refused()),
            degraded: per_second(tally.degraded()),
            errors: per_second(tally.errors()),
            leased: per_second(leased),
            tally,
        })
    }

    /// Returns the sum of all nodes' rates.
    pub(super) fn total(&self, now: Timestamp) -> Rate {
        let rates = self.recent.keys().filter_map(|node| self.rate(node, now));
        rates.fold(Rate::default(), |sum, rate| Rate {
            allowed: sum.allowed.saturating_add(rate.allowed),
            refused: sum.refused.saturating_add(rate.refused),
            degraded: sum.degraded.saturating_add(rate.degraded),
            errors: sum.errors.saturating_add(rate.errors),
            leased: sum.leased.saturating_add(rate.leased),
            tally: sum.tally.plus(&rate.tally),
        })
    }

    /// Returns the requests per second of all nodes by front end, multiplied by `metrics::SCALE`.
    pub(super) fn requests(&self, now: Timestamp) -> BTreeMap<&str, u64> {
        let (start, mut total) = (self.window_start(now), BTreeMap::new());
        for reports in self.recent.values() {
            let (mut of_node, mut covered) = (BTreeMap::new(), 0_u64);
            for report in reports {
                let slice = report.slice_after(start);
                covered = covered.saturating_add(slice.length());
                add(
                    &mut of_node,
                    report.requests.iter().map(|(name, n)| (&**name, slice.apply(*n))),
                );
            }
            add(&mut total, of_node.into_iter().map(|(name, n)| (name, per_second(n, covered))));
        }
        total
    }

    /// Returns the last `max` seconds for which every node has had time to report.
    pub(super) fn complete_seconds(
        &self,
        now: Timestamp,
        max: usize,
    ) -> impl Iterator<Item = (u64, &Second)> {
        self.timeline.before(now - self.report_interval - Duration::from_millis(SECOND_MS), max)
    }
}

/// Returns a count per second of a time in milliseconds.
fn per_second(count: u64, covered: u64) -> u64 {
    let product = u128::from(count) * u128::from(SECOND_MS);
    u64::try_from(product / u128::from(covered.max(1))).unwrap_or(u64::MAX)
}

/// Adds counts by front end to sums.
fn add<'a>(sums: &mut BTreeMap<&'a str, u64>, counts: impl IntoIterator<Item = (&'a str, u64)>) {
    for (front_end, count) in counts {
        let sum = sums.entry(front_end).or_default();
        *sum = sum.saturating_add(count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::SCALE;

    fn at(millis: u64) -> Timestamp {
        Timestamp::from_micros(millis * 1000)
    }

    fn report(span_ms: u64, allowed: u64, refused: u64) -> NodeReport {
        let text = format!(
            r#"{{"ms":{span_ms},"all":[{allowed},{refused},0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0]}}"#
        );
        serde_json::from_str(&text).expect("a valid report")
    }

    #[test]
    fn rates_are_per_node_and_in_total() {
        let mut view = View::default();
        view.add("a", at(1000), &report(1000, 10, 0));
        view.add("a", at(2000), &NodeReport { leased: 28, ..report(1000, 30, 2) });
        view.add("b", at(2000), &report(500, 5, 0));
        let rate = view.rate("a", at(2000)).expect("node a has reported");
        assert_eq!((rate.allowed, rate.refused, rate.leased), (20 * SCALE, SCALE, 14 * SCALE));
        assert_eq!(view.total(at(2000)).allowed, 30 * SCALE);
        assert!(view.rate("c", at(2000)).is_none());
    }

    #[test]
    fn requests_are_per_front_end_of_all_nodes() {
        let mut view = View::default();
        let report = |span_ms, requests: &[(&str, u64)]| NodeReport {
            span_ms,
            requests: requests.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect(),
            ..NodeReport::default()
        };
        view.add("a", at(1000), &report(1000, &[("http", 10)]));
        view.add("a", at(2000), &report(1000, &[("http", 30), ("resp", 4)]));
        view.add("b", at(2000), &report(500, &[("http", 5)]));
        let expected = BTreeMap::from([("http", 30 * SCALE), ("resp", 2 * SCALE)]);
        assert_eq!(view.requests(at(2000)), expected);
        view.drop_expired(at(7000));
        assert_eq!(view.requests(at(7000)), BTreeMap::new());
    }

    #[test]
    fn silent_node_drops_out_of_the_rates() {
        let mut view = View::default();
        view.add("a", at(10_000), &report(1000, 10, 0));
        view.drop_expired(at(14_999));
        assert!(view.rate("a", at(14_999)).is_some());
        view.drop_expired(at(15_000));
        assert!(view.rate("a", at(15_000)).is_none());
        assert_eq!(view.total(at(15_000)).allowed, 0);
    }

    #[test]
    fn long_report_counts_only_inside_the_window() {
        let mut view = View::default();
        view.add("a", at(60_000), &report(60_000, 600, 0));
        assert_eq!(view.total(at(60_000)).allowed, 10 * SCALE);
        for second in 61..65 {
            view.add("a", at(second * 1000), &report(1000, 0, 0));
        }
        assert_eq!(
            view.total(at(64_000)).allowed,
            2 * SCALE,
            "one of its seconds is in the window"
        );
        view.drop_expired(at(65_000));
        assert_eq!(view.total(at(65_000)).allowed, 0);
    }

    #[test]
    fn window_grows_with_the_report_interval() {
        let mut view = View { report_interval: Duration::from_secs(4), ..View::default() };
        view.add("a", at(10_000), &report(4000, 40, 0));
        view.drop_expired(at(21_000));
        assert!(view.rate("a", at(21_000)).is_some());
        let shown = |now| view.complete_seconds(at(now), 99).map(|(start, _)| start).last();
        assert_eq!(shown(13_000), Some(7000));
        assert_eq!(shown(15_000), Some(9000));
    }
}
