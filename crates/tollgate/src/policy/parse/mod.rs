//! Parses a policy file, with one module per part of the file.

mod condition;
mod defaults;
mod facts;
mod limit;
mod limiters;
mod prices;
pub(super) mod rate;
mod rate_hint;
mod rule;
mod tiers;
pub(super) mod warnings;

use std::collections::HashSet;

use crate::limit::Limit;

use super::error::{FieldError, FieldErrors, PolicyError, PolicyErrorKind};
use super::fact_spec::FactSpec;
use super::limiters::NamedLimits;
use super::node_ref::{Fields, NodeRef};
use super::prices::Prices;
use super::rule::Rule;
use super::tiers::Tiers;
use super::yaml_tree::{self, YamlTree};
use defaults::Defaults;
pub(super) use limit::{TRIAL_NAME, TRIAL_PREFIX};

/// The maximum number of rules in a policy.
const MAX_RULES: usize = 20_000;

/// The top-level fields of a file.
const FILE: &[&str] =
    &["version", "tenant", "defaults", "tiers", "facts", "prices", "rules", "limiters"];

/// The contents of a policy file.
pub(super) struct PolicyFile {
    pub(super) tenant: Box<str>,
    pub(super) tiers: Tiers,
    pub(super) facts: Vec<FactSpec>,
    pub(super) prices: Prices,
    pub(super) rules: Vec<Rule>,
    pub(super) default: Rule,
    pub(super) limiters: Vec<NamedLimits>,
    pub(super) warnings: Vec<String>,
}

/// Parses a policy file. `default` is the default limit if the file does not set one.
pub(super) fn file(name: &str, text: &str, default: Limit) -> Result<PolicyFile, PolicyError> {
    let mut errors = FieldErrors::default();
    let tree = YamlTree::parse_all(text, yaml_tree::POLICY, &mut errors);
    let root = tree.as_ref().and_then(NodeRef::root);
    let fields = root.and_then(|root| root.known_fields(FILE, &mut errors));
    let file = match &fields {
        Some(fields) => PolicyFile::parse(fields, default, &mut errors),
        None => PolicyFile::with_default(default),
    };
    errors.into_result(name)?;
    Ok(file)
}

impl PolicyFile {
    /// A file without rules that applies `limit` to each client.
    pub(super) fn with_default(limit: Limit) -> Self {
        Self {
            tenant: Box::default(),
            tiers: Tiers::default(),
            facts: Vec::new(),
            prices: Prices::default(),
            rules: Vec::new(),
            default: Defaults::default().rule(limit, 0),
            limiters: Vec::new(),
            warnings: Vec::new(),
        }
    }

    fn parse(fields: &Fields<'_>, default: Limit, errors: &mut FieldErrors) -> Self {
        if let Some(node) = fields.require("version", errors) {
            errors.record(version(node));
        }
        let tenant = fields.parse("tenant", errors, tenant).unwrap_or_default();
        let defaults = fields.get("defaults").map(|map| Defaults::parse(map, errors));
        let defaults = defaults.unwrap_or_default();
        // If `tiers` is invalid, the tiers that rules match are not checked, to avoid follow-up errors.
        let tiers = fields.get("tiers").and_then(|map| tiers::parse(map, errors));
        let rules = rules(fields, &defaults, tiers.as_ref(), errors);
        let tiers = tiers.unwrap_or_default();
        let facts = fields.get("facts").map(|map| facts::parse(map, errors)).unwrap_or_default();
        let mut warnings = warnings::collect(&rules, &tiers);
        let default = defaults.rule(default, rules.len());
        warnings.extend(warnings::unused_facts(&facts, rules.iter().chain([&default])));
        warnings.extend(warnings::unused_leases(rules.iter().chain([&default])));
        let prices = fields.get("prices").map(|map| prices::parse(map, errors)).unwrap_or_default();
        let limiters = limiters::parse(fields, errors);
        Self { tenant, tiers, facts, prices, rules, default, limiters, warnings }
    }
}

fn version(version: NodeRef<'_>) -> Result<(), FieldError> {
    match version.number(1) {
        Ok(1) => Ok(()),
        Ok(number) => Err(version.invalid(format!("unsupported version {number}; use 1"))),
        Err(_) => Err(version.invalid("unsupported version; use the number 1, without quotes")),
    }
}

fn tenant(tenant: NodeRef<'_>) -> Result<Box<str>, FieldError> {
    condition::fact_text(tenant).map(Into::into)
}

/// Parses the rules. Invalid ones are recorded in `errors` and left out.
fn rules(
    fields: &Fields<'_>,
    defaults: &Defaults,
    tiers: Option<&Tiers>,
    errors: &mut FieldErrors,
) -> Vec<Rule> {
    let list = fields.parse("rules", errors, rule_list).unwrap_or_default();
    let mut names = HashSet::new();
    let mut rules = Vec::with_capacity(list.len());
    for entry in list {
        rules.extend(rule::parse(entry, rules.len(), (defaults, tiers), &mut names, errors));
    }
    rules
}

fn rule_list(rules: NodeRef<'_>) -> Result<Vec<NodeRef<'_>>, FieldError> {
    match rules.list()? {
        list if list.len() <= MAX_RULES => Ok(list),
        _ => Err(rules.error(PolicyErrorKind::TooLarge, "a policy must have at most 20000 rules")),
    }
}

/// Every kind of map in a policy: its JSON pointer in the schema, and its fields.
#[cfg(test)]
pub(super) const FIELDS: &[(&str, &[&str])] = &[
    ("", FILE),
    ("/$defs/defaults", defaults::DEFAULTS),
    ("/$defs/source", facts::SOURCE),
    ("/$defs/rule", rule::RULE),
    ("/$defs/rule/properties/next", rule::NEXT),
    ("/$defs/match", condition::MATCH),
    ("/$defs/limit_map", limit::LIMIT),
    ("/$defs/limiter", limiters::LIMITER),
    ("/$defs/price", prices::PRICE),
];
