//! One rule of a file.

use std::collections::HashSet;

use crate::facts::is_fact_name;
use crate::limit::identity::Algorithm;
use crate::limit::{DEFAULT_RULE, INLINE_RULE, Limit};
use crate::naming::valid_name;
use crate::policy::cursor::{Cursor, Fields, shown};
use crate::policy::error::{Flaw, PolicyErrorKind};
use crate::policy::fact_name::FactName;
use crate::policy::rule::{OnMissingFact, Rule, RuleMode, Settings};
use crate::policy::tiers::Tiers;

use super::defaults::{Defaults, MISSING, distribution};
use super::{condition, limit};

/// The fields of a rule.
pub(super) const RULE: &[&str] = &[
    "name",
    "match",
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
/// The names that decisions give to limits of no rule.
const RESERVED: [&str; 2] = [INLINE_RULE, DEFAULT_RULE];
/// The limit of requests without a `per` fact, where they are denied.
const REFUSAL: &str = "missing";
/// The most facts to key by.
const MAX_PER: usize = 32;

/// Reads the rule at this position; its name joins those that are taken.
pub(super) fn read<'t>(
    entry: Cursor<'t>,
    index: usize,
    defaults: &Defaults,
    tiers: Option<&Tiers>,
    names: &mut HashSet<&'t str>,
) -> Result<Rule, Flaw> {
    let fields = entry.fields(RULE)?;
    let name = name(fields.require("name")?, names)?;
    let is_unlimited = unlimited(&fields)?;
    let settings = settings(&fields, defaults, is_unlimited)?;
    let word = |entry: Cursor<'_>| entry.word(limit::ALGORITHMS);
    let algorithm = fields.read("algorithm", word)?.unwrap_or(defaults.algorithm);
    let limits = match fields.get("limits") {
        Some(list) => limits(list, algorithm, name, settings.missing)?,
        None if is_unlimited => Vec::new(),
        None => {
            let reason = "needs limits, or unlimited: true";
            return Err(entry.flaw(PolicyErrorKind::MissingField, reason));
        }
    };
    let next = fields.read("next", |next| {
        limit::trial(next.fields(NEXT)?.require("limits")?, algorithm, name)
    })?;
    let conditions = fields.read("match", |entry| condition::read(entry, tiers))?;
    Ok(Rule {
        name: name.into(),
        index,
        conditions: conditions.unwrap_or_default(),
        per: fields.read("per", per)?.unwrap_or_else(|| defaults.per.clone()),
        limits,
        next: next.unwrap_or_default(),
        settings,
        cost: fields.read("cost", |cost| cost.number(1))?.unwrap_or(1),
        is_unlimited,
        continues: fields.read("continue", Cursor::boolean)?.unwrap_or(false),
        refusal: refusal(settings.missing, name),
    })
}

fn name<'t>(entry: Cursor<'t>, taken: &mut HashSet<&'t str>) -> Result<&'t str, Flaw> {
    let name = entry.text()?;
    valid_name("rule", name).map_err(|error| entry.refused(&error))?;
    if RESERVED.contains(&name) {
        return Err(entry.wrong(format!("{name:?} is what limits of no rule are called")));
    }
    if !taken.insert(name) {
        let reason = format!("rule name {name:?} comes twice");
        return Err(entry.flaw(PolicyErrorKind::Duplicate, reason));
    }
    Ok(name)
}

/// Whether it is unlimited; then what would have no effect is refused.
fn unlimited(fields: &Fields<'_>) -> Result<bool, Flaw> {
    let is_unlimited = fields.read("unlimited", Cursor::boolean)?.unwrap_or(false);
    if is_unlimited {
        fields.refuse(&["limits"], "a rule has limits or is unlimited, not both")?;
        fields.refuse(&["continue"], "has no effect, since an unlimited rule ends the search")?;
        fields.refuse(&["missing"], "has no effect, since an unlimited rule refuses nobody")?;
    }
    Ok(is_unlimited)
}

fn limits(
    list: Cursor<'_>,
    algorithm: Algorithm,
    rule: &str,
    missing: OnMissingFact,
) -> Result<Vec<Limit>, Flaw> {
    let limits = limit::live(list, algorithm, rule)?;
    match limits.iter().position(|limit| limit.name() == REFUSAL) {
        Some(place) if missing == OnMissingFact::Deny => {
            let reason = "\"missing\" is the name of the limit that missing: deny adds";
            Err(limit::name_of(list, place).wrong(reason))
        }
        _ => Ok(limits),
    }
}

fn settings(
    fields: &Fields<'_>,
    defaults: &Defaults,
    is_unlimited: bool,
) -> Result<Settings, Flaw> {
    let inherited = defaults.settings;
    let missing = fields.read("missing", |entry| entry.word(MISSING))?;
    Ok(Settings {
        mode: fields.read("mode", |entry| entry.word(MODES))?.unwrap_or(inherited.mode),
        distribution: distribution(fields, inherited.distribution)?,
        // An unlimited rule refuses nobody, whatever the defaults say.
        missing: missing.unwrap_or(if is_unlimited {
            OnMissingFact::Share
        } else {
            inherited.missing
        }),
    })
}

/// The facts to count by: a list, or one name.
pub(super) fn per(entry: Cursor<'_>) -> Result<Vec<FactName>, Flaw> {
    let mut per: Vec<FactName> = Vec::new();
    let items = if entry.text().is_ok() { vec![entry] } else { entry.list()? };
    if items.len() > MAX_PER {
        return Err(entry.wrong(format!("may have at most {MAX_PER} facts")));
    }
    for item in items {
        let text = item.text()?;
        if !is_fact_name(text) {
            let reason = "must be the name of a fact, 1 to 64 printable ASCII characters";
            return Err(item.wrong(format!("{} {reason}", shown(text))));
        }
        let fact = FactName::new(text);
        if per.contains(&fact) {
            return Err(item.flaw(PolicyErrorKind::Duplicate, format!("{text:?} comes twice")));
        }
        per.push(fact);
    }
    Ok(per)
}

/// What refuses requests that lack a fact, where they are to be refused.
pub(super) fn refusal(missing: OnMissingFact, rule: &str) -> Option<Limit> {
    let block = || Limit::block().named(REFUSAL).and_then(|block| block.in_rule(rule)).ok();
    if missing == OnMissingFact::Deny { block() } else { None }
}
