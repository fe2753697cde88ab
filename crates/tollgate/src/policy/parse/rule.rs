//! Parses one rule.

use std::collections::HashSet;

use crate::algorithm::Algorithm;
use crate::limit::{DEFAULT_RULE, INLINE_RULE, Limit};
use crate::naming::valid_name;
use crate::policy::error::{FieldError, PolicyErrorKind};
use crate::policy::fact_name::FactName;
use crate::policy::node_ref::{Fields, NodeRef};
use crate::policy::rule::{OnMissingFact, Rule, RuleMode, Settings};
use crate::policy::tiers::Tiers;
use crate::request::is_fact_name;

use super::defaults::{Defaults, MISSING, distribution};
use super::{condition, limit};

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
/// The maximum number of facts in `per`.
const MAX_PER: usize = 32;

/// Parses the rule at position `index` and adds its name to `names`.
pub(super) fn parse<'t>(
    entry: NodeRef<'t>,
    index: usize,
    defaults: &Defaults,
    tiers: Option<&Tiers>,
    names: &mut HashSet<&'t str>,
) -> Result<Rule, FieldError> {
    let fields = entry.fields(RULE)?;
    let name = name(fields.required("name")?, names)?;
    let is_unlimited = unlimited(&fields)?;
    let settings = settings(&fields, defaults, is_unlimited)?;
    let algorithm =
        fields.optional("algorithm", limit::rate_algorithm)?.unwrap_or(defaults.algorithm);
    let limits = match fields.get("limits") {
        Some(list) => limits(list, algorithm, name, settings.missing)?,
        None if is_unlimited => Vec::new(),
        None => {
            let reason = "a rule must have limits or unlimited: true";
            return Err(entry.error(PolicyErrorKind::MissingField, reason));
        }
    };
    let next = fields.optional("next", |next| {
        limit::trial(next.fields(NEXT)?.required("limits")?, algorithm, name)
    })?;
    let conditions = |field| fields.optional(field, |entry| condition::parse(entry, tiers));
    Ok(Rule {
        name: name.into(),
        index,
        conditions: conditions("match")?.unwrap_or_default(),
        exclusions: conditions("unless")?.unwrap_or_default(),
        per: fields.optional("per", per)?.unwrap_or_else(|| defaults.per.clone()),
        limits,
        next: next.unwrap_or_default(),
        settings,
        cost: fields.optional("cost", |cost| cost.number(1))?.unwrap_or(1),
        is_unlimited,
        continues: fields.optional("continue", NodeRef::boolean)?.unwrap_or(false),
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
    algorithm: Algorithm,
    rule: &str,
    missing: OnMissingFact,
) -> Result<Vec<Limit>, FieldError> {
    let limits = limit::live(list, algorithm, rule)?;
    match limits.iter().position(|limit| limit.name() == MISSING_BLOCK) {
        Some(index) if missing == OnMissingFact::Deny => {
            let reason = "the name \"missing\" is reserved in a rule with missing: deny; choose \
                          another name";
            Err(limit::name_node(list, index).invalid(reason))
        }
        _ => Ok(limits),
    }
}

fn settings(
    fields: &Fields<'_>,
    defaults: &Defaults,
    is_unlimited: bool,
) -> Result<Settings, FieldError> {
    let inherited = defaults.settings;
    let missing = fields.optional("missing", |entry| entry.word(MISSING))?;
    Ok(Settings {
        mode: fields.optional("mode", |entry| entry.word(MODES))?.unwrap_or(inherited.mode),
        distribution: distribution(fields, inherited.distribution)?,
        // An unlimited rule never refuses, even with `missing: deny` in the defaults.
        missing: missing.unwrap_or(if is_unlimited {
            OnMissingFact::Share
        } else {
            inherited.missing
        }),
    })
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
