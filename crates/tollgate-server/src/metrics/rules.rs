//! What is counted for each rule.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use parking_lot::Mutex;
use tollgate::policy::{MatchedRule, Policy, Rule};
use tollgate::{Decision, Mode, Observation, Status};

use super::tally::RuleTally;
use super::text::Exposition;
use super::{add_one, read};

/// The rules that there are, by name.
#[derive(Debug, Default)]
pub(super) struct Rules(Mutex<BTreeMap<String, Arc<RuleCounters>>>);

/// What is counted for one rule.
#[derive(Debug, Default)]
struct RuleCounters {
    passed: AtomicU64,
    refused: AtomicU64,
    shadow: AtomicU64,
    next: AtomicU64,
    divergence: AtomicU64,
}

/// A policy's rules in their order, the default last.
#[derive(Debug)]
pub(crate) struct Handles(Vec<Arc<RuleCounters>>);

impl Rules {
    /// Rules keep their counts across policies by name; those of rules that are gone are dropped, so
    /// that the number of series stays that of the rules.
    pub(super) fn resolve(&self, policy: &Policy) -> Handles {
        let mut known = self.0.lock();
        let rules = policy.rules().iter().chain([policy.default_rule()]);
        let named: Vec<(String, Arc<RuleCounters>)> = rules
            .map(|rule| (rule.name().to_owned(), known.remove(rule.name()).unwrap_or_default()))
            .collect();
        let handles = named.iter().map(|(_, counters)| Arc::clone(counters)).collect();
        *known = named.into_iter().collect();
        Handles(handles)
    }

    /// What was counted for each rule up to now.
    pub(super) fn tally(&self) -> BTreeMap<String, RuleTally> {
        let rules = self.0.lock();
        rules.iter().map(|(rule, counters)| (rule.clone(), counters.tally())).collect()
    }

    pub(super) fn render(&self, out: &mut Exposition) {
        let rules = self.0.lock();
        let help = "Checks that a rule applied to, by whether a limit of it was what refused.";
        let mut metric = out.counter("tollgate_rule_checks_total", help);
        for (rule, counters) in rules.iter() {
            metric
                .sample(&[("rule", rule), ("result", "allowed")], read(&counters.passed))
                .sample(&[("rule", rule), ("result", "refused")], read(&counters.refused));
        }
        let help = "Checks that a shadow rule or a trial limit would have refused.";
        let mut metric = out.counter("tollgate_would_refuse_total", help);
        for (rule, counters) in rules.iter() {
            metric
                .sample(&[("rule", rule), ("trial", "shadow")], read(&counters.shadow))
                .sample(&[("rule", rule), ("trial", "next")], read(&counters.next));
        }
        let help =
            "Checks that this node and the shared store, asked beside it, decided differently.";
        let mut metric = out.counter("rate_limit_shadow_divergence_total", help);
        for (rule, counters) in rules.iter() {
            metric.sample(&[("rule", rule)], read(&counters.divergence));
        }
    }
}

impl RuleCounters {
    fn tally(&self) -> RuleTally {
        let (passed, refused) = (read(&self.passed), read(&self.refused));
        let tried = [&self.shadow, &self.next, &self.divergence].map(read);
        let [shadow, next, divergence] = tried;
        RuleTally([passed.saturating_add(refused), refused, shadow, next, divergence])
    }
}

impl Handles {
    /// Counts what each rule did, and what was tried and not enforced.
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
        if let Some(beside) = decision.shadow_decision() {
            self.count_divergence(observed, decision, beside);
        }
    }

    /// Once per rule that would have refused, however many of its limits would.
    fn count_shadows(&self, observed: &Observation<'_, '_>, decision: &Decision<'_>) {
        for (rule, counters) in self.applied(observed) {
            let refused = |is_next: bool| {
                of_rule(decision, rule).any(|status| {
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

    /// Once per rule that one of them would have refused and the other not.
    fn count_divergence(
        &self,
        observed: &Observation<'_, '_>,
        decision: &Decision<'_>,
        beside: &Decision<'_>,
    ) {
        for (rule, counters) in self.applied(observed) {
            if of_rule(beside, rule).next().is_none() {
                continue;
            }
            if passes(decision, rule) != passes(beside, rule) {
                add_one(&counters.divergence);
            }
        }
    }

    fn applied<'o>(
        &'o self,
        observed: &'o Observation<'_, '_>,
    ) -> impl Iterator<Item = (&'o Rule, &'o RuleCounters)> {
        let rules = observed.applied.matched().iter().map(MatchedRule::rule);
        rules.filter_map(|rule| Some((rule, &**self.0.get(rule.index())?)))
    }
}

/// Whether the rule as it is now would let it pass.
fn passes(decision: &Decision<'_>, rule: &Rule) -> bool {
    let mut live = of_rule(decision, rule).filter(|it| !rule.is_on_trial(it.limit().name()));
    live.all(|status| status.verdict().is_allowed())
}

fn of_rule<'d, 'p>(
    decision: &'d Decision<'p>,
    rule: &'d Rule,
) -> impl Iterator<Item = &'d Status<'p>> {
    decision.statuses().iter().filter(|status| status.limit().rule() == rule.name())
}
