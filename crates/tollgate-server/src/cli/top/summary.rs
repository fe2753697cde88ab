//! Summary as plain text. Every line starts with a label, for grep.

use super::format::{MISSING, percent};
use super::health::health;
use super::response::{Frame, Store};
use super::state::State;
use super::tables::{Table, TableKind};
use super::text::{columns, visible};

/// Maximum padded width of a column; longer cells shift the rest of their line.
const MAX_WIDTH: usize = 32;

/// Width of the label.
const LABEL_WIDTH: usize = 9;

/// Returns the summary.
pub(super) fn summary(state: &State) -> String {
    let mut text = String::new();
    let mut line = |label: &str, content: &str| {
        text.push_str(format!("{label:LABEL_WIDTH$}{content}").trim_end());
        text.push('\n');
    };
    line("server", &visible(&state.server));
    if let Some(frame) = &state.frame {
        line("scope", &format!("{} node={}", visible(&frame.scope), visible(&frame.node)));
        line("store", &store_line(&frame.store));
    }
    if let Some(policy) = &state.policy {
        let file = policy.file.as_deref().map_or(MISSING.to_owned(), visible);
        let (version, rules) = (visible(&policy.version), policy.rules_total);
        line("policy", &format!("{version} rules={rules} file={file}"));
    }
    health(state).iter().for_each(|(_, text)| line("health", text));
    if let Some(frame) = &state.frame {
        line("now", &rates_line(frame));
    }
    for kind in TableKind::ALL {
        line("", "");
        table_lines(kind, &kind.table(state)).iter().for_each(|row| line(kind.label(), row));
    }
    text
}

fn store_line(store: &Store) -> String {
    let mut line = visible(&store.kind);
    let number = |number: Option<u64>| number.map(|number| number.to_string());
    let text = |text: &Option<String>| text.as_deref().map(visible);
    let pairs = [
        ("address", text(&store.address)),
        ("breaker", text(&store.breaker)),
        ("keys", number(store.keys)),
        ("max_keys", number(store.max_keys)),
        // This value may contain spaces, so it comes last.
        ("server", text(&store.server)),
    ];
    for (name, value) in pairs {
        if let Some(value) = value {
            line.push_str(&format!(" {name}={value}"));
        }
    }
    line
}

fn rates_line(frame: &Frame) -> String {
    let now = &frame.now;
    let refused_percent = percent(now.refused, now.allowed + now.refused);
    let time = |us: Option<f64>| us.map_or(MISSING.to_owned(), |us| format!("{us:.0}"));
    format!(
        "allowed/s={:.1} refused/s={:.1} refused%={refused_percent:.1} degraded/s={:.1} errors/s={:.1} p50_us={} p99_us={}",
        now.allowed,
        now.refused,
        now.degraded,
        now.errors,
        time(now.p50_us),
        time(now.p99_us)
    )
}

/// Returns the lines of a table; the first line has the column names.
fn table_lines(kind: TableKind, table: &Table) -> Vec<String> {
    if table.rows.is_empty() {
        return vec![format!("({})", kind.empty_text())];
    }
    let names = table.columns.iter().map(|column| column.name.to_owned()).collect();
    let cells = table.rows.iter().map(|row| &row.cells);
    let rows: Vec<Vec<String>> =
        std::iter::once(&names).chain(cells).map(|row| escape_spaces(row)).collect();
    let width = |index: usize| {
        let widths = rows.iter().filter_map(|row| row.get(index)).map(|cell| columns(cell));
        widths.max().unwrap_or_default().min(MAX_WIDTH)
    };
    let widths: Vec<usize> = (0..table.columns.len()).map(width).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(table.columns).zip(&widths).map(|((cell, column), width)| {
            let blank = " ".repeat(width.saturating_sub(columns(cell)));
            if column.align_right { blank + cell } else { format!("{cell}{blank}") }
        });
        cells.collect::<Vec<_>>().join("  ")
    };
    rows.iter().map(line).collect()
}

/// Escapes spaces in all cells but the last, so that each cell is one word.
fn escape_spaces(row: &[String]) -> Vec<String> {
    let last = row.len().saturating_sub(1);
    let cell = |(index, cell): (usize, &String)| {
        if index == last { cell.clone() } else { cell.replace(' ', "\\u{20}") }
    };
    row.iter().enumerate().map(cell).collect()
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    #[test]
    fn summary_has_one_line_per_item() {
        let text = summary(&sample::state());
        for line in [
            "server   http://127.0.0.1:8080",
            "scope    fleet node=web-1",
            "store    redis address=10.0.0.5:6379 breaker=closed server=valkey 9.1",
            "policy   9f3c rules=3 file=/etc/policy.yaml",
            "health   no problems detected",
            "now      allowed/s=1234.5 refused/s=61.7 refused%=4.8 degraded/s=0.0 errors/s=0.0 p50_us=210 p99_us=1900",
            "node     web-2  Up             -          -      -  -        -       -        10.0.0.8:8080  -",
            "rule     login    shadow   on      deny           0  ip      5/min         -",
        ] {
            assert!(text.lines().any(|actual| actual == line), "{line}\nis not in\n{text}");
        }
        assert!(!text.lines().any(|line| line.ends_with(' ')), "{text}");
    }

    #[test]
    fn each_cell_is_one_word() {
        let text = summary(&sample::state_with(&[("\"key\":\"c1\"", "\"key\":\"a b\\n c\"")]));
        let row = text.lines().find(|line| line.starts_with("refused     37")).unwrap();
        let words: Vec<&str> = row.split_whitespace().collect();
        assert_eq!(words[..7], ["refused", "37", "2.5", "search", "10/min", "1s", "-"]);
        assert_eq!(words[7..], ["a\\u{20}b\\n\\u{20}c", "client=c1", "path=/search", "a"]);
        assert!(!text.chars().any(|letter| letter.is_control() && letter != '\n'), "{text:?}");
        assert!(!text.contains('\u{202e}'), "{text:?}");
    }

    #[test]
    fn empty_state_has_a_summary() {
        let text = summary(&State::new("http://h"));
        let expected = "server   http://h\nhealth   waiting for data\n\n\
                        refused  (no refused keys)\n\nnode     (no nodes)\n\n\
                        trial    (no rules on trial)\n\nrule     (no rules)\n";
        assert_eq!(text, expected);
    }
}
