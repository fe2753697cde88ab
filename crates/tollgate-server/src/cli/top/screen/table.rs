//! A table in as much room as there is.

use ratatui::Frame as Canvas;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::super::sheets::{Column, Kind, Sheet};
use super::super::text::{columns, cut, padded};
use super::look::Look;

/// Between columns.
const GAP: usize = 2;

/// The narrowest that a column becomes by giving way.
const NARROWEST: usize = 6;

/// How many rows a table shows in so many lines: one is for the names of its columns.
pub(super) fn rows_in(height: u16) -> usize {
    usize::from(height.saturating_sub(1))
}

/// Draws the rows from one on, or what there is to say without any.
pub(super) fn draw(
    canvas: &mut Canvas<'_>,
    area: Rect,
    (kind, sheet): (Kind, &Sheet),
    first: usize,
    look: Look,
) {
    let mut lines = area.rows();
    let Some(head) = lines.next() else { return };
    if sheet.rows.is_empty() {
        let nothing = cut(kind.nothing(), usize::from(area.width));
        canvas.render_widget(Line::styled(nothing, look.faint()), head);
        return;
    }
    let widths = widths(sheet, usize::from(area.width));
    let names: Vec<String> = sheet.columns.iter().map(|column| column.name.to_owned()).collect();
    canvas.render_widget(Line::styled(row(&names, sheet, &widths), look.faint()), head);
    // The end of a table that has become shorter is still its end.
    let first = first.min(sheet.rows.len().saturating_sub(rows_in(area.height)));
    for (cells, line) in sheet.rows.iter().skip(first).zip(lines) {
        canvas.render_widget(Line::from(Span::raw(row(cells, sheet, &widths))), line);
    }
}

fn row(cells: &[String], sheet: &Sheet, widths: &[usize]) -> String {
    let cells = cells.iter().zip(sheet.columns).zip(widths);
    let cells = cells.map(|((cell, column), width)| padded(cell, *width, column.to_the_right));
    cells.collect::<Vec<_>>().join(&" ".repeat(GAP))
}

/// How wide columns are: as their cells, or less, the widest first, but none less than its name; the last are left
/// out where that is not enough.
fn widths(sheet: &Sheet, room: usize) -> Vec<usize> {
    let natural = |(at, column): (usize, &Column)| {
        let cells = sheet.rows.iter().filter_map(|row| row.get(at));
        let widest = cells.map(|cell| columns(cell)).max().unwrap_or_default();
        widest.max(columns(column.name))
    };
    let mut widths: Vec<usize> = sheet.columns.iter().enumerate().map(natural).collect();
    loop {
        let gaps = GAP * widths.len().saturating_sub(1);
        let over = (widths.iter().sum::<usize>() + gaps).saturating_sub(room);
        if over == 0 {
            return widths;
        }
        let least = sheet.columns.iter().map(|column| columns(column.name).max(NARROWEST));
        let wide = widths.iter_mut().zip(least).filter(|(width, least)| **width > *least);
        match wide.max_by_key(|(width, _)| **width) {
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
    fn columns_fit_whatever_the_room() {
        let state = sample::state();
        for kind in Kind::ALL {
            let sheet = kind.sheet(&state);
            for room in 0..200 {
                let widths = widths(&sheet, room);
                let gaps = GAP * widths.len().saturating_sub(1);
                assert!(widths.iter().sum::<usize>() + gaps <= room, "{kind:?} in {room}");
                for cells in &sheet.rows {
                    assert!(columns(&row(cells, &sheet, &widths)) <= room, "{kind:?} in {room}");
                }
            }
        }
    }

    #[test]
    fn the_widest_column_gives_way_first() {
        let sheet = Kind::Refused.sheet(&sample::state());
        let all = widths(&sheet, 500);
        assert_eq!(all[5], 80);
        let fewer = widths(&sheet, 78);
        assert_eq!(fewer[..5], all[..5]);
        assert!(fewer[5] < 30 && fewer[5] >= NARROWEST, "{fewer:?}");
    }
}
