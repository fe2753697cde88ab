//! Details of one row: all its cells in full, and what else is known about it.

use super::format::MISSING;
use super::response::{RefusedKey, Rule};
use super::rows;
use super::state::State;
use super::tables::{Row, TableKind};
use super::text::visible;

/// Name and text of one line.
pub(super) type Line = (&'static str, String);

/// Returns the details of a row. A row that is no longer in the table keeps its last figures.
pub(super) fn details(kind: TableKind, row: &Row, state: &State) -> Vec<Line> {
    let table = kind.table(state);
    let current = table.rows.iter().find(|other| table.is_same(kind, row, other));
    let mut lines = Vec::new();
    if current.is_none() {
        lines.push(("NOTE", "no longer in the table; these are the last figures".to_owned()));
    }
    let cells = &current.unwrap_or(row).cells;
    let columns = table.columns.iter().map(|column| column.name);
    lines.extend(columns.zip(cells.iter().cloned()).filter(|(_, cell)| cell != MISSING));
    let cell = |name: &str| {
        let index = table.columns.iter().position(|column| column.name == name);
        index.and_then(|index| cells.get(index)).map_or("", String::as_str)
    };
    match kind {
        TableKind::Refused => {
            lines.extend(rule_lines(cell("RULE"), state));
            lines.extend(key_lines(&cell, state));
        }
        TableKind::Nodes => lines.extend(node_lines(cell("NODE"), state)),
        TableKind::Trials => lines.extend(rule_lines(cell("RULE"), state)),
        TableKind::Rules => lines.extend(match_line(cell("RULE"), state)),
    }
    lines
}

fn rule<'a>(name: &str, state: &'a State) -> Option<&'a Rule> {
    let mut rules = state.policy.iter().flat_map(|policy| &policy.rules);
    rules.find(|rule| visible(&rule.rule) == name)
}

fn match_line(name: &str, state: &State) -> Option<Line> {
    let conditions = visible(&rule(name, state)?.conditions);
    (!conditions.is_empty()).then_some(("MATCH", conditions))
}

fn rule_lines(name: &str, state: &State) -> Vec<Line> {
    let Some(rule) = rule(name, state) else { return Vec::new() };
    let join = |texts: &[String]| visible(&texts.join(", "));
    let lines = [
        ("MATCH", visible(&rule.conditions)),
        ("LIMITS", join(&rule.limits)),
        ("PER", join(&rule.per)),
        ("MODE", visible(&rule.mode)),
    ];
    lines.into_iter().filter(|(_, text)| !text.is_empty()).collect()
}

/// Returns what is known about a refused client: whether it has an override, and the command that shows what a raised
/// limit would change.
fn key_lines<'a>(cell: &impl Fn(&str) -> &'a str, state: &State) -> Vec<Line> {
    let refused = state.frame.iter().flat_map(|frame| &frame.refused);
    let is_row = |key: &&RefusedKey| {
        visible(&key.key) == cell("KEY")
            && visible(&key.rule) == cell("RULE")
            && rows::limit(key) == cell("LIMIT")
    };
    let Some(key) = refused.into_iter().find(is_row) else { return Vec::new() };
    let mut lines = Vec::new();
    if key.overridden {
        lines.push(("OVERRIDE", "an override applies to this client".to_owned()));
    }
    let client = key.facts.as_ref().and_then(|facts| facts.get("client"));
    if let Some(client) = client.filter(|client| is_plain(client)) {
        let rule = visible(&key.rule);
        let tenant = if key.tenant.is_empty() { "" } else { "--tenant TENANT " };
        let command =
            format!("tollgate override set {client} RATE --rule {rule} {tenant}--for 1h --dry-run");
        lines.push(("RAISE", command));
    }
    lines
}

/// Returns whether a shell takes the text as one word without quotes, and a command does not take it as an option.
fn is_plain(text: &str) -> bool {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "._:@/-".contains(letter);
    !text.is_empty() && !text.starts_with('-') && text.chars().all(is_plain)
}

fn node_lines(id: &str, state: &State) -> Vec<Line> {
    let mut nodes = state.frame.iter().flat_map(|frame| &frame.nodes);
    let node = nodes.find(|node| visible(&node.id) == id);
    let last_seen = node.and_then(|node| node.last_seen.as_deref());
    last_seen.map(|time| vec![("LAST_SEEN", visible(time))]).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    fn lines(kind: TableKind, row: usize, state: &State) -> Vec<Line> {
        details(kind, &kind.table(&sample::state()).rows[row], state)
    }

    fn text(lines: &[Line], name: &str) -> Vec<String> {
        let named = lines.iter().filter(|(other, _)| *other == name);
        named.map(|(_, text)| text.clone()).collect()
    }

    #[test]
    fn refused_key_shows_its_rule_and_how_to_raise_the_limit() {
        let state = sample::state();
        let lines = lines(TableKind::Refused, 0, &state);
        assert_eq!(text(&lines, "KEY"), ["c1"]);
        assert_eq!(text(&lines, "FACTS"), ["client=c1 path=/search a"]);
        assert_eq!(text(&lines, "LIMITS"), ["10/min, 100/h"]);
        assert_eq!(text(&lines, "OVERRIDE"), ["an override applies to this client"]);
        let raise = "tollgate override set c1 RATE --rule search --for 1h --dry-run";
        assert_eq!(text(&lines, "RAISE"), [raise]);
        assert_eq!(text(&lines, "TENANT"), Vec::<String>::new());
    }

    #[test]
    fn hostile_client_is_in_no_command() {
        for client in ["a b", "$(reboot)", "-rf", "a;b", "\\u001b[2J", ""] {
            let facts = format!("\"client\":\"{client}\"");
            let state = sample::state_with(&[("\"client\":\"c1\"", &facts)]);
            let row = &TableKind::Refused.table(&state).rows[0];
            let lines = details(TableKind::Refused, row, &state);
            assert_eq!(text(&lines, "RAISE"), Vec::<String>::new(), "{client}");
        }
    }

    #[test]
    fn removed_row_keeps_its_last_figures() {
        let lines = lines(TableKind::Refused, 0, &State::new("x"));
        assert!(text(&lines, "NOTE")[0].starts_with("no longer in the table"), "{lines:?}");
        assert_eq!(text(&lines, "COUNT"), ["37"]);
    }

    #[test]
    fn node_shows_when_it_was_last_seen() {
        let lines = lines(TableKind::Nodes, 0, &sample::state());
        assert_eq!(text(&lines, "LAST_SEEN"), ["2026-11-16T15:00:02Z"]);
    }
}
