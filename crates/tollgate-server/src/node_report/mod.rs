//! The pulse of a node: what it counted since it last told, and how it fares. Nodes that share a Redis tell it there
//! once a second, so that each of them can show all.

mod node_status;
mod refused_keys;
mod reporter;

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::time::Instant;

use serde::{Deserialize, Serialize};

pub(crate) use node_status::NodeStatus;
pub(crate) use refused_keys::{RefusedKey, RefusedKeys, most_refused};
pub(crate) use reporter::run;

use crate::metrics::{Metrics, RuleTally, Tally};

/// The most rules in one pulse.
const MOST_RULES: usize = 32;
/// What those are called that are told together; no rule is called so.
const REST: &str = "…";

/// What was counted in a while.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct NodeReport {
    /// How long that while was.
    #[serde(rename = "ms")]
    pub(crate) span_ms: u64,
    #[serde(rename = "all")]
    pub(crate) tally: Tally,
    /// Rules that refused, or are on trial.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) rules: BTreeMap<String, RuleTally>,
}

/// Everything counted up to a moment.
#[derive(Debug, Clone)]
struct Snapshot {
    at: Instant,
    tally: Tally,
    rules: BTreeMap<String, RuleTally>,
}

impl Snapshot {
    fn of(metrics: &Metrics) -> Self {
        let (tally, rules) = metrics.tally();
        Self { at: Instant::now(), tally, rules }
    }

    /// What was counted since an earlier one.
    fn since(&self, earlier: &Self, is_on_trial: impl Fn(&str) -> bool) -> NodeReport {
        let span = self.at.duration_since(earlier.at);
        let rules = self.rules.iter().map(|(rule, now)| {
            let before = earlier.rules.get(rule).copied().unwrap_or_default();
            (rule, now.since(&before))
        });
        let told = rules
            .filter(|(rule, tally)| tally.has_news() || (tally.checked() > 0 && is_on_trial(rule)));
        NodeReport {
            span_ms: u64::try_from(span.as_millis()).unwrap_or(u64::MAX).max(1),
            tally: self.tally.since(&earlier.tally),
            rules: most_telling(told.map(|(rule, tally)| (rule.clone(), tally)).collect()),
        }
    }
}

/// Those with most to tell; the others together.
fn most_telling(mut rules: Vec<(String, RuleTally)>) -> BTreeMap<String, RuleTally> {
    if rules.len() > MOST_RULES {
        rules.sort_by_key(|(_, tally)| Reverse((tally.news(), tally.checked())));
        let rest = rules.split_off(MOST_RULES - 1);
        let rest = rest.iter().fold(RuleTally::default(), |sum, (_, tally)| sum.plus(tally));
        rules.push((REST.to_owned(), rest));
    }
    rules.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn snapshot(at: Instant, rules: &[(&str, [u64; 5])]) -> Snapshot {
        let tally = |figures: &[u64; 5]| {
            serde_json::from_value(serde_json::json!(figures)).expect("five figures")
        };
        let rules =
            rules.iter().map(|(rule, figures)| ((*rule).to_owned(), tally(figures))).collect();
        Snapshot { at, tally: Tally::default(), rules }
    }

    #[test]
    fn rules_are_told_where_something_is_to_be_seen() {
        let begin = Instant::now();
        let earlier = snapshot(begin, &[("quiet", [1, 0, 0, 0, 0]), ("trial", [1, 0, 0, 0, 0])]);
        let later = snapshot(
            begin + Duration::from_millis(1500),
            &[
                ("quiet", [9, 0, 0, 0, 0]),
                ("refusing", [3, 2, 0, 0, 0]),
                ("trial", [5, 0, 0, 0, 0]),
                ("unused trial", [0, 0, 0, 0, 0]),
            ],
        );
        let pulse = later.since(&earlier, |rule| rule.contains("trial"));
        assert_eq!(pulse.span_ms, 1500);
        let told: Vec<_> =
            pulse.rules.iter().map(|(rule, tally)| (&**rule, tally.figures())).collect();
        assert_eq!(told, [("refusing", [3, 2, 0, 0, 0]), ("trial", [4, 0, 0, 0, 0])]);
    }

    #[test]
    fn of_many_rules_those_with_most_to_tell_are_named_and_none_is_lost() {
        let begin = Instant::now();
        let names: Vec<String> = (0..500).map(|nth| format!("rule-{nth:03}")).collect();
        let rules: Vec<(&str, [u64; 5])> =
            names.iter().zip(1..).map(|(name, nth)| (&**name, [nth, nth, 0, 0, 0])).collect();
        let pulse = snapshot(begin, &rules).since(&snapshot(begin, &[]), |_| false);
        assert_eq!(pulse.rules.len(), MOST_RULES);
        assert!(pulse.rules.contains_key("rule-499") && !pulse.rules.contains_key("rule-000"));
        let sum: u64 = pulse.rules.values().map(RuleTally::checked).sum();
        assert_eq!(sum, (1..=500).sum::<u64>());
    }

    #[test]
    fn a_pulse_is_read_as_it_was_written() {
        let begin = Instant::now();
        let pulse =
            snapshot(begin, &[("r", [3, 2, 0, 0, 1])]).since(&snapshot(begin, &[]), |_| true);
        let text = serde_json::to_string(&pulse).unwrap();
        assert!(text.contains(r#""rules":{"r":[3,2,0,0,1]}"#), "{text}");
        assert_eq!(serde_json::from_str::<NodeReport>(&text).unwrap(), pulse);
    }
}
