//! Writes imported rules as a policy file.

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;

use super::ImportFormat;
use super::imported_rule::{ImportedLimit, ImportedMode, ImportedRule, literal};

/// The maximum length of a rule name.
const MAX_NAME: usize = 64;

/// Returns the policy file with these rules.
pub(super) fn write(
    format: ImportFormat,
    files: &[(&str, &str)],
    rules: &[ImportedRule],
) -> String {
    let source = match format {
        ImportFormat::Envoy => "envoyproxy/ratelimit",
        ImportFormat::Limitador => "Limitador",
    };
    let mut yaml = format!("# Imported from {source}:\n");
    for (file, _) in files {
        push(&mut yaml, format_args!("# - {}\n", file.escape_debug()));
    }
    yaml.push_str("version: 1\ndefaults: { limit: unlimited }\n");
    yaml.push_str(if rules.is_empty() { "rules: []\n" } else { "rules:\n" });
    let mut names = RuleNames::default();
    for rule in rules {
        push(&mut yaml, format_args!("  - name: {}\n", names.unique(&rule.name)));
        write_rule(&mut yaml, rule);
    }
    yaml
}

/// Appends formatted text. Writing to a String cannot fail.
fn push(yaml: &mut String, text: std::fmt::Arguments<'_>) {
    let _ = yaml.write_fmt(text);
}

fn write_rule(yaml: &mut String, rule: &ImportedRule) {
    let mut facts = vec![format!("domain: {}", scalar(&literal(&rule.domain)))];
    let fact = |(fact, value): &(String, String)| format!("{}: {}", scalar(fact), scalar(value));
    facts.extend(rule.facts.iter().map(fact));
    push(yaml, format_args!("    match: {{ facts: {{ {} }} }}\n", facts.join(", ")));
    if !rule.unless.is_empty() {
        let excluded = |(fact, values): &(String, Vec<String>)| {
            let values: Vec<_> = values.iter().map(|value| scalar(value)).collect();
            format!("{}: [{}]", scalar(fact), values.join(", "))
        };
        let facts: Vec<_> = rule.unless.iter().map(excluded).collect();
        push(yaml, format_args!("    unless: {{ facts: {{ {} }} }}\n", facts.join(", ")));
    }
    if matches!(rule.limit, ImportedLimit::Unlimited) {
        yaml.push_str("    unlimited: true\n");
        return;
    }
    let per: Vec<_> = rule.per.iter().map(|fact| scalar(fact)).collect();
    push(yaml, format_args!("    per: [{}]\n", per.join(", ")));
    match rule.mode {
        ImportedMode::Enforce => {}
        ImportedMode::Shadow => yaml.push_str("    mode: shadow\n"),
        ImportedMode::Together => yaml.push_str("    missing: skip\n    continue: true\n"),
    }
    write_limit(yaml, &rule.limit);
}

fn write_limit(yaml: &mut String, limit: &ImportedLimit) {
    match limit {
        ImportedLimit::Unlimited => {}
        ImportedLimit::Calendar { count: 0, .. } | ImportedLimit::Rolling { count: 0, .. } => {
            yaml.push_str("    limits: [0]\n");
        }
        ImportedLimit::Calendar { count, unit, name } => {
            let (period, align) = (unit.rate_unit(), unit.as_str());
            let name = name.as_ref().map(|name| format!(", name: {}", scalar(name)));
            let name = name.unwrap_or_default();
            push(
                yaml,
                format_args!("    limits: [{{ rate: {count}/{period}, align: {align}{name} }}]\n"),
            );
        }
        ImportedLimit::Rolling { count, seconds } => push(
            yaml,
            format_args!("    algorithm: fixed_window\n    limits: [{count}/{seconds}s]\n"),
        ),
    }
}

/// The rule names of a policy so far.
#[derive(Default)]
struct RuleNames {
    used: HashSet<String>,
    /// How often each name was wanted.
    counts: HashMap<String, usize>,
}

impl RuleNames {
    /// Returns a valid name that is not used yet. Other characters become `-`; a number makes the name unique.
    fn unique(&mut self, wanted: &str) -> String {
        let is_valid = |char: char| char.is_ascii_alphanumeric() || "._-".contains(char);
        let valid: String =
            wanted.chars().map(|char| if is_valid(char) { char } else { '-' }).collect();
        let count = self.counts.entry(valid.chars().take(MAX_NAME).collect()).or_default();
        loop {
            *count += 1;
            let suffix = if *count == 1 { String::new() } else { format!("-{count}") };
            let mut name: String = valid.chars().take(MAX_NAME - suffix.len()).collect();
            name.push_str(&suffix);
            if self.used.insert(name.clone()) {
                return name;
            }
        }
    }
}

/// Returns a YAML scalar: plain if it can only be read as this text, else in double quotes.
fn scalar(text: &str) -> String {
    let is_plain = text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-.=%/".contains(&byte))
        && !is_keyword(text);
    if is_plain {
        return text.to_owned();
    }
    let mut quoted = String::from("\"");
    for char in text.chars() {
        match char {
            '"' | '\\' => quoted.extend(['\\', char]),
            ' '..='~' => quoted.push(char),
            _ if u32::from(char) <= 0xffff => {
                push(&mut quoted, format_args!("\\u{:04x}", u32::from(char)));
            }
            _ => push(&mut quoted, format_args!("\\U{:08x}", u32::from(char))),
        }
    }
    quoted + "\""
}

/// Returns whether a YAML parser can read the text as a boolean or null.
fn is_keyword(text: &str) -> bool {
    ["y", "n", "yes", "no", "on", "off", "true", "false", "null"]
        .contains(&text.to_ascii_lowercase().as_str())
}
