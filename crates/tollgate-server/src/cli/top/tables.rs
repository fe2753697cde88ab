//! Contents of the four tables, for the screen and for the summary.

use super::format::{MISSING, ago, count, micros, total};
use super::response::{Frame, Node, RefusedKey, Rule};
use super::state::{State, Sums};
use super::text::visible;

/// Kind of table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TableKind {
    Refused,
    Nodes,
    Trials,
    Rules,
}

/// A column.
#[derive(Debug, Clone, Copy)]
pub(super) struct Column {
    pub(super) name: &'static str,
    /// Whether the column is right-aligned, as numbers are.
    pub(super) align_right: bool,
}

/// A table. Its cells contain visible text, one cell per column.
#[derive(Debug)]
pub(super) struct Table {
    pub(super) columns: &'static [Column],
    pub(super) rows: Vec<Vec<String>>,
}

const fn text(name: &'static str) -> Column {
    Column { name, align_right: false }
}

const fn number(name: &'static str) -> Column {
    Column { name, align_right: true }
}

const REFUSED: &[Column] = &[
    number("COUNT"),
    text("RULE"),
    text("LIMIT"),
    number("AGO"),
    text("TENANT"),
    text("KEY"),
    text("FACTS"),
];

const NODES: &[Column] = &[
    text("NODE"),
    text("STATE"),
    number("ALLOWED/S"),
    number("REFUSED/S"),
    number("P99"),
    text("BREAKER"),
    text("POLICY"),
    text("VERSION"),
    text("ADDRESS"),
    text("WARNING"),
];

const TRIALS: &[Column] =
    &[text("RULE"), number("SHADOW"), number("NEXT"), number("DIVERGED"), text("TRIAL")];

const RULES: &[Column] = &[
    text("RULE"),
    text("MODE"),
    text("STORE"),
    text("ON_LOSS"),
    number("REFUSED"),
    text("PER"),
    text("LIMITS"),
    text("NEXT"),
];

impl TableKind {
    pub(super) const ALL: [Self; 4] = [Self::Refused, Self::Nodes, Self::Trials, Self::Rules];

    /// Returns the heading.
    pub(super) fn title(self) -> &'static str {
        match self {
            Self::Refused => "refused keys, last 5 min",
            Self::Nodes => "nodes",
            Self::Trials => "on trial, last 15 min",
            Self::Rules => "rules",
        }
    }

    /// Returns the first word of each line in the summary.
    pub(super) fn label(self) -> &'static str {
        match self {
            Self::Refused => "refused",
            Self::Nodes => "node",
            Self::Trials => "trial",
            Self::Rules => "rule",
        }
    }

    /// Returns the text of an empty table.
    pub(super) fn empty_text(self) -> &'static str {
        match self {
            Self::Refused => "no refused keys",
            Self::Nodes => "no nodes",
            Self::Trials => "no rules on trial",
            Self::Rules => "no rules",
        }
    }

    /// Builds the table.
    pub(super) fn table(self, state: &State) -> Table {
        let frame = state.frame.as_ref();
        match self {
            Self::Refused => Table {
                columns: REFUSED,
                rows: frame.map_or_else(Vec::new, |frame| {
                    frame.refused.iter().map(|key| refused_row(key, frame)).collect()
                }),
            },
            Self::Nodes => Table {
                columns: NODES,
                rows: frame
                    .map_or_else(Vec::new, |frame| frame.nodes.iter().map(node_row).collect()),
            },
            Self::Trials => Table { columns: TRIALS, rows: trial_rows(state) },
            Self::Rules => Table { columns: RULES, rows: rule_rows(state) },
        }
    }
}

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

fn refused_row(refused: &RefusedKey, frame: &Frame) -> Vec<String> {
    let facts = refused.facts.iter().flatten();
    let facts: Vec<String> = facts.map(|(name, value)| format!("{name}={value}")).collect();
    vec![
        count(refused.count),
        or_missing(&refused.rule),
        or_missing(&refused.limit),
        ago(frame.t, refused.last_at),
        or_missing(&refused.tenant),
        or_missing(&refused.key),
        or_missing(&facts.join(" ")),
    ]
}

fn node_row(node: &Node) -> Vec<String> {
    // A node without a report is not idle, so its rates are unknown.
    let rate = |number: Option<f64>| match number {
        Some(number) if node.reporting => count(number),
        _ => MISSING.to_owned(),
    };
    vec![
        or_missing(&node.id),
        or_missing(&node.state),
        rate(node.allowed),
        rate(node.refused),
        micros(node.p99_us.filter(|_| node.reporting)),
        optional(node.breaker.as_ref()),
        optional(node.policy.as_ref()),
        optional(node.version.as_ref()),
        or_missing(&node.address),
        optional(node.warning.as_ref()),
    ]
}

/// Returns rules on trial, and rules that were on trial during the kept time.
fn trial_rows(state: &State) -> Vec<Vec<String>> {
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

fn trial_row(rule: &str, sum: &Sums, trial: &str) -> Vec<String> {
    let counts = [sum.shadow, sum.next, sum.diverged].map(total);
    [vec![or_missing(rule)], counts.to_vec(), vec![or_missing(trial)]].concat()
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

fn rule_rows(state: &State) -> Vec<Vec<String>> {
    let sums = state.sums();
    let row = |rule: &Rule| {
        let refused = sums.get(rule.rule.as_str()).map_or(0.0, |sum| sum.refused);
        vec![
            or_missing(&rule.rule),
            or_missing(&rule.mode),
            or_missing(&rule.distributed),
            or_missing(&rule.on_store_loss),
            total(refused),
            list(&rule.per),
            list(&rule.limits),
            list(&rule.next),
        ]
    };
    state.policy.iter().flat_map(|policy| &policy.rules).map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    #[test]
    fn every_row_has_every_column() {
        let state = sample::state();
        for kind in TableKind::ALL {
            let table = kind.table(&state);
            assert!(!table.rows.is_empty(), "{kind:?}");
            for row in &table.rows {
                assert_eq!(row.len(), table.columns.len(), "{kind:?}: {row:?}");
                assert!(row.iter().all(|cell| !cell.is_empty()), "{kind:?}: {row:?}");
                assert!(!row.concat().chars().any(char::is_control), "{kind:?}: {row:?}");
            }
            assert!(kind.table(&State::new("x")).rows.is_empty(), "{kind:?}");
        }
    }

    #[test]
    fn rows_show_received_values() {
        let state = sample::state();
        let refused = TableKind::Refused.table(&state).rows;
        assert_eq!(
            refused[0],
            ["37", "search", "60s", "1s", "-", "c1", "client=c1 path=/search a"]
        );
        assert_eq!(refused[1][5], "\\u{1b}[2J\\u{1b}]0;owned\\u{7}");
        assert_eq!(refused[2][5], "\\u{202e}gpj.exe\\u{9b}31m");
        let nodes = TableKind::Nodes.table(&state).rows;
        assert_eq!(nodes[0][..6], ["web-1", "Up", "1000", "60", "1.9ms", "closed"]);
        assert_eq!(nodes[1][..6], ["web-2", "Up", "-", "-", "-", "-"]);
        let trials = TableKind::Trials.table(&state).rows;
        assert_eq!(trials[0], ["search", "0", "6", "2", "next 5/60s; distributed: shadow"]);
        assert_eq!(trials[1], ["login", "0", "0", "0", "mode: shadow"]);
        assert_eq!(trials.len(), 2);
        let rules = TableKind::Rules.table(&state).rows;
        assert_eq!(rules[0][4..], ["4", "client", "10/60s,100/3600s", "5/60s"]);
    }

    #[test]
    fn shows_trials_of_removed_rules() {
        let state =
            sample::state_with(&[("\"rule\":\"search\",\"mode\"", "\"rule\":\"find\",\"mode\"")]);
        let rows = TableKind::Trials.table(&state).rows;
        assert_eq!(rows[2], ["search", "0", "6", "2", "-"]);
    }
}
