//! Warnings about valid settings that are probably mistakes.

use std::collections::HashMap;

use crate::algorithm::Algorithm;
use crate::limit::{LeaseSize, Limit};
use crate::plan::MAX_TAKES;
use crate::policy::condition::{Alternative, Condition};
use crate::policy::fact_name::{FactName, Meaning};
use crate::policy::fact_spec::FactSpec;
use crate::policy::facts_used::facts_used;
use crate::policy::rule::{OnMissingFact, Rule};
use crate::policy::tiers::Tiers;
use crate::policy::wildcard::Literal;
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

/// Warns about limits with a fixed size of leases that cannot be leased. `auto` is meant for limits of any size, and a
/// default for rules of any kind, such as blocks and concurrency limits.
pub(super) fn unused_leases<'r>(
    rules: impl Iterator<Item = &'r Rule>,
) -> impl Iterator<Item = String> {
    let limits = rules.flat_map(|rule| rule.limits.iter().map(move |limit| (rule, limit)));
    limits.filter_map(|(rule, limit)| {
        let problem = unused_lease(limit)?;
        let (rule, limit) = (&rule.name, limit.name());
        Some(format!("rule {rule}, limit {limit}: {problem}; the store decides every request"))
    })
}

/// Returns why a fixed size of leases has no effect.
fn unused_lease(limit: &Limit) -> Option<String> {
    let LeaseSize::Fixed(size) = limit.lease() else { return None };
    if limit.lease_hold().is_some()
        || limit.capacity() == 0
        || limit.algorithm() == Algorithm::Concurrency
    {
        return None;
    }
    let is_leased_with = |size| limit.clone().with_lease(size).lease_hold().is_some();
    Some(if is_leased_with(LeaseSize::Auto) || limit.capacity() < u64::from(size.get()) {
        format!("the limit is too small for leases of {size}")
    } else {
        "the window is too short, or the limit too small, for leases".to_owned()
    })
}

/// Warns about facts that the file defines and no rule matches or counts by.
pub(super) fn unused_facts<'r>(
    facts: &[FactSpec],
    rules: impl Iterator<Item = &'r Rule>,
) -> Vec<String> {
    let used = facts_used(rules);
    let unused = facts.iter().map(FactSpec::name).filter(|fact| !used.contains(fact));
    unused.map(|fact| format!("facts.{fact}: no rule uses this fact")).collect()
}

fn is_used(tier: &str, rules: &[Rule]) -> bool {
    let is_tier = |meaning: Meaning| meaning == Meaning::Tier;
    rules.iter().any(|rule| {
        let mut conditions = rule
            .conditions
            .iter()
            .chain(&rule.exclusions)
            .filter(|condition| is_tier(condition.fact().meaning()));
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
/// displace other facts. The entries of descriptors do not count, because each rule is for few of them.
fn too_many_facts(rules: &[Rule]) -> Option<String> {
    let facts = facts_used(rules.iter());
    let facts = facts.iter().filter(|fact| !fact.has_long_values()).count();
    (facts > MAX_FACTS)
        .then(|| format!("the rules use {facts} facts, but a request can have at most {MAX_FACTS}"))
}

/// Warns if the rules with `continue: true` and the largest other rule have more than [`MAX_TAKES`] takes.
fn too_many_takes(rules: &[Rule]) -> Option<String> {
    let continuing: Vec<&Rule> = rules.iter().filter(|rule| rule.continues).collect();
    let max_last = rules.iter().filter(|rule| !rule.continues).map(takes).max().unwrap_or(0);
    let sum = max_takes(&continuing) + max_last;
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

fn takes(rule: &Rule) -> usize {
    rule.limits.len() + rule.next.len()
}

/// Returns an upper bound of the takes of these rules together. Rules that require different values of one fact
/// never match the same request.
pub(in crate::policy) fn max_takes(rules: &[&Rule]) -> usize {
    max_takes_by(rules, MAX_FACTS_COMPARED)
}

/// The maximum number of facts by which rules are distinguished.
const MAX_FACTS_COMPARED: usize = 3;

fn max_takes_by(rules: &[&Rule], max_facts: usize) -> usize {
    let sum = rules.iter().map(|rule| takes(rule)).sum();
    if sum <= MAX_TAKES || max_facts == 0 {
        return sum;
    }
    let facts = facts_used(rules.iter().copied());
    let bounds = facts.iter().filter_map(|fact| {
        let (others, by_value) = by_value(rules, fact);
        let largest = by_value.values().map(|rules| max_takes_by(rules, max_facts - 1)).max()?;
        Some(others + largest)
    });
    bounds.min().unwrap_or(sum).min(sum)
}

/// Groups rules by the one value of `fact` that they require. The first figure is the takes of all others.
fn by_value<'r>(
    rules: &[&'r Rule],
    fact: &FactName,
) -> (usize, HashMap<&'r Literal, Vec<&'r Rule>>) {
    let (mut others, mut by_value) = (0, HashMap::<_, Vec<_>>::new());
    for &rule in rules {
        let condition = rule.conditions.iter().find(|condition| condition.fact() == fact);
        match condition.map(Condition::values) {
            Some([Alternative::Exact(value)]) => by_value.entry(value).or_default().push(rule),
            _ => others += takes(rule),
        }
    }
    (others, by_value)
}
