//! What is not wrong in a file, but probably not meant.

use crate::facts::MAX_FACTS;
use crate::plan::MAX_TAKES;
use crate::policy::fact_name::Meaning;
use crate::policy::facts_used::facts_used;
use crate::policy::rule::{OnMissingFact, Rule};
use crate::policy::tiers::Tiers;

pub(super) fn about(rules: &[Rule], tiers: &Tiers) -> Vec<String> {
    let mut warnings = Vec::new();
    warnings.extend(
        tiers
            .names()
            .filter(|tier| !is_used(tier, rules))
            .map(|tier| format!("tiers.{tier}: no rule asks for this tier")),
    );
    warnings.extend(unreachable(rules));
    warnings.extend(too_many(rules));
    warnings.extend(too_much(rules));
    warnings
}

fn is_used(tier: &str, rules: &[Rule]) -> bool {
    let is_tier = |meaning: Meaning| meaning == Meaning::Tier;
    rules.iter().any(|rule| {
        let conditions = rule.conditions.iter().filter(|one| is_tier(one.fact().meaning()));
        conditions.into_iter().any(|condition| condition.accepts(tier.as_bytes()))
            || rule.per.iter().any(|fact| is_tier(fact.meaning()))
    })
}

/// Rules behind one that takes every request.
fn unreachable(rules: &[Rule]) -> Option<String> {
    let takes_all = |rule: &&Rule| {
        rule.conditions.is_empty() && !rule.continues && rule.missing() != OnMissingFact::Skip
    };
    let last = rules.iter().find(takes_all)?;
    let next = rules.get(last.index + 1)?;
    Some(format!(
        "rules[{}] ({}): matches every request, so no rule from {} on is ever tried",
        last.index, last.name, next.name
    ))
}

/// More facts than a request may have: a caller who sends many of the headers would leave others unknown.
fn too_much(rules: &[Rule]) -> Option<String> {
    let facts = facts_used(rules.iter()).len();
    (facts > MAX_FACTS).then(|| {
        format!("the rules look at {facts} facts, but a request may have {MAX_FACTS} at most")
    })
}

/// Rules that continue, and whatever decides behind them, if all match one request.
fn too_many(rules: &[Rule]) -> Option<String> {
    let takes = |rule: &Rule| rule.limits.len() + rule.next.len();
    let continuing: Vec<&Rule> = rules.iter().filter(|rule| rule.continues).collect();
    let most = rules.iter().filter(|rule| !rule.continues).map(takes).max().unwrap_or(0);
    let sum = continuing.iter().map(|rule| takes(rule)).sum::<usize>() + most;
    if continuing.is_empty() || sum <= MAX_TAKES {
        return None;
    }
    let names: Vec<&str> = continuing.iter().take(10).map(|rule| rule.name()).collect();
    Some(format!(
        "rules that continue ({}) may add up to {sum} takes with the one they end in; a request that \
         matches more than {MAX_TAKES} is an error",
        names.join(", ")
    ))
}
