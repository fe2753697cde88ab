//! From a text to what a policy is made of, one small reader per part of the file.

mod condition;
mod defaults;
mod limit;
mod limiters;
pub(super) mod rate;
mod rule;
mod tiers;
mod warn;

use std::collections::HashSet;

use crate::limit::Limit;

use super::cursor::{Cursor, Fields};
use super::error::{Flaw, Flaws, PolicyError, PolicyErrorKind};
use super::limiters::NamedLimits;
use super::rule::Rule;
use super::tiers::Tiers;
use super::tree::Tree;
use defaults::Defaults;
pub(super) use limit::TRIAL;

/// The most rules a policy may have.
const MAX_RULES: usize = 20_000;

/// The fields of a file.
const FILE: &[&str] = &["version", "tenant", "defaults", "tiers", "rules", "limiters"];

/// What a file says.
pub(super) struct File {
    pub(super) tenant: Box<str>,
    pub(super) tiers: Tiers,
    pub(super) rules: Vec<Rule>,
    pub(super) default: Rule,
    pub(super) limiters: Vec<NamedLimits>,
    pub(super) warnings: Vec<String>,
}

/// Reads a policy; the default limit is the given one unless the text has its own.
pub(super) fn file(name: &str, text: &str, default: Limit) -> Result<File, PolicyError> {
    let mut flaws = Flaws::default();
    let tree = flaws.keep(Tree::parse(text));
    let root = tree.as_ref().and_then(Cursor::root);
    let fields = root.and_then(|root| flaws.keep(root.fields(FILE)));
    let file = match &fields {
        Some(fields) => File::read(fields, default, &mut flaws),
        None => File::of_default(default),
    };
    flaws.check(name)?;
    Ok(file)
}

impl File {
    /// No rules; this limit for each client.
    pub(super) fn of_default(limit: Limit) -> Self {
        Self {
            tenant: Box::default(),
            tiers: Tiers::default(),
            rules: Vec::new(),
            default: Defaults::default().rule(limit, 0),
            limiters: Vec::new(),
            warnings: Vec::new(),
        }
    }

    fn read(fields: &Fields<'_>, default: Limit, flaws: &mut Flaws) -> Self {
        flaws.keep(version(fields));
        let tenant = flaws.keep(fields.read("tenant", tenant)).flatten().unwrap_or_default();
        let defaults = flaws.keep(fields.read("defaults", Defaults::read)).flatten();
        let defaults = defaults.unwrap_or_default();
        // If the tiers cannot be read, a rule that names one is not wrong because of that.
        let tiers = flaws.keep(fields.read("tiers", tiers::read));
        let known = tiers.as_ref().and_then(Option::as_ref);
        let rules = rules(fields, &defaults, known, flaws);
        let tiers = tiers.flatten().unwrap_or_default();
        let warnings = warn::about(&rules, &tiers);
        let default = defaults.rule(default, rules.len());
        let limiters = limiters::read(fields, flaws);
        Self { tenant, tiers, rules, default, limiters, warnings }
    }
}

fn version(fields: &Fields<'_>) -> Result<(), Flaw> {
    let version = fields.require("version")?;
    match version.number(1) {
        Ok(1) => Ok(()),
        _ => Err(version.wrong("the only version there is is 1")),
    }
}

fn tenant(tenant: Cursor<'_>) -> Result<Box<str>, Flaw> {
    condition::short_text(tenant).map(Into::into)
}

/// The rules that can be read; the others leave flaws.
fn rules(
    fields: &Fields<'_>,
    defaults: &Defaults,
    tiers: Option<&Tiers>,
    flaws: &mut Flaws,
) -> Vec<Rule> {
    let list = flaws.keep(fields.read("rules", few)).flatten().unwrap_or_default();
    let mut names = HashSet::new();
    let mut rules = Vec::with_capacity(list.len());
    for entry in list {
        let read = rule::read(entry, rules.len(), defaults, tiers, &mut names);
        rules.extend(flaws.keep(read));
    }
    rules
}

fn few(rules: Cursor<'_>) -> Result<Vec<Cursor<'_>>, Flaw> {
    match rules.list()? {
        list if list.len() <= MAX_RULES => Ok(list),
        _ => Err(rules.flaw(PolicyErrorKind::TooLarge, "a policy may have at most 20000 rules")),
    }
}

/// Every map there is: where the schema describes it, and the fields it may have.
#[cfg(test)]
pub(super) const FIELDS: &[(&str, &[&str])] = &[
    ("", FILE),
    ("/$defs/defaults", defaults::DEFAULTS),
    ("/$defs/rule", rule::RULE),
    ("/$defs/rule/properties/next", rule::NEXT),
    ("/$defs/match", condition::MATCH),
    ("/$defs/limit_map", limit::LIMIT),
    ("/$defs/limiter", limiters::LIMITER),
];
