//! Parses one rule.

use std::collections::HashSet;

use crate::limit::{DEFAULT_RULE, INLINE_RULE, Limit};
use crate::naming::valid_name;
use crate::policy::error::{FieldError, FieldErrors, PolicyErrorKind};
use crate::policy::fact_name::FactName;
use crate::policy::node_ref::{Fields, NodeRef};
use crate::policy::rule::{OnMissingFact, Rule, RuleMode, Settings};
use crate::policy::tiers::Tiers;
use crate::request::is_fact_name;

use super::condition;
use super::defaults::{Defaults, MISSING, distribution};
use super::limit::{self, Inherited};

/// The fields of a rule.
pub(super) const RULE: &[&str] = &[
    "name",
    "match",
    "unless",
    "per",
    "limits",
    "unlimited",
    "algorithm",
    "mode",
    "on_store_loss",
    "distributed",
    "next",
    "missing",
    "continue",
    "cost",
];
/// The fields of `next`.
pub(super) const NEXT: &[&str] = &["limits"];

const MODES: &[(&str, RuleMode)] = &[
    (RuleMode::Enforce.as_str(), RuleMode::Enforce),
    (RuleMode::Shadow.as_str(), RuleMode::Shadow),
];
/// The rule names of inline limits and of the default limit.
const RESERVED: [&str; 2] = [INLINE_RULE, DEFAULT_RULE];
/// The name of the block that refuses requests without a `per` fact.
const MISSING_BLOCK: &str = "missing";
/// The name of a rule whose name is invalid, while the rest of it is checked.
const UNNAMED: &str = "unnamed";
/// The maximum number of facts in `per`.
const MAX_PER: usize = 32;

/// Parses the rule at position `index` and adds its name to `names`. Every error in it is recorded in `errors`; the
/// result is used only if there are none.
pub(super) fn parse<'t>(
    entry: NodeRef<'t>,
    index: usize,
    (defaults, tiers): (&Defaults, Option<&Tiers>),
    names: &mut HashSet<&'t str>,
    errors: &mut FieldErrors,
) -> Option<Rule> {
    let fields = entry.known_fields(RULE, errors)?;
    let name = fields.require("name", errors).and_then(|node| errors.record(name(node, names)));
    let name = name.unwrap_or(UNNAMED);
    let unlimited = errors.record(unlimited(&fields));
    let is_unlimited = unlimited.unwrap_or(false);
    let settings = settings(&fields, defaults, is_unlimited, errors);
    let algorithm = fields.parse("algorithm", errors, limit::rate_algorithm);
    let inherited =
        Inherited { algorithm: algorithm.unwrap_or(defaults.algorithm), lease: defaults.lease };
    let limits = match fields.get("limits") {
        Some(list) => limits(list, inherited, (name, settings.missing), errors),
        // If `unlimited` is invalid, or a field is misspelled, the rule may have been meant to be complete.
        None if unlimited == Some(false) && !fields.has_unknown() => {
            let reason = "a rule must have limits or unlimited: true";
            errors.record(Err(entry.error(PolicyErrorKind::MissingField, reason)))
        }
        None => None,
    };
    let next = fields.get("next").and_then(|next| {
        let list = next.known_fields(NEXT, errors)?.require("limits", errors)?;
        limit::trial(list, inherited, name, errors)
    });
    let mut conditions = |field| {
        fields.get(field).map(|map| condition::parse(map, tiers, errors)).unwrap_or_default()
    };
    let (conditions, exclusions) = (conditions("match"), conditions("unless"));
    Some(Rule {
        name: name.into(),
        index,
        conditions,
        exclusions,
        per: fields.parse("per", errors, per).unwrap_or_else(|| defaults.per.clone()),
        limits: limits.unwrap_or_default(),
        next: next.unwrap_or_default(),
        settings,
        cost: fields.parse("cost", errors, |cost| cost.number(1)).unwrap_or(1),
        is_unlimited,
        continues: fields.parse("continue", errors, NodeRef::boolean).unwrap_or(false),
        missing_block: missing_block(settings.missing, name),
    })
}

fn name<'t>(entry: NodeRef<'t>, names: &mut HashSet<&'t str>) -> Result<&'t str, FieldError> {
    let name = entry.text()?;
    valid_name("rule", name).map_err(|error| entry.limit_error(&error))?;
    if RESERVED.contains(&name) {
        return Err(entry.invalid(format!("rule name {name:?} is reserved; choose another name")));
    }
    if !names.insert(name) {
        let reason = format!("duplicate rule name {name:?}; rule names must be unique");
        return Err(entry.error(PolicyErrorKind::Duplicate, reason));
    }
    Ok(name)
}

/// Parses `unlimited`. If it is true, fields that would have no effect are errors.
fn unlimited(fields: &Fields<'_>) -> Result<bool, FieldError> {
    let is_unlimited = fields.optional("unlimited", NodeRef::boolean)?.unwrap_or(false);
    if is_unlimited {
        fields.forbid(&["limits"], "a rule must have limits or unlimited: true, not both")?;
        let continues = "has no effect because an unlimited rule ends the search; remove it";
        fields.forbid(&["continue"], continues)?;
        let missing = "has no effect because an unlimited rule never refuses; remove it";
        fields.forbid(&["missing"], missing)?;
    }
    Ok(is_unlimited)
}

fn limits(
    list: NodeRef<'_>,
    inherited: Inherited,
    (rule, missing): (&str, OnMissingFact),
    errors: &mut FieldErrors,
) -> Option<Vec<Limit>> {
    let limits = limit::live(list, inherited, rule, errors)?;
    match limits.iter().position(|limit| limit.name() == MISSING_BLOCK) {
        Some(index) if missing == OnMissingFact::Deny => {
            let reason = "the name \"missing\" is reserved in a rule with missing: deny; choose \
                          another name";
            errors.record(Err(limit::name_node(list, index).invalid(reason)))
        }
        _ => Some(limits),
    }
}

fn settings(
    fields: &Fields<'_>,
    defaults: &Defaults,
    is_unlimited: bool,
    errors: &mut FieldErrors,
) -> Settings {
    let inherited = defaults.settings;
    let missing = fields.parse("missing", errors, |entry| entry.word(MISSING));
    let mode = fields.parse("mode", errors, |entry| entry.word(MODES));
    Settings {
        mode: mode.unwrap_or(inherited.mode),
        distribution: distribution(fields, inherited.distribution, errors),
        // An unlimited rule never refuses, even with `missing: deny` in the defaults.
        missing: missing.unwrap_or(if is_unlimited {
            OnMissingFact::Share
        } else {
            inherited.missing
        }),
    }
}

/// Parses the facts to count by: a list, or one name.
pub(super) fn per(entry: NodeRef<'_>) -> Result<Vec<FactName>, FieldError> {
    let mut per: Vec<FactName> = Vec::new();
    let items = if entry.text().is_ok() { vec![entry] } else { entry.list()? };
    if items.len() > MAX_PER {
        let reason = format!("must have at most {MAX_PER} facts, not {}", items.len());
        return Err(entry.invalid(reason));
    }
    for item in items {
        let text = item.text()?;
        if !is_fact_name(text) {
            return Err(item.invalid(condition::invalid_fact_name(text)));
        }
        let fact = FactName::new(text);
        if per.contains(&fact) {
            let reason = format!("duplicate fact {text:?}; remove one of the two");
            return Err(item.error(PolicyErrorKind::Duplicate, reason));
        }
        per.push(fact);
    }
    Ok(per)
}

/// Returns the block that refuses requests without a `per` fact, if `missing` is `deny`.
pub(super) fn missing_block(missing: OnMissingFact, rule: &str) -> Option<Limit> {
    let block = || Limit::block().named(MISSING_BLOCK).and_then(|block| block.in_rule(rule)).ok();
    if missing == OnMissingFact::Deny { block() } else { None }
}
