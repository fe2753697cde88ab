//! Drawing of a table, fitted to the available width.

use ratatui::Frame as Canvas;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::super::tables::{Column, Table, TableKind};
use super::super::text::{columns, cut, padded};
use super::theme::Theme;

/// Space between columns, in columns of the terminal.
const GAP: usize = 2;

/// Minimum width of a column that is shrunk.
const MIN_WIDTH: usize = 6;

/// Returns the number of rows that fit into a height in lines; the column names take one line.
pub(super) fn rows_in(height: u16) -> usize {
    usize::from(height.saturating_sub(1))
}

/// Draws the rows from `first` on, or the text of an empty table.
pub(super) fn draw(
    canvas: &mut Canvas<'_>,
    area: Rect,
    (kind, table): (TableKind, &Table),
    first: usize,
    theme: Theme,
) {
    let mut lines = area.rows();
    let Some(head) = lines.next() else { return };
    if table.rows.is_empty() {
        let text = cut(kind.empty_text(), usize::from(area.width));
        canvas.render_widget(Line::styled(text, theme.faint()), head);
        return;
    }
    let widths = widths(table, usize::from(area.width));
    let names: Vec<String> = table.columns.iter().map(|column| column.name.to_owned()).collect();
    canvas.render_widget(Line::styled(row(&names, table, &widths), theme.faint()), head);
    // If the table became shorter, its last page is shown.
    let first = first.min(table.rows.len().saturating_sub(rows_in(area.height)));
    for (cells, line) in table.rows.iter().skip(first).zip(lines) {
        canvas.render_widget(Line::from(Span::raw(row(cells, table, &widths))), line);
    }
}

fn row(cells: &[String], table: &Table, widths: &[usize]) -> String {
    let cells = cells.iter().zip(table.columns).zip(widths);
    let cells = cells.map(|((cell, column), width)| padded(cell, *width, column.align_right));
    cells.collect::<Vec<_>>().join(&" ".repeat(GAP))
}

/// Returns the column widths. If the cells do not fit, the widest columns shrink first, down to their names; if that
/// is not enough, the last columns are omitted.
fn widths(table: &Table, width: usize) -> Vec<usize> {
    let natural = |(index, column): (usize, &Column)| {
        let cells = table.rows.iter().filter_map(|row| row.get(index));
        let widest = cells.map(|cell| columns(cell)).max().unwrap_or_default();
        widest.max(columns(column.name))
    };
    let mut widths: Vec<usize> = table.columns.iter().enumerate().map(natural).collect();
    loop {
        let gaps = GAP * widths.len().saturating_sub(1);
        let over = (widths.iter().sum::<usize>() + gaps).saturating_sub(width);
        if over == 0 {
            return widths;
        }
        let minimum = table.columns.iter().map(|column| columns(column.name).max(MIN_WIDTH));
        let shrinkable =
            widths.iter_mut().zip(minimum).filter(|(width, minimum)| **width > *minimum);
        match shrinkable.max_by_key(|(width, _)| **width) {
            Some((width, _)) => *width -= 1,
            None => drop(widths.pop()),
        }
    }
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
                let widths = widths(&table, width);
                let gaps = GAP * widths.len().saturating_sub(1);
                assert!(widths.iter().sum::<usize>() + gaps <= width, "{kind:?} in {width}");
                for cells in &table.rows {
                    assert!(columns(&row(cells, &table, &widths)) <= width, "{kind:?} in {width}");
                }
            }
        }
    }

    #[test]
    fn widest_column_shrinks_first() {
        let table = TableKind::Refused.table(&sample::state());
        let all = widths(&table, 500);
        assert_eq!(all[5], 80);
        let fewer = widths(&table, 78);
        assert_eq!(fewer[..5], all[..5]);
        assert!(fewer[5] < 30 && fewer[5] >= MIN_WIDTH, "{fewer:?}");
    }
}
