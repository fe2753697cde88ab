//! What was counted in each of the last seconds.

use std::collections::BTreeMap;
use std::time::Duration;

use tollgate::Timestamp;

use crate::metrics::{Part, RuleTally, Tally};
use crate::node_report::NodeReport;

/// The length of one of them, in milliseconds.
pub(super) const SECOND: u64 = 1000;
/// For how long they are remembered.
pub(super) const MEMORY: Duration = tollgate_redis::REPORT_HISTORY;

/// The last seconds, by when they begin, in milliseconds since the epoch.
#[derive(Debug, Default)]
pub(super) struct Timeline {
    seconds: BTreeMap<u64, Second>,
}

/// What was counted in a second, [finely](crate::metrics::FINE).
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Second {
    pub(super) all: Tally,
    pub(super) rules: BTreeMap<String, RuleTally>,
}

impl Timeline {
    /// Adds what was counted until a moment, evenly over the seconds that it was counted in.
    pub(super) fn add(&mut self, until: Timestamp, pulse: &NodeReport) {
        let until = millis(until);
        let memory = u64::try_from(MEMORY.as_millis()).unwrap_or(u64::MAX);
        let span = pulse.span_ms.clamp(1, memory);
        let from = until.saturating_sub(span);
        let mut at = from;
        while at < until {
            let second = at - at % SECOND;
            let to = until.min(second + SECOND);
            let part = Part { from: at - from, to: to - from, of: span };
            self.seconds.entry(second).or_default().add(pulse, part);
            at = to;
        }
        let oldest = until.saturating_sub(memory);
        if self.seconds.first_key_value().is_some_and(|(first, _)| *first < oldest) {
            self.seconds = self.seconds.split_off(&oldest);
        }
    }

    /// The last of the seconds that were over at a moment.
    pub(super) fn before(
        &self,
        end: Timestamp,
        most: usize,
    ) -> impl Iterator<Item = (u64, &Second)> {
        let over = self.seconds.range(..=millis(end).saturating_sub(SECOND));
        let skipped = over.clone().count().saturating_sub(most);
        over.skip(skipped).map(|(begin, second)| (*begin, second))
    }
}

impl Second {
    fn add(&mut self, pulse: &NodeReport, part: Part) {
        self.all = self.all.plus(&pulse.tally.part(part));
        for (rule, tally) in &pulse.rules {
            let tally = tally.part(part);
            match self.rules.get_mut(rule) {
                Some(sum) => *sum = sum.plus(&tally),
                None => {
                    self.rules.insert(rule.clone(), tally);
                }
            }
        }
    }
}

pub(super) fn millis(moment: Timestamp) -> u64 {
    moment.as_micros() / 1000
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::FINE;

    fn at(millis: u64) -> Timestamp {
        Timestamp::from_micros(millis * 1000)
    }

    fn pulse(span_ms: u64, allowed: u64) -> NodeReport {
        let text = format!(
            r#"{{"ms":{span_ms},"all":[{allowed},0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0],"rules":{{"r":[{allowed},1,0,0,0]}}}}"#
        );
        serde_json::from_str(&text).expect("a pulse")
    }

    fn allowed(timeline: &Timeline) -> Vec<(u64, u64)> {
        let seconds = timeline.before(at(u64::MAX / 2000), usize::MAX);
        seconds.map(|(begin, second)| (begin, second.all.allowed())).collect()
    }

    #[test]
    fn a_pulse_falls_to_the_seconds_it_was_counted_in() {
        let mut timeline = Timeline::default();
        timeline.add(at(12_500), &pulse(2000, 8));
        let expected = [(10_000, 2 * FINE), (11_000, 4 * FINE), (12_000, 2 * FINE)];
        assert_eq!(allowed(&timeline), expected);
        timeline.add(at(13_000), &pulse(1000, 2));
        assert_eq!(allowed(&timeline).last(), Some(&(12_000, 4 * FINE)));
        let (_, second) = timeline.before(at(20_000), 1).next().expect("one");
        assert_eq!(second.rules["r"].checked(), 4 * FINE);
    }

    #[test]
    fn nothing_is_lost_between_seconds() {
        let mut timeline = Timeline::default();
        timeline.add(at(99_999), &pulse(7777, 13));
        let sum: u64 = allowed(&timeline).iter().map(|(_, allowed)| allowed).sum();
        assert_eq!(sum, 13 * FINE);
    }

    #[test]
    fn seconds_are_shown_when_they_are_over() {
        let mut timeline = Timeline::default();
        timeline.add(at(10_000), &pulse(5000, 5));
        let shown = |end: u64, most| timeline.before(at(end), most).map(|(begin, _)| begin);
        assert_eq!(shown(7_000, 9).collect::<Vec<_>>(), [5000, 6000]);
        assert_eq!(shown(7_999, 9).collect::<Vec<_>>(), [5000, 6000]);
        assert_eq!(shown(20_000, 2).collect::<Vec<_>>(), [8000, 9000]);
    }

    #[test]
    fn seconds_are_forgotten_in_time() {
        let mut timeline = Timeline::default();
        timeline.add(at(10_000), &pulse(5000, 5));
        let long = u64::try_from(MEMORY.as_millis()).unwrap();
        timeline.add(at(8000 + long), &pulse(1000, 1));
        assert_eq!(allowed(&timeline).first().unwrap().0, 8000);
        timeline.add(at(long * 9), &pulse(u64::MAX, 1));
        assert!(
            allowed(&timeline).len() <= 902,
            "a wrong pulse takes no more room than a right one"
        );
    }
}
