//! Rows of the four tables.

use super::format::{MISSING, ago, count, micros};
use super::response::{Frame, Node, RefusedKey, Rule};
use super::state::{State, Sums};
use super::tables::Row;
use super::text::visible;

/// Returns visible text, or the placeholder if it is empty.
fn or_missing(text: &str) -> String {
    if text.is_empty() { MISSING.to_owned() } else { visible(text) }
}

fn optional(text: Option<&String>) -> String {
    or_missing(text.map_or("", String::as_str))
}

/// Returns a list as one word; `5 concurrent` becomes `5_concurrent`.
fn list(texts: &[String]) -> String {
    or_missing(&texts.join(",").replace(' ', "_"))
}

/// Returns the limit of a refused key in the notation of policies, as one word; its name if the text is not known.
pub(super) fn limit(refused: &RefusedKey) -> String {
    list(std::slice::from_ref(refused.limit_text.as_ref().unwrap_or(&refused.limit)))
}

/// Returns the refused keys.
pub(super) fn refused(state: &State) -> Vec<Row> {
    let row = |frame: &Frame| frame.refused.iter().map(|key| refused_row(key, frame)).collect();
    state.frame.as_ref().map_or_else(Vec::new, row)
}

fn refused_row(refused: &RefusedKey, frame: &Frame) -> Row {
    let facts = refused.facts.iter().flatten();
    let facts: Vec<String> = facts.map(|(name, value)| format!("{name}={value}")).collect();
    let mut amounts = vec![(0, refused.count)];
    amounts.extend(refused.rate.map(|rate| (1, rate)));
    let cells = vec![
        count(refused.count),
        refused.rate.map_or(MISSING.to_owned(), count),
        or_missing(&refused.rule),
        limit(refused),
        ago(frame.t, refused.last_at),
        or_missing(&refused.tenant),
        or_missing(&refused.key),
        or_missing(&facts.join(" ")),
    ];
    Row { cells, amounts }
}

/// Returns the nodes.
pub(super) fn nodes(state: &State) -> Vec<Row> {
    state.frame.as_ref().map_or_else(Vec::new, |frame| frame.nodes.iter().map(node_row).collect())
}

fn node_row(node: &Node) -> Row {
    // A node without a report is not idle, so its rates are unknown.
    let rate = |number: Option<f64>| match number {
        Some(number) if node.reporting => count(number),
        _ => MISSING.to_owned(),
    };
    let known = [(2, node.allowed), (3, node.refused)];
    let known = known.into_iter().filter(|_| node.reporting);
    let amounts = known.filter_map(|(column, amount)| Some((column, amount?))).collect();
    let cells = vec![
        or_missing(&node.id),
        if node.silent { "Silent".to_owned() } else { or_missing(&node.state) },
        rate(node.allowed),
        rate(node.refused),
        micros(node.p99_us.filter(|_| node.reporting)),
        optional(node.breaker.as_ref()),
        optional(node.policy.as_ref()),
        optional(node.version.as_ref()),
        or_missing(&node.address),
        optional(node.warning.as_ref()),
    ];
    Row { cells, amounts }
}

/// Returns rules on trial, and rules that were on trial during the kept time.
pub(super) fn trials(state: &State) -> Vec<Row> {
    let (mut sums, mut rows) = (state.sums(), Vec::new());
    for rule in state.policy.iter().flat_map(|policy| &policy.rules) {
        let sum = sums.remove(rule.rule.as_str()).unwrap_or_default();
        let trial = describe_trial(rule);
        if !trial.is_empty() || has_trial_counts(&sum) {
            rows.push(trial_row(&rule.rule, &sum, &trial));
        }
    }
    let removed = sums.iter().filter(|(_, sum)| has_trial_counts(sum));
    rows.extend(removed.map(|(rule, sum)| trial_row(rule, sum, "")));
    rows
}

fn has_trial_counts(sum: &Sums) -> bool {
    sum.shadow > 0.0 || sum.next > 0.0 || sum.diverged > 0.0
}

fn trial_row(rule: &str, sum: &Sums, trial: &str) -> Row {
    let counts = [sum.shadow, sum.next, sum.diverged].map(f64::round);
    let texts = counts.map(count).to_vec();
    let cells = [vec![or_missing(rule)], texts, vec![or_missing(trial)]].concat();
    Row { cells, amounts: (1..).zip(counts).collect() }
}

fn describe_trial(rule: &Rule) -> String {
    let mut parts = Vec::new();
    if rule.mode == "shadow" {
        parts.push("mode: shadow".to_owned());
    }
    if !rule.next.is_empty() {
        parts.push(format!("next {}", rule.next.join(",")));
    }
    if rule.distributed == "shadow" {
        parts.push("distributed: shadow".to_owned());
    }
    parts.join("; ")
}

/// Returns all rules.
pub(super) fn rules(state: &State) -> Vec<Row> {
    let sums = state.sums();
    let row = |rule: &Rule| {
        let refused = sums.get(rule.rule.as_str()).map_or(0.0, |sum| sum.refused).round();
        let cells = vec![
            or_missing(&rule.rule),
            or_missing(&rule.mode),
            or_missing(&rule.distributed),
            or_missing(&rule.on_store_loss),
            count(refused),
            list(&rule.per),
            list(&rule.limits),
            list(&rule.next),
        ];
        Row { cells, amounts: vec![(4, refused)] }
    };
    state.policy.iter().flat_map(|policy| &policy.rules).map(row).collect()
}
