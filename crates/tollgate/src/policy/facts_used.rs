//! The facts and limit kinds that the rules of a policy use.

use std::collections::HashSet;

use foldhash::fast::RandomState;

use super::condition::Condition;
use super::fact_name::FactName;
use super::rule::Rule;

/// Returns the facts that `rules` match or count by, each once, headers last. `tenant` is always included,
/// because it is part of every key; `tier` implies `api_key`, because an API key can determine the tier.
pub(super) fn facts_used<'r>(rules: impl Iterator<Item = &'r Rule>) -> Vec<FactName> {
    let facts = rules.flat_map(|rule| {
        let conditions = rule.conditions().iter().chain(rule.exclusions());
        conditions.map(Condition::fact).chain(rule.per())
    });
    let (tenant, tier) = (FactName::new("tenant"), FactName::new("tier"));
    let mut seen = HashSet::with_hasher(RandomState::default());
    let mut used: Vec<FactName> =
        facts.chain([&tenant]).filter(|fact| seen.insert(*fact)).cloned().collect();
    let api_key = FactName::new("api_key");
    if used.contains(&tier) && !used.contains(&api_key) {
        used.push(api_key);
    }
    used.sort_by_key(|fact| fact.as_str().starts_with("header:"));
    used
}

/// Returns whether any of `rules` has a concurrency limit.
pub(super) fn holds_slots<'r>(mut rules: impl Iterator<Item = &'r Rule>) -> bool {
    rules.any(|rule| {
        let mut limits = rule.limits().iter().chain(rule.next());
        limits.any(|limit| limit.algorithm().holds_slots())
    })
}
