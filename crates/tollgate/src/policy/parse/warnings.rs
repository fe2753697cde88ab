//! Warnings about valid settings that are probably mistakes.

use crate::plan::MAX_TAKES;
use crate::policy::fact_name::Meaning;
use crate::policy::facts_used::facts_used;
use crate::policy::rule::{OnMissingFact, Rule};
use crate::policy::tiers::Tiers;
use crate::request::MAX_FACTS;

pub(super) fn collect(rules: &[Rule], tiers: &Tiers) -> Vec<String> {
    let mut warnings = Vec::new();
    warnings.extend(
        tiers
            .names()
            .filter(|tier| !is_used(tier, rules))
            .map(|tier| format!("tiers.{tier}: no rule uses this tier")),
    );
    warnings.extend(unreachable(rules));
    warnings.extend(too_many_takes(rules));
    warnings.extend(too_many_facts(rules));
    warnings
}

fn is_used(tier: &str, rules: &[Rule]) -> bool {
    let is_tier = |meaning: Meaning| meaning == Meaning::Tier;
    rules.iter().any(|rule| {
        let mut conditions =
            rule.conditions.iter().chain(&rule.exclusions).filter(|condition| is_tier(condition.fact().meaning()));
        conditions.any(|condition| condition.accepts(tier.as_bytes()))
            || rule.per.iter().any(|fact| is_tier(fact.meaning()))
    })
}

/// Warns about rules after a rule that matches every request.
fn unreachable(rules: &[Rule]) -> Option<String> {
    let matches_all = |rule: &&Rule| {
        rule.is_unconditional() && !rule.continues && rule.missing() != OnMissingFact::Skip
    };
    let last = rules.iter().find(matches_all)?;
    let next = rules.get(last.index + 1)?;
    Some(format!(
        "rules[{}] ({}): matches every request, so rule {} and all later rules are never tried",
        last.index, last.name, next.name
    ))
}

/// Warns if the rules use more facts than a request can have: a client that sends many of the headers could
/// displace other facts.
fn too_many_facts(rules: &[Rule]) -> Option<String> {
    let facts = facts_used(rules.iter()).len();
    (facts > MAX_FACTS)
        .then(|| format!("the rules use {facts} facts, but a request can have at most {MAX_FACTS}"))
}

/// Warns if the rules with `continue: true` and the largest other rule have more than [`MAX_TAKES`] takes.
fn too_many_takes(rules: &[Rule]) -> Option<String> {
    let takes = |rule: &Rule| rule.limits.len() + rule.next.len();
    let continuing: Vec<&Rule> = rules.iter().filter(|rule| rule.continues).collect();
    let max_last = rules.iter().filter(|rule| !rule.continues).map(takes).max().unwrap_or(0);
    let sum = continuing.iter().map(|rule| takes(rule)).sum::<usize>() + max_last;
    if continuing.is_empty() || sum <= MAX_TAKES {
        return None;
    }
    let names: Vec<&str> = continuing.iter().take(10).map(|rule| rule.name()).collect();
    Some(format!(
        "the rules with continue: true ({}) and the rule after them can add up to {sum} takes; a \
         request with more than {MAX_TAKES} takes fails, so reduce their limits",
        names.join(", ")
    ))
}
