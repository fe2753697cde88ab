//! The four tables: what stands in them, whatever they are written on.

use super::figures::{NOTHING, ago, count, micros, total};
use super::response::{Frame, Node, RefusedKey, Rule};
use super::state::{State, Sums};
use super::text::visible;

/// Which table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Refused,
    Nodes,
    Trials,
    Rules,
}

/// A column.
#[derive(Debug, Clone, Copy)]
pub(super) struct Column {
    pub(super) name: &'static str,
    /// Numbers stand at the right.
    pub(super) to_the_right: bool,
}

/// A table. Its cells are visible text, one for each column.
#[derive(Debug)]
pub(super) struct Sheet {
    pub(super) columns: &'static [Column],
    pub(super) rows: Vec<Vec<String>>,
}

const fn text(name: &'static str) -> Column {
    Column { name, to_the_right: false }
}

const fn number(name: &'static str) -> Column {
    Column { name, to_the_right: true }
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
    &[text("RULE"), number("SHADOW"), number("NEXT"), number("DIVERGED"), text("TRIED")];

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

impl Kind {
    pub(super) const ALL: [Self; 4] = [Self::Refused, Self::Nodes, Self::Trials, Self::Rules];

    /// What stands above it.
    pub(super) fn title(self) -> &'static str {
        match self {
            Self::Refused => "refused keys, last 5 min",
            Self::Nodes => "nodes",
            Self::Trials => "on trial, last 15 min",
            Self::Rules => "rules",
        }
    }

    /// What a line of it begins with, where all are in one text.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Refused => "refused",
            Self::Nodes => "node",
            Self::Trials => "trial",
            Self::Rules => "rule",
        }
    }

    /// What is said in place of rows.
    pub(super) fn nothing(self) -> &'static str {
        match self {
            Self::Refused => "nobody was refused",
            Self::Nodes => "no node is known",
            Self::Trials => "nothing is on trial",
            Self::Rules => "no rule is known",
        }
    }

    /// What stands in it.
    pub(super) fn sheet(self, state: &State) -> Sheet {
        let frame = state.frame.as_ref();
        match self {
            Self::Refused => Sheet {
                columns: REFUSED,
                rows: frame.map_or_else(Vec::new, |frame| {
                    frame.refused.iter().map(|key| refused(key, frame)).collect()
                }),
            },
            Self::Nodes => Sheet {
                columns: NODES,
                rows: frame.map_or_else(Vec::new, |frame| frame.nodes.iter().map(node).collect()),
            },
            Self::Trials => Sheet { columns: TRIALS, rows: trials(state) },
            Self::Rules => Sheet { columns: RULES, rows: rules(state) },
        }
    }
}

/// What may be absent.
fn or_nothing(text: &str) -> String {
    if text.is_empty() { NOTHING.to_owned() } else { visible(text) }
}

fn optional(text: Option<&String>) -> String {
    or_nothing(text.map_or("", String::as_str))
}

/// One word, also of "5 at once".
fn list(texts: &[String]) -> String {
    or_nothing(&texts.join(",").replace(' ', "_"))
}

fn refused(told: &RefusedKey, frame: &Frame) -> Vec<String> {
    let facts = told.facts.iter().flatten();
    let facts: Vec<String> = facts.map(|(name, value)| format!("{name}={value}")).collect();
    vec![
        count(told.count),
        or_nothing(&told.rule),
        or_nothing(&told.limit),
        ago(frame.t, told.last_at),
        or_nothing(&told.tenant),
        or_nothing(&told.key),
        or_nothing(&facts.join(" ")),
    ]
}

fn node(node: &Node) -> Vec<String> {
    // Who tells nothing is not idle.
    let figure = |number: Option<f64>| match number {
        Some(number) if node.heard => count(number),
        _ => NOTHING.to_owned(),
    };
    vec![
        or_nothing(&node.id),
        or_nothing(&node.state),
        figure(node.allowed),
        figure(node.refused),
        micros(node.p99_us.filter(|_| node.heard)),
        optional(node.breaker.as_ref()),
        optional(node.policy.as_ref()),
        optional(node.version.as_ref()),
        or_nothing(&node.address),
        optional(node.warning.as_ref()),
    ]
}

/// Rules that try something, and those that did in the time that is kept.
fn trials(state: &State) -> Vec<Vec<String>> {
    let (mut sums, mut rows) = (state.sums(), Vec::new());
    for rule in state.policy.iter().flat_map(|policy| &policy.rules) {
        let sum = sums.remove(rule.rule.as_str()).unwrap_or_default();
        let tried = tried(rule);
        if !tried.is_empty() || came_to_something(&sum) {
            rows.push(trial(&rule.rule, &sum, &tried));
        }
    }
    let others = sums.iter().filter(|(_, sum)| came_to_something(sum));
    rows.extend(others.map(|(rule, sum)| trial(rule, sum, "")));
    rows
}

fn came_to_something(sum: &Sums) -> bool {
    sum.shadow > 0.0 || sum.next > 0.0 || sum.diverged > 0.0
}

fn trial(rule: &str, sum: &Sums, tried: &str) -> Vec<String> {
    let counts = [sum.shadow, sum.next, sum.diverged].map(total);
    [vec![or_nothing(rule)], counts.to_vec(), vec![or_nothing(tried)]].concat()
}

fn tried(rule: &Rule) -> String {
    let mut tried = Vec::new();
    if rule.mode == "shadow" {
        tried.push("the rule itself".to_owned());
    }
    if !rule.next.is_empty() {
        tried.push(format!("next {}", rule.next.join(",")));
    }
    if rule.distributed == "shadow" {
        tried.push("the shared store".to_owned());
    }
    tried.join("; ")
}

fn rules(state: &State) -> Vec<Vec<String>> {
    let sums = state.sums();
    let row = |rule: &Rule| {
        let refused = sums.get(rule.rule.as_str()).map_or(0.0, |sum| sum.refused);
        vec![
            or_nothing(&rule.rule),
            or_nothing(&rule.mode),
            or_nothing(&rule.distributed),
            or_nothing(&rule.on_store_loss),
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
        for kind in Kind::ALL {
            let sheet = kind.sheet(&state);
            assert!(!sheet.rows.is_empty(), "{kind:?}");
            for row in &sheet.rows {
                assert_eq!(row.len(), sheet.columns.len(), "{kind:?}: {row:?}");
                assert!(row.iter().all(|cell| !cell.is_empty()), "{kind:?}: {row:?}");
                assert!(!row.concat().chars().any(char::is_control), "{kind:?}: {row:?}");
            }
            assert!(kind.sheet(&State::new("x")).rows.is_empty(), "{kind:?}");
        }
    }

    #[test]
    fn rows_say_what_was_told() {
        let state = sample::state();
        let refused = Kind::Refused.sheet(&state).rows;
        assert_eq!(
            refused[0],
            ["37", "search", "60s", "1s", "-", "c1", "client=c1 path=/search a"]
        );
        assert_eq!(refused[1][5], "\\u{1b}[2J\\u{1b}]0;owned\\u{7}");
        assert_eq!(refused[2][5], "\\u{202e}gpj.exe\\u{9b}31m");
        let nodes = Kind::Nodes.sheet(&state).rows;
        assert_eq!(nodes[0][..6], ["web-1", "Up", "1000", "60", "1.9ms", "closed"]);
        assert_eq!(nodes[1][..6], ["web-2", "Up", "-", "-", "-", "-"]);
        let trials = Kind::Trials.sheet(&state).rows;
        assert_eq!(trials[0], ["search", "0", "6", "2", "next 5/60s; the shared store"]);
        assert_eq!(trials[1], ["login", "0", "0", "0", "the rule itself"]);
        assert_eq!(trials.len(), 2);
        let rules = Kind::Rules.sheet(&state).rows;
        assert_eq!(rules[0][4..], ["4", "client", "10/60s,100/3600s", "5/60s"]);
    }

    #[test]
    fn a_trial_of_a_rule_that_is_gone_is_still_told() {
        let state =
            sample::state_with(&[("\"rule\":\"search\",\"mode\"", "\"rule\":\"find\",\"mode\"")]);
        let rows = Kind::Trials.sheet(&state).rows;
        assert_eq!(rows[2], ["search", "0", "6", "2", "-"]);
    }
}
