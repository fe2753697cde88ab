//! Node reports: counts since the last report, and the node's status. Nodes that share a Redis send one per second
//! there, so that every node knows the number of live nodes and can show the whole fleet.

mod fleet_membership;
mod node_status;
mod pending_figures;
mod refusal_rate;
mod refused_keys;
mod report_health;
mod reporter;

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use tollgate::Distributed;
use tollgate::policy::{Policy, Rule, RuleMode};

pub(crate) use node_status::NodeStatus;
pub(crate) use refused_keys::{RefusedKey, RefusedKeys, add_up_refused, merge_refused};
pub(crate) use reporter::Reporter;

use crate::metrics::{RuleTally, Tally};
use crate::node::NodeContext;

/// Maximum number of rules in one report.
const MAX_RULES: usize = 32;
/// Name for the sum of the remaining rules; not a valid rule name.
pub(crate) const REST: &str = "…";

/// Average time between two reports with figures in the whole fleet, and the bounds of this time for one node.
const FLEET_FIGURES_INTERVAL: Duration = Duration::from_millis(20);
const MIN_FIGURES_INTERVAL: Duration = Duration::from_secs(1);
const MAX_FIGURES_INTERVAL: Duration = Duration::from_secs(5);

/// Counts of one interval.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct NodeReport {
    /// Length of the interval in milliseconds.
    #[serde(rename = "ms")]
    pub(crate) span_ms: u64,
    #[serde(rename = "all")]
    pub(crate) tally: Tally,
    /// Rules that refused a check, and rules that are on trial.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) rules: BTreeMap<String, RuleTally>,
    /// Requests by front end, without those that had none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) requests: BTreeMap<String, u64>,
    /// Checks decided from a lease.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) leased: u64,
}

/// Reports without leases do not contain the figure.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde requires")]
const fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// All counts since the start, at one time.
#[derive(Debug, Clone)]
pub(crate) struct CounterSnapshot {
    at: Instant,
    tally: Tally,
    rules: BTreeMap<String, RuleTally>,
    requests: BTreeMap<&'static str, u64>,
    leased: u64,
}

impl CounterSnapshot {
    pub(crate) fn of(context: &NodeContext) -> Self {
        let metrics = context.metrics();
        let (tally, rules) = metrics.tally();
        let leases = context.backend().lease_stats().unwrap_or_default();
        Self {
            at: Instant::now(),
            tally,
            rules,
            requests: metrics.front_ends().requests(),
            leased: leases.decisions,
        }
    }

    /// Returns the counts since an earlier snapshot.
    pub(crate) fn since(&self, earlier: &Self, is_on_trial: impl Fn(&str) -> bool) -> NodeReport {
        let span = self.at.duration_since(earlier.at);
        let rules = self.rules.iter().map(|(rule, now)| {
            let before = earlier.rules.get(rule).copied().unwrap_or_default();
            (rule, now.since(&before))
        });
        let reported = rules.filter(|(rule, tally)| {
            tally.has_refusals() || (tally.checked() > 0 && is_on_trial(rule))
        });
        NodeReport {
            span_ms: u64::try_from(span.as_millis()).unwrap_or(u64::MAX).max(1),
            tally: self.tally.since(&earlier.tally),
            rules: limit_rules(reported.map(|(rule, tally)| (rule.clone(), tally)).collect()),
            requests: self.requests_since(earlier),
            leased: self.leased.saturating_sub(earlier.leased),
        }
    }

    fn requests_since(&self, earlier: &Self) -> BTreeMap<String, u64> {
        let requests = self.requests.iter().map(|(front_end, now)| {
            let before = earlier.requests.get(front_end).copied().unwrap_or_default();
            ((*front_end).to_owned(), now.saturating_sub(before))
        });
        requests.filter(|(_, count)| *count > 0).collect()
    }
}

/// Returns the time between two reports with figures of a node. In a large fleet only some reports contain figures.
pub(crate) fn figures_interval(context: &NodeContext) -> Duration {
    let nodes = context.backend().fallback().map_or(1, |store| store.nodes().get());
    (FLEET_FIGURES_INTERVAL * nodes).clamp(MIN_FIGURES_INTERVAL, MAX_FIGURES_INTERVAL)
}

/// Returns whether a rule is evaluated without being enforced as a whole.
pub(crate) fn is_on_trial(policy: &Policy, rule: &str) -> bool {
    let is_evaluated_only = |rule: &Rule| {
        rule.mode() == RuleMode::Shadow
            || !rule.next().is_empty()
            || rule.distributed() == Distributed::Shadow
    };
    policy.rule(rule).is_some_and(is_evaluated_only)
}

/// Keeps the rules with the most refusals and adds up the rest under [`REST`].
fn limit_rules(mut rules: Vec<(String, RuleTally)>) -> BTreeMap<String, RuleTally> {
    if rules.len() > MAX_RULES {
        rules.sort_by_key(|(_, tally)| Reverse((tally.refusals(), tally.checked())));
        let rest = rules.split_off(MAX_RULES - 1);
        let rest = rest.iter().fold(RuleTally::default(), |sum, (_, tally)| sum.plus(tally));
        rules.push((REST.to_owned(), rest));
    }
    rules.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snapshot(at: Instant, rules: &[(&str, [u64; 5])]) -> CounterSnapshot {
        let tally = |figures: &[u64; 5]| {
            serde_json::from_value(serde_json::json!(figures)).expect("five figures")
        };
        let rules =
            rules.iter().map(|(rule, figures)| ((*rule).to_owned(), tally(figures))).collect();
        CounterSnapshot { at, tally: Tally::default(), rules, requests: BTreeMap::new(), leased: 0 }
    }

    #[test]
    fn reports_only_refusing_rules_and_rules_on_trial() {
        let start = Instant::now();
        let earlier = snapshot(start, &[("quiet", [1, 0, 0, 0, 0]), ("trial", [1, 0, 0, 0, 0])]);
        let later = snapshot(
            start + Duration::from_millis(1500),
            &[
                ("quiet", [9, 0, 0, 0, 0]),
                ("refusing", [3, 2, 0, 0, 0]),
                ("trial", [5, 0, 0, 0, 0]),
                ("unused trial", [0, 0, 0, 0, 0]),
            ],
        );
        let report = later.since(&earlier, |rule| rule.contains("trial"));
        assert_eq!(report.span_ms, 1500);
        let rules: Vec<_> =
            report.rules.iter().map(|(rule, tally)| (&**rule, tally.figures())).collect();
        assert_eq!(rules, [("refusing", [3, 2, 0, 0, 0]), ("trial", [4, 0, 0, 0, 0])]);
    }

    #[test]
    fn limits_the_number_of_rules_without_losing_counts() {
        let start = Instant::now();
        let names: Vec<String> = (0..500).map(|nth| format!("rule-{nth:03}")).collect();
        let rules: Vec<(&str, [u64; 5])> =
            names.iter().zip(1..).map(|(name, nth)| (&**name, [nth, nth, 0, 0, 0])).collect();
        let report = snapshot(start, &rules).since(&snapshot(start, &[]), |_| false);
        assert_eq!(report.rules.len(), MAX_RULES);
        assert!(report.rules.contains_key("rule-499") && !report.rules.contains_key("rule-000"));
        let sum: u64 = report.rules.values().map(RuleTally::checked).sum();
        assert_eq!(sum, (1..=500).sum::<u64>());
    }

    #[test]
    fn report_survives_a_json_round_trip() {
        let start = Instant::now();
        let mut end = snapshot(start, &[("r", [3, 2, 0, 0, 1])]);
        end.requests = BTreeMap::from([("http", 5), ("resp", 0)]);
        let report = end.since(&snapshot(start, &[]), |_| true);
        let text = serde_json::to_string(&report).unwrap();
        assert!(text.contains(r#""rules":{"r":[3,2,0,0,1]},"requests":{"http":5}"#), "{text}");
        assert_eq!(serde_json::from_str::<NodeReport>(&text).unwrap(), report);
    }

    #[test]
    fn report_of_an_older_version_has_no_requests() {
        let mut value = serde_json::to_value(NodeReport::default()).unwrap();
        assert!(value.as_object_mut().unwrap().remove("requests").is_none(), "{value}");
        assert_eq!(serde_json::from_value::<NodeReport>(value).unwrap(), NodeReport::default());
    }
}
