//! Counters per rule.

use ::metrics::{Counter, counter, describe_counter};
use tollgate::policy::Rule;
use tollgate::{Decision, Mode, Status};

use super::observer::registered;

const CHECKS: &str = "tollgate_rule_checks_total";
const WOULD_REFUSE: &str = "tollgate_would_refuse_total";
const DIVERGENCE: &str = "rate_limit_shadow_divergence_total";

/// The counters of one rule.
#[derive(Debug)]
pub(super) struct RuleCounters {
    allowed: Counter,
    refused: Counter,
    shadow: Counter,
    next: Counter,
    divergence: Counter,
}

impl RuleCounters {
    pub(super) fn new(rule: &str) -> Self {
        let checks =
            |result| registered(counter!(CHECKS, "rule" => rule.to_owned(), "result" => result));
        let would_refuse =
            |trial| registered(counter!(WOULD_REFUSE, "rule" => rule.to_owned(), "trial" => trial));
        Self {
            allowed: checks("allowed"),
            refused: checks("refused"),
            shadow: would_refuse("shadow"),
            next: would_refuse("next"),
            divergence: registered(counter!(DIVERGENCE, "rule" => rule.to_owned())),
        }
    }

    /// Records a decision for a rule that it matched.
    pub(super) fn record(&self, rule: &Rule, decision: &Decision<'_>) {
        let deciding = decision.deciding().filter(|_| !decision.is_allowed());
        let is_refusing = deciding.is_some_and(|status| status.limit().rule() == rule.name());
        if is_refusing { &self.refused } else { &self.allowed }.increment(1);
        if would_refuse(decision, rule, false) {
            self.shadow.increment(1);
        }
        if would_refuse(decision, rule, true) {
            self.next.increment(1);
        }
        if let Some(shadow) = decision.shadow_decision()
            && statuses_of(shadow, rule).next().is_some()
            && is_allowed_by(decision, rule) != is_allowed_by(shadow, rule)
        {
            self.divergence.increment(1);
        }
    }
}

/// Returns whether a limit of the rule that is not enforced refuses: a trial limit (`next`), or one of a shadow rule.
fn would_refuse(decision: &Decision<'_>, rule: &Rule, is_next: bool) -> bool {
    statuses_of(decision, rule).any(|status| {
        status.mode() != Mode::Enforce
            && !status.verdict().is_allowed()
            && rule.is_on_trial(status.limit().name()) == is_next
    })
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

pub(super) fn describe() {
    let help = "Checks that matched a rule, by whether one of its limits refused the check.";
    describe_counter!(CHECKS, help);
    let help = "Checks that a shadow rule or a trial (next) limit would have refused.";
    describe_counter!(WOULD_REFUSE, help);
    let help =
        "Checks that this node and the shared store decided differently (distributed: shadow).";
    describe_counter!(DIVERGENCE, help);
}
