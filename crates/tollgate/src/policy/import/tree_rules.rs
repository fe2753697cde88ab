//! Turns a tree of descriptors into rules.
//!
//! In the tree, each entry of a request selects one descriptor of the next level: that with the exact value, else the
//! first wildcard that matches, else the key alone. There is no way back, so a request can end without a limit below an
//! exact value although the key alone would have one. Rules are tried in the same order; a rule has exceptions
//! (`unless`) for requests that a descriptor before it takes away without giving them a limit.

use super::Import;
use super::descriptor_tree::{Descriptor, RateLimit, Value};
use super::imported_rule::{ImportedLimit, ImportedMode, ImportedRule};
use crate::policy::error::{FieldError, PolicyErrorKind};
use crate::request::{MAX_FACT_LENGTH, entry_fact};

/// The maximum length of all patterns of a domain: a policy file cannot be larger.
const MAX_BYTES: usize = 4 << 20;

/// Returns the rules of a domain, in the order in which they must be tried.
pub(super) fn rules(
    domain: &str,
    descriptors: &[Descriptor<'_>],
    import: &Import<'_>,
) -> Vec<Result<ImportedRule, FieldError>> {
    let mut tree = Tree { domain, import, rules: Vec::new(), size: 0 };
    tree.add_level(descriptors, &mut Vec::new());
    tree.rules
}

struct Tree<'i> {
    domain: &'i str,
    import: &'i Import<'i>,
    rules: Vec<Result<ImportedRule, FieldError>>,
    /// The length of all patterns.
    size: usize,
}

/// A descriptor on the way to a limit, with those of its level that are tried before it and match its key.
struct Step<'d, 't> {
    descriptor: &'d Descriptor<'t>,
    tried_before: Vec<&'d Descriptor<'t>>,
}

impl Tree<'_> {
    fn add_level<'d, 't>(&mut self, level: &'d [Descriptor<'t>], path: &mut Vec<Step<'d, 't>>) {
        let ordered = Descriptor::in_order(level);
        for (position, descriptor) in ordered.iter().copied().enumerate() {
            if self.size > MAX_BYTES {
                return;
            }
            let tried_before = match descriptor.value {
                // Exact values of one level differ.
                Value::Exact(_) => Vec::new(),
                _ => {
                    let before = ordered.iter().take(position);
                    before.filter(|before| before.overlaps(descriptor)).copied().collect()
                }
            };
            path.push(Step { descriptor, tried_before });
            if let Some(limit) = descriptor.limit {
                let rule = self.rule(descriptor, limit, path);
                self.rules.push(rule);
            }
            self.add_level(&descriptor.descriptors, path);
            path.pop();
        }
    }

    /// Returns the rule of the descriptor at the end of `path`.
    fn rule(
        &mut self,
        descriptor: &Descriptor<'_>,
        limit: RateLimit<'_>,
        path: &[Step<'_, '_>],
    ) -> Result<ImportedRule, FieldError> {
        let patterns: Vec<String> = path.iter().map(|step| step.descriptor.pattern()).collect();
        let (pattern, excluded) = (patterns.join("/"), excluded(path, &patterns));
        let lengths = || excluded.iter().map(String::len).chain([pattern.len()]);
        if lengths().any(|length| length > MAX_FACT_LENGTH) {
            let reason = "the keys and values down to this descriptor are longer than 1024 bytes \
                          as a pattern";
            return Err(descriptor.node.invalid(reason));
        }
        self.size += lengths().sum::<usize>();
        if self.size > MAX_BYTES {
            let reason = "the policy up to this descriptor is larger than 4 MiB";
            return Err(descriptor.node.error(PolicyErrorKind::TooLarge, reason));
        }
        let mut unless = Vec::new();
        if !excluded.is_empty() {
            unless.push(("descriptor".to_owned(), excluded));
        }
        Ok(ImportedRule {
            location: self.import.location(descriptor.node),
            name: name(self.domain, path),
            domain: self.domain.to_owned(),
            facts: vec![("descriptor".to_owned(), pattern)],
            unless,
            per: per(path)?,
            limit: match limit {
                RateLimit::Unlimited => ImportedLimit::Unlimited,
                RateLimit::PerUnit { requests: count, unit, name } => {
                    ImportedLimit::Calendar { count, unit, name: name.map(str::to_owned) }
                }
            },
            mode: if descriptor.is_shadow { ImportedMode::Shadow } else { ImportedMode::Enforce },
        })
    }
}

/// Returns the patterns of requests that a descriptor tried earlier takes away without giving them a limit.
fn excluded(path: &[Step<'_, '_>], patterns: &[String]) -> Vec<String> {
    let mut excluded = Vec::new();
    for (level, step) in path.iter().enumerate() {
        let rest: Vec<_> = path.iter().skip(level + 1).map(|step| step.descriptor).collect();
        let start: String =
            patterns.iter().take(level).map(|pattern| format!("{pattern}/")).collect();
        let end = if rest.is_empty() { "" } else { "/**" };
        for before in &step.tried_before {
            if !before.covers(&rest) {
                excluded.push(format!("{start}{}{end}", before.pattern()));
            }
        }
    }
    excluded
}

/// Returns the facts to count by: all entries, or those that do not share a counter.
fn per(path: &[Step<'_, '_>]) -> Result<Vec<String>, FieldError> {
    if !path.iter().any(|step| step.descriptor.is_shared) {
        return Ok(vec!["descriptor".to_owned()]);
    }
    let mut per = Vec::new();
    for (level, Step { descriptor, .. }) in path.iter().enumerate() {
        if descriptor.is_shared || matches!(descriptor.value, Value::Exact(_)) {
            continue;
        }
        // The fact `entry:KEY` holds the first entry with the key.
        let is_first = path.iter().take(level).all(|step| step.descriptor.key != descriptor.key);
        match entry_fact(descriptor.key).filter(|_| is_first) {
            Some(fact) => per.push(fact),
            None => {
                let reason = "cannot be imported beside share_threshold, because no fact holds \
                              this entry: its key is longer than 58 bytes or occurs twice";
                return Err(descriptor.node.invalid(reason));
            }
        }
    }
    Ok(per)
}

/// Returns a readable name: the domain, keys and values.
fn name(domain: &str, path: &[Step<'_, '_>]) -> String {
    let mut name = domain.to_owned();
    for Step { descriptor, .. } in path {
        name.push('.');
        name.push_str(descriptor.key);
        if let Value::Exact(value) | Value::Wildcard(value) = descriptor.value {
            name.push('_');
            name.push_str(value);
        }
    }
    name
}
