//! What one or many nodes told: their seconds together, and each by itself lately.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use tollgate::Timestamp;

use super::timeline::{SECOND, Second, Timeline, millis};
use crate::metrics::{Part, Tally};
use crate::node_report::NodeReport;

/// So much of what was told is lately, if nodes tell once a second.
const LATELY: Duration = Duration::from_secs(5);

/// What was told, and by whom.
#[derive(Debug)]
pub(super) struct View {
    pub(super) timeline: Timeline,
    /// The time between two pulses of a node.
    pub(super) pause: Duration,
    lately: BTreeMap<String, VecDeque<Told>>,
}

/// A pulse: until when, in milliseconds, of how long, and what was counted.
#[derive(Debug)]
struct Told {
    until: u64,
    span: u64,
    tally: Tally,
}

/// What happened in a second, on the average of the last few, [finely](FINE).
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Rate {
    pub(super) allowed: u64,
    pub(super) refused: u64,
    pub(super) degraded: u64,
    pub(super) errors: u64,
    /// All that was counted, for how long it took.
    pub(super) tally: Tally,
}

impl Rate {
    /// What was counted in one second, finely.
    pub(super) const fn of_second(tally: Tally) -> Self {
        Self {
            allowed: tally.allowed(),
            refused: tally.refused(),
            degraded: tally.degraded(),
            errors: tally.errors(),
            tally,
        }
    }
}

impl Default for View {
    fn default() -> Self {
        let pause = Duration::from_millis(SECOND);
        Self { timeline: Timeline::default(), pause, lately: BTreeMap::new() }
    }
}

impl View {
    pub(super) fn add(&mut self, node: &str, until: Timestamp, pulse: &NodeReport) {
        self.timeline.add(until, pulse);
        let told = Told { until: millis(until), span: pulse.span_ms.max(1), tally: pulse.tally };
        match self.lately.get_mut(node) {
            Some(lately) => lately.push_back(told),
            None => {
                self.lately.insert(node.to_owned(), VecDeque::from([told]));
            }
        }
    }

    /// Forgets what is no longer lately.
    pub(super) fn forget(&mut self, now: Timestamp) {
        let begin = self.begin(now);
        self.lately.retain(|_, lately| {
            while lately.front().is_some_and(|told| told.until <= begin) {
                lately.pop_front();
            }
            !lately.is_empty()
        });
    }

    /// Since when is lately. Of a fleet that tells less often, more is.
    fn begin(&self, now: Timestamp) -> u64 {
        millis(now - LATELY.max(self.pause * 3))
    }

    /// What a node counted lately; none if it told nothing.
    pub(super) fn rate(&self, node: &str, now: Timestamp) -> Option<Rate> {
        let begin = self.begin(now);
        let (mut tally, mut covered) = (Tally::default(), 0_u64);
        for told in self.lately.get(node)? {
            // Of what was counted in a long while, as in an outage, only the end is lately.
            let lasted = told.until.saturating_sub(begin).min(told.span);
            let part = Part { from: told.span - lasted, to: told.span, of: told.span };
            tally = tally.plus(&told.tally.part(part));
            covered = covered.saturating_add(lasted);
        }
        let a_second = |count: u64| {
            let product = u128::from(count) * u128::from(SECOND);
            u64::try_from(product / u128::from(covered.max(1))).unwrap_or(u64::MAX)
        };
        Some(Rate {
            allowed: a_second(tally.allowed()),
            refused: a_second(tally.refused()),
            degraded: a_second(tally.degraded()),
            errors: a_second(tally.errors()),
            tally,
        })
    }

    /// What all of them counted lately.
    pub(super) fn total(&self, now: Timestamp) -> Rate {
        let rates = self.lately.keys().filter_map(|node| self.rate(node, now));
        rates.fold(Rate::default(), |sum, rate| Rate {
            allowed: sum.allowed.saturating_add(rate.allowed),
            refused: sum.refused.saturating_add(rate.refused),
            degraded: sum.degraded.saturating_add(rate.degraded),
            errors: sum.errors.saturating_add(rate.errors),
            tally: sum.tally.plus(&rate.tally),
        })
    }

    /// The last seconds that every node has had time to tell of.
    pub(super) fn whole(
        &self,
        now: Timestamp,
        most: usize,
    ) -> impl Iterator<Item = (u64, &Second)> {
        self.timeline.before(now - self.pause - Duration::from_millis(SECOND), most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::FINE;

    fn at(millis: u64) -> Timestamp {
        Timestamp::from_micros(millis * 1000)
    }

    fn pulse(span_ms: u64, allowed: u64, refused: u64) -> NodeReport {
        let text = format!(
            r#"{{"ms":{span_ms},"all":[{allowed},{refused},0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0]}}"#
        );
        serde_json::from_str(&text).expect("a pulse")
    }

    #[test]
    fn rates_are_of_each_node_and_of_all() {
        let mut view = View::default();
        view.add("a", at(1000), &pulse(1000, 10, 0));
        view.add("a", at(2000), &pulse(1000, 30, 2));
        view.add("b", at(2000), &pulse(500, 5, 0));
        let rate = view.rate("a", at(2000)).expect("it told");
        assert_eq!((rate.allowed, rate.refused), (20 * FINE, FINE));
        assert_eq!(view.total(at(2000)).allowed, 30 * FINE);
        assert!(view.rate("c", at(2000)).is_none());
    }

    #[test]
    fn a_node_that_falls_silent_counts_no_longer() {
        let mut view = View::default();
        view.add("a", at(10_000), &pulse(1000, 10, 0));
        view.forget(at(14_999));
        assert!(view.rate("a", at(14_999)).is_some());
        view.forget(at(15_000));
        assert!(view.rate("a", at(15_000)).is_none());
        assert_eq!(view.total(at(15_000)).allowed, 0);
    }

    #[test]
    fn what_was_counted_in_an_outage_is_soon_no_longer_lately() {
        let mut view = View::default();
        view.add("a", at(60_000), &pulse(60_000, 600, 0));
        assert_eq!(view.total(at(60_000)).allowed, 10 * FINE);
        for second in 61..65 {
            view.add("a", at(second * 1000), &pulse(1000, 0, 0));
        }
        assert_eq!(view.total(at(64_000)).allowed, 2 * FINE, "one second of five is left of it");
        view.forget(at(65_000));
        assert_eq!(view.total(at(65_000)).allowed, 0);
    }

    #[test]
    fn a_fleet_that_tells_less_often_is_given_time() {
        let mut view = View { pause: Duration::from_secs(4), ..View::default() };
        view.add("a", at(10_000), &pulse(4000, 40, 0));
        view.forget(at(21_000));
        assert!(view.rate("a", at(21_000)).is_some());
        let shown = |now| view.whole(at(now), 99).map(|(begin, _)| begin).last();
        assert_eq!(shown(13_000), Some(7000));
        assert_eq!(shown(15_000), Some(9000));
    }
}
