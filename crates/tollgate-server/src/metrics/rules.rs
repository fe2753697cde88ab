//! Counters per rule.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use parking_lot::Mutex;
use tollgate::policy::{MatchedRule, Policy, Rule};
use tollgate::{Decision, Mode, Observation, Status};

use super::tally::RuleTally;
use super::text::Exposition;
use super::{add_one, read};

/// Counters of the active policy's rules, by rule name.
#[derive(Debug, Default)]
pub(super) struct Rules(Mutex<BTreeMap<String, Arc<RuleCounters>>>);

/// Counters of one rule.
#[derive(Debug, Default)]
struct RuleCounters {
    passed: AtomicU64,
    refused: AtomicU64,
    shadow: AtomicU64,
    next: AtomicU64,
    divergence: AtomicU64,
}

/// Counters of a policy's rules in policy order, the default rule last.
#[derive(Debug)]
pub(crate) struct Handles(Vec<Arc<RuleCounters>>);

impl Rules {
    /// Returns the counters for a policy. A rule keeps its counts across policies by name; counters of removed rules
    /// are dropped, so the number of series equals the number of rules.
    pub(super) fn resolve(&self, policy: &Policy) -> Handles {
        let mut counters_by_rule = self.0.lock();
        let rules = policy.rules().iter().chain([policy.default_rule()]);
        let named: Vec<(String, Arc<RuleCounters>)> = rules
            .map(|rule| {
                let counters = counters_by_rule.remove(rule.name()).unwrap_or_default();
                (rule.name().to_owned(), counters)
            })
            .collect();
        let handles = named.iter().map(|(_, counters)| Arc::clone(counters)).collect();
        *counters_by_rule = named.into_iter().collect();
        Handles(handles)
    }

    /// Returns the counts of each rule since the start.
    pub(super) fn tally(&self) -> BTreeMap<String, RuleTally> {
        let rules = self.0.lock();
        rules.iter().map(|(rule, counters)| (rule.clone(), counters.tally())).collect()
    }

    pub(super) fn render(&self, out: &mut Exposition) {
        let rules = self.0.lock();
        let help = "Checks that matched a rule, by whether one of its limits refused the check.";
        let mut metric = out.counter("tollgate_rule_checks_total", help);
        for (rule, counters) in rules.iter() {
            metric
                .sample(&[("rule", rule), ("result", "allowed")], read(&counters.passed))
                .sample(&[("rule", rule), ("result", "refused")], read(&counters.refused));
        }
        let help = "Checks that a shadow rule or a trial (next) limit would have refused.";
        let mut metric = out.counter("tollgate_would_refuse_total", help);
        for (rule, counters) in rules.iter() {
            metric
                .sample(&[("rule", rule), ("trial", "shadow")], read(&counters.shadow))
                .sample(&[("rule", rule), ("trial", "next")], read(&counters.next));
        }
        let help =
            "Checks that this node and the shared store decided differently (distributed: shadow).";
        let mut metric = out.counter("rate_limit_shadow_divergence_total", help);
        for (rule, counters) in rules.iter() {
            metric.sample(&[("rule", rule)], read(&counters.divergence));
        }
    }
}

impl RuleCounters {
    fn tally(&self) -> RuleTally {
        let (passed, refused) = (read(&self.passed), read(&self.refused));
        let [shadow, next, divergence] = [&self.shadow, &self.next, &self.divergence].map(read);
        RuleTally([passed.saturating_add(refused), refused, shadow, next, divergence])
    }
}

impl Handles {
    /// Counts the result for each matched rule, and the results of shadow rules and trial limits.
    pub(super) fn count(&self, observed: &Observation<'_, '_>, decision: &Decision<'_>) {
        let deciding = decision.deciding().filter(|_| !decision.is_allowed());
        let refusing = deciding.map(|status| status.limit().rule());
        for (rule, counters) in self.applied(observed) {
            let is_refusing = refusing == Some(rule.name());
            add_one(if is_refusing { &counters.refused } else { &counters.passed });
        }
        if decision.statuses().iter().any(|status| status.mode() != Mode::Enforce) {
            self.count_shadows(observed, decision);
        }
        if let Some(shadow) = decision.shadow_decision() {
            self.count_divergence(observed, decision, shadow);
        }
    }

    /// Counts each rule that would have refused once, however many of its limits would have.
    fn count_shadows(&self, observed: &Observation<'_, '_>, decision: &Decision<'_>) {
        for (rule, counters) in self.applied(observed) {
            let refused = |is_next: bool| {
                statuses_of(decision, rule).any(|status| {
                    status.mode() != Mode::Enforce
                        && rule.is_on_trial(status.limit().name()) == is_next
                        && !status.verdict().is_allowed()
                })
            };
            if refused(false) {
                add_one(&counters.shadow);
            }
            if refused(true) {
                add_one(&counters.next);
            }
        }
    }

    /// Counts each rule that one of the two decisions refuses and the other allows, once.
    fn count_divergence(
        &self,
        observed: &Observation<'_, '_>,
        decision: &Decision<'_>,
        shadow: &Decision<'_>,
    ) {
        for (rule, counters) in self.applied(observed) {
            if statuses_of(shadow, rule).next().is_none() {
                continue;
            }
            if is_allowed_by(decision, rule) != is_allowed_by(shadow, rule) {
                add_one(&counters.divergence);
            }
        }
    }

    fn applied<'o>(
        &'o self,
        observed: &'o Observation<'_, '_>,
    ) -> impl Iterator<Item = (&'o Rule, &'o RuleCounters)> {
        let rules = observed.query.matched().iter().map(MatchedRule::rule);
        rules.filter_map(|rule| Some((rule, &**self.0.get(rule.index())?)))
    }
}

/// Returns whether the rule's current limits (without trial limits) allow the check.
fn is_allowed_by(decision: &Decision<'_>, rule: &Rule) -> bool {
    let mut current =
        statuses_of(decision, rule).filter(|status| !rule.is_on_trial(status.limit().name()));
    current.all(|status| status.verdict().is_allowed())
}

fn statuses_of<'d, 'p>(
    decision: &'d Decision<'p>,
    rule: &'d Rule,
) -> impl Iterator<Item = &'d Status<'p>> {
    decision.statuses().iter().filter(|status| status.limit().rule() == rule.name())
}
