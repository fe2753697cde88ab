//! Drawing of a table, fitted to the available width.

use ratatui::Frame as Canvas;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::super::format::MISSING;
use super::super::tables::{Column, Row, Table, TableKind};
use super::super::text::{columns, cut, padded};
use super::names;
use super::theme::Theme;

/// Space between columns, in columns of the terminal.
const GAP: usize = 2;

/// Minimum width of a column that is shrunk.
const MIN_WIDTH: usize = 6;

/// Lines besides the rows: column names and totals.
const EXTRA_LINES: u16 = 2;

/// Returns the number of rows that fit into a height in lines.
pub(super) fn rows_in(height: u16) -> usize {
    usize::from(height.saturating_sub(EXTRA_LINES)).max(1)
}

/// The rows to draw: the first visible one, and the selected one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Position {
    pub(super) first: usize,
    /// None if the table is not the selected one.
    pub(super) cursor: Option<usize>,
}

/// Draws the rows around the position with their totals, or the text of an empty table.
pub(super) fn draw(
    canvas: &mut Canvas<'_>,
    area: Rect,
    (kind, table): (TableKind, &Table),
    position: Position,
    theme: Theme,
) {
    let mut lines = area.rows();
    let Some(head) = lines.next() else { return };
    if table.rows.is_empty() {
        let text = cut(kind.empty_text(), usize::from(area.width));
        canvas.render_widget(Line::styled(text, theme.faint()), head);
        return;
    }
    let fitted = Fitted::new(table, usize::from(area.width));
    let names: Vec<String> = table.columns.iter().map(|column| column.name.to_owned()).collect();
    canvas.render_widget(Line::styled(fitted.line(&names), theme.faint()), head);
    // If the table became shorter, its last page is shown.
    let page = rows_in(area.height);
    let first = position.first.min(table.rows.len().saturating_sub(page));
    let cursor = position.cursor.map(|cursor| cursor.min(table.rows.len() - 1));
    let rows = table.rows.iter().skip(first).take(page).collect::<Vec<_>>();
    let texts = fitted.texts(&rows);
    for (index, cells) in (first..).zip(&texts) {
        let Some(line) = lines.next() else { return };
        let style = if cursor == Some(index) { theme.selected() } else { theme.plain() };
        canvas.render_widget(Line::styled(fitted.line(cells), style), line);
    }
    if let (Some(totals), Some(line)) = (table.totals(), lines.next()) {
        canvas.render_widget(Line::from(Span::styled(fitted.line(&totals), theme.strong())), line);
    }
}

/// The columns of a table that fit into a width.
struct Fitted {
    /// Index, alignment and width of each column.
    columns: Vec<(usize, bool, usize)>,
}

impl Fitted {
    /// Chooses columns and widths. If the cells do not fit, columns without a value are omitted, then the widest columns
    /// shrink, down to their names; if that is not enough, the last columns are omitted.
    fn new(table: &Table, width: usize) -> Self {
        let all: Vec<usize> = (0..table.columns.len()).collect();
        let natural = |index: &usize| (*index, natural_width(table, *index));
        let widths: Vec<(usize, usize)> = all.iter().map(natural).collect();
        if excess(&widths, width) == 0 {
            return Self::of(table, &widths);
        }
        let has_value = |(index, _): &(usize, usize)| {
            let mut cells = table.rows.iter().filter_map(|row| row.cells.get(*index));
            cells.any(|cell| cell != MISSING)
        };
        let mut widths: Vec<(usize, usize)> = widths.into_iter().filter(has_value).collect();
        while excess(&widths, width) > 0 {
            let minimum = |index: usize| name_width(table.columns.get(index)).max(MIN_WIDTH);
            let shrinkable = widths.iter_mut().filter(|(index, width)| *width > minimum(*index));
            match shrinkable.max_by_key(|(_, width)| *width) {
                Some((_, width)) => *width -= 1,
                None => drop(widths.pop()),
            }
        }
        Self::of(table, &widths)
    }

    fn of(table: &Table, widths: &[(usize, usize)]) -> Self {
        let column = |(index, width): &(usize, usize)| {
            let align_right = table.columns.get(*index).is_some_and(|column| column.align_right);
            (*index, align_right, *width)
        };
        Self { columns: widths.iter().map(column).collect() }
    }

    /// Returns the cells of some rows, truncated so that different names stay different.
    fn texts(&self, rows: &[&Row]) -> Vec<Vec<String>> {
        let mut texts: Vec<Vec<String>> = rows.iter().map(|row| row.cells.clone()).collect();
        for (index, _, width) in &self.columns {
            let cell = |row: &&Row| row.cells.get(*index).map_or(String::new(), String::clone);
            let cells: Vec<String> = rows.iter().map(cell).collect();
            let cells: Vec<&str> = cells.iter().map(String::as_str).collect();
            for (row, short) in texts.iter_mut().zip(names::fit(&cells, *width)) {
                if let Some(cell) = row.get_mut(*index) {
                    *cell = short;
                }
            }
        }
        texts
    }

    fn line(&self, cells: &[String]) -> String {
        let cell = |(index, align_right, width): &(usize, bool, usize)| {
            padded(cells.get(*index).map_or("", String::as_str), *width, *align_right)
        };
        self.columns.iter().map(cell).collect::<Vec<_>>().join(&" ".repeat(GAP))
    }
}

fn name_width(column: Option<&Column>) -> usize {
    column.map_or(0, |column| columns(column.name))
}

/// Returns the width of the widest cell of a column, its name and its total.
fn natural_width(table: &Table, index: usize) -> usize {
    let cells = table.rows.iter().filter_map(|row| row.cells.get(index));
    let widest = cells.map(|cell| columns(cell)).max().unwrap_or_default();
    let total = table.totals().and_then(|totals| Some(columns(totals.get(index)?)));
    widest.max(name_width(table.columns.get(index))).max(total.unwrap_or_default())
}

/// Returns by how much the columns with their gaps exceed a width.
fn excess(widths: &[(usize, usize)], width: usize) -> usize {
    let gaps = GAP * widths.len().saturating_sub(1);
    (widths.iter().map(|(_, width)| width).sum::<usize>() + gaps).saturating_sub(width)
}

#[cfg(test)]
mod tests {
    use super::super::super::sample;
    use super::*;

    #[test]
    fn columns_fit_any_width() {
        let state = sample::state();
        for kind in TableKind::ALL {
            let table = kind.table(&state);
            for width in 0..200 {
                let fitted = Fitted::new(&table, width);
                let rows: Vec<&Row> = table.rows.iter().collect();
                for cells in fitted.texts(&rows) {
                    assert!(columns(&fitted.line(&cells)) <= width, "{kind:?} in {width}");
                }
            }
        }
    }

    #[test]
    fn widest_column_shrinks_first() {
        let table = TableKind::Refused.table(&sample::state());
        let widths = |width: usize| -> Vec<usize> {
            Fitted::new(&table, width).columns.iter().map(|(_, _, width)| *width).collect()
        };
        let all = widths(500);
        assert_eq!(all[6], 80);
        let fewer = widths(78);
        assert_eq!(fewer[..6], all[..6]);
        assert!(fewer[6] < 30 && fewer[6] >= MIN_WIDTH, "{fewer:?}");
    }

    #[test]
    fn narrow_screen_omits_columns_without_a_value() {
        let state = sample::state_with(&[("\"tenant\":\"acme\"", "\"tenant\":\"\"")]);
        let table = TableKind::Refused.table(&state);
        let names = |width: usize| {
            let names: Vec<String> =
                table.columns.iter().map(|column| column.name.to_owned()).collect();
            Fitted::new(&table, width).line(&names)
        };
        assert!(names(500).contains("TENANT"));
        assert!(!names(78).contains("TENANT"), "{}", names(78));
    }
}
