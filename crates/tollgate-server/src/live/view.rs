//! What one or many nodes told: their seconds together, and each by itself lately.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use tollgate::Timestamp;

use super::timeline::{SECOND, Timeline};
use crate::metrics::{FINE, Tally};
use crate::pulse::Pulse;

/// What was told so long ago is lately.
const LATELY: Duration = Duration::from_secs(5);

/// What was told, and by whom.
#[derive(Debug, Default)]
pub(super) struct View {
    pub(super) timeline: Timeline,
    lately: BTreeMap<String, VecDeque<(Timestamp, u64, Tally)>>,
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

impl View {
    pub(super) fn add(&mut self, node: &str, until: Timestamp, pulse: &Pulse) {
        self.timeline.add(until, pulse);
        let told = (until, pulse.span_ms, pulse.tally);
        match self.lately.get_mut(node) {
            Some(lately) => lately.push_back(told),
            None => {
                self.lately.insert(node.to_owned(), VecDeque::from([told]));
            }
        }
    }

    /// Forgets what is no longer lately. The last of each node stays for as long as it was counted, and some more.
    pub(super) fn forget(&mut self, now: Timestamp) {
        self.lately.retain(|_, lately| {
            while lately.front().is_some_and(|(at, span, _)| is_over(now, *at, *span)) {
                lately.pop_front();
            }
            !lately.is_empty()
        });
    }

    /// What a node counted lately; none if it told nothing.
    pub(super) fn rate(&self, node: &str) -> Option<Rate> {
        let lately = self.lately.get(node)?;
        let span = lately.iter().fold(0_u64, |sum, (_, span, _)| sum.saturating_add(*span)).max(1);
        let tally = lately.iter().fold(Tally::default(), |sum, (_, _, tally)| sum.plus(tally));
        let a_second = |count: u64| {
            let product = u128::from(count) * u128::from(SECOND * FINE);
            u64::try_from(product / u128::from(span)).unwrap_or(u64::MAX)
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
    pub(super) fn total(&self) -> Rate {
        let rates = self.lately.keys().filter_map(|node| self.rate(node));
        rates.fold(Rate::default(), |sum, rate| Rate {
            allowed: sum.allowed.saturating_add(rate.allowed),
            refused: sum.refused.saturating_add(rate.refused),
            degraded: sum.degraded.saturating_add(rate.degraded),
            errors: sum.errors.saturating_add(rate.errors),
            tally: sum.tally.plus(&rate.tally),
        })
    }
}

fn is_over(now: Timestamp, at: Timestamp, span_ms: u64) -> bool {
    // Of a fleet that tells less often than every second, more is lately.
    let long = LATELY.max(Duration::from_millis(span_ms.min(60_000).saturating_mul(2)));
    now > at + long
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Timestamp {
        Timestamp::from_micros(millis * 1000)
    }

    fn pulse(span_ms: u64, allowed: u64, refused: u64) -> Pulse {
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
        let rate = view.rate("a").expect("it told");
        assert_eq!((rate.allowed, rate.refused), (20 * FINE, FINE));
        assert_eq!(view.total().allowed, 30 * FINE);
        assert!(view.rate("c").is_none());
    }

    #[test]
    fn a_node_that_falls_silent_counts_no_longer() {
        let mut view = View::default();
        view.add("a", at(1000), &pulse(1000, 10, 0));
        view.add("slow", at(1000), &pulse(4000, 40, 0));
        view.forget(at(6000));
        assert!(view.rate("a").is_some());
        view.forget(at(6001));
        assert!(view.rate("a").is_none() && view.rate("slow").is_some());
        view.forget(at(9001));
        assert_eq!(view.total().allowed, 0);
    }
}
