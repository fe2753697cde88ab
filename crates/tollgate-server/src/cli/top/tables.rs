//! The four tables, for the screen and for the summary.

use super::format::count;
use super::rows;
use super::state::State;

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

/// A row: visible text, one cell per column.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Row {
    pub(super) cells: Vec<String>,
    /// Amounts that are added up in the totals, by the index of their column.
    pub(super) amounts: Vec<(usize, f64)>,
}

/// A table.
#[derive(Debug)]
pub(super) struct Table {
    pub(super) columns: &'static [Column],
    pub(super) rows: Vec<Row>,
}

impl Table {
    /// Returns the table with the rows in which a cell contains the text, in upper or lower case.
    pub(super) fn filtered(mut self, text: &str) -> Self {
        let text = text.to_lowercase();
        self.rows.retain(|row| row.cells.iter().any(|cell| cell.to_lowercase().contains(&text)));
        self
    }

    /// Returns the row of totals, with an empty cell where a sum has no meaning; none for fewer than two rows.
    pub(super) fn totals(&self) -> Option<Vec<String>> {
        if self.rows.len() < 2 {
            return None;
        }
        let amounts = || self.rows.iter().flat_map(|row| &row.amounts);
        let cell = |(index, column): (usize, &Column)| {
            let mut summed = amounts().filter(|(column, _)| *column == index).peekable();
            match summed.peek() {
                Some(_) => count(summed.map(|(_, amount)| amount).sum()),
                None if column.align_right => String::new(),
                None if self.first_text_column() == Some(index) => "total".to_owned(),
                None => String::new(),
            }
        };
        Some(self.columns.iter().enumerate().map(cell).collect())
    }

    fn first_text_column(&self) -> Option<usize> {
        self.columns.iter().position(|column| !column.align_right)
    }
}

const fn text(name: &'static str) -> Column {
    Column { name, align_right: false }
}

const fn number(name: &'static str) -> Column {
    Column { name, align_right: true }
}

const REFUSED: &[Column] = &[
    number("COUNT"),
    number("RATE/S"),
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
        let (columns, rows) = match self {
            Self::Refused => (REFUSED, rows::refused(state)),
            Self::Nodes => (NODES, rows::nodes(state)),
            Self::Trials => (TRIALS, rows::trials(state)),
            Self::Rules => (RULES, rows::rules(state)),
        };
        Table { columns, rows }
    }

    /// Returns the columns that identify a row: it keeps their text while its figures change.
    pub(super) fn identity(self) -> &'static [&'static str] {
        match self {
            Self::Refused => &["RULE", "LIMIT", "TENANT", "KEY"],
            Self::Nodes => &["NODE"],
            Self::Trials | Self::Rules => &["RULE"],
        }
    }
}

impl Table {
    /// Returns whether two rows of tables of this kind are about the same thing.
    pub(super) fn is_same(&self, kind: TableKind, left: &Row, right: &Row) -> bool {
        let is_identity = |column: &Column| kind.identity().contains(&column.name);
        let columns = self.columns.iter().enumerate().filter(|(_, column)| is_identity(column));
        columns.map(|(index, _)| index).all(|index| left.cells.get(index) == right.cells.get(index))
    }
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
            for row in table.rows.iter().map(|row| &row.cells) {
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
        let cells = |kind: TableKind| -> Vec<Vec<String>> {
            kind.table(&state).rows.into_iter().map(|row| row.cells).collect()
        };
        let refused = cells(TableKind::Refused);
        assert_eq!(
            refused[0],
            ["37", "2.5", "search", "10/min", "1s", "-", "c1", "client=c1 path=/search a"]
        );
        assert_eq!(refused[1][6], "\\u{1b}[2J\\u{1b}]0;owned\\u{7}");
        assert_eq!(refused[2][6], "\\u{202e}gpj.exe\\u{9b}31m");
        let nodes = cells(TableKind::Nodes);
        assert_eq!(nodes[0][..6], ["web-1", "Up", "1000", "60", "1.9ms", "closed"]);
        assert_eq!(nodes[1][..6], ["web-2", "Up", "-", "-", "-", "-"]);
        let trials = cells(TableKind::Trials);
        assert_eq!(trials[0], ["search", "0", "6", "2", "next 5/min; distributed: shadow"]);
        assert_eq!(trials[1], ["login", "0", "0", "0", "mode: shadow"]);
        assert_eq!(trials.len(), 2);
        let rules = cells(TableKind::Rules);
        assert_eq!(rules[0][4..], ["4", "client", "10/min,100/h", "5/min"]);
    }

    #[test]
    fn shows_trials_of_removed_rules() {
        let state =
            sample::state_with(&[("\"rule\":\"search\",\"mode\"", "\"rule\":\"find\",\"mode\"")]);
        let rows = TableKind::Trials.table(&state).rows;
        assert_eq!(rows[2].cells, ["search", "0", "6", "2", "-"]);
    }

    #[test]
    fn filter_matches_any_cell() {
        let refused = |text: &str| TableKind::Refused.table(&sample::state()).filtered(text).rows;
        assert_eq!(refused("").len(), 4);
        assert_eq!(refused("SEARCH").len(), 1);
        assert_eq!(refused("acme")[0].cells[0], "12");
        assert!(refused("nothing like this").is_empty());
    }

    #[test]
    fn totals_add_up_the_rows_shown() {
        let table = TableKind::Refused.table(&sample::state());
        assert_eq!(table.totals().unwrap()[..4], ["61", "2.5", "total", ""]);
        let filtered = table.filtered("default");
        assert_eq!(filtered.totals().unwrap()[..3], ["24", "0", "total"]);
        let nodes = TableKind::Nodes.table(&sample::state());
        assert_eq!(nodes.totals().unwrap()[..5], ["total", "", "1000", "60", ""]);
        assert_eq!(nodes.filtered("web-2").totals(), None);
    }
}
