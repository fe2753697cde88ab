//! Drawing of the state on the screen. Nothing here changes the state.

mod chart;
mod details;
mod header;
mod names;
mod table;
#[cfg(test)]
mod tests;
mod theme;

use ratatui::Frame as Canvas;
use ratatui::layout::{Constraint, Layout, Position, Rect, Size};
use ratatui::text::{Line, Span};

use super::state::State;
use super::tables::TableKind;
use super::text::{cut, visible};
use super::view::{ScrollRange, TablePosition, View};
pub(super) use theme::Theme;

/// Minimum size for showing all tables together.
const ALL_TABLES_SIZE: Size = Size { width: 150, height: 24 };

const KEYS: &str = "q quit  Tab 1-4 table  ↑ ↓ row  Enter details  / filter  p pause  ? help";

const HELP: [&str; 14] = [
    "q Ctrl-C       quit",
    "Tab 1 2 3 4    select a table",
    "↑ ↓ PgUp PgDn  select a row; also Home and End",
    "Enter          details of the selected row",
    "/              filter: show the rows that contain a text; Enter keeps it",
    "Esc            close the help or the details, remove the filter, then quit",
    "p              pause or resume",
    "",
    "Rates are averages of the last 5 s, for the nodes named in the first line.",
    "Refused keys show the minimum number of refusals in the last 5 minutes.",
    "SHADOW     refusals by a rule with mode: shadow, if it were enforced",
    "NEXT       refusals by the limits under next:, if they were enforced",
    "DIVERGED   decisions on which the node and Redis differed",
    "·          a second without data",
];

/// Areas of the screen. A part that does not fit has an empty area.
#[derive(Debug)]
struct Areas {
    header: Rect,
    tiles: Rect,
    chart: Rect,
    tabs: Rect,
    table: Rect,
    footer: Rect,
}

/// Areas of one table.
#[derive(Debug)]
struct TableArea {
    kind: TableKind,
    title: Rect,
    rows: Rect,
}

impl Areas {
    fn split(area: Rect) -> Self {
        let height = area.height;
        let header = if height >= 9 { 3 } else { height.min(1) };
        let tiles = if height >= 4 { 2 } else { 0 };
        let footer = u16::from(height >= 12);
        let tabs = u16::from(height >= 6);
        let rest = height.saturating_sub(header + tiles + footer + tabs);
        let chart = if rest >= 10 { (rest / 3).clamp(4, 9) } else { 0 };
        let [header, tiles, chart, tabs, table, footer] = Layout::vertical([
            Constraint::Length(header),
            Constraint::Length(tiles),
            Constraint::Length(chart),
            Constraint::Length(tabs),
            Constraint::Fill(1),
            Constraint::Length(footer),
        ])
        .areas(area);
        Self { header, tiles, chart, tabs, table, footer }
    }

    /// Returns the areas of all tables if they fit, otherwise that of the selected table without a title, because
    /// its tab shows the title.
    fn tables(&self, selected: TableKind) -> Vec<TableArea> {
        let area = self.table;
        if area.width < ALL_TABLES_SIZE.width || area.height < ALL_TABLES_SIZE.height {
            return vec![TableArea { kind: selected, title: Rect::default(), rows: area }];
        }
        let halves: [Rect; 2] = Layout::vertical([Constraint::Fill(1); 2]).spacing(1).areas(area);
        let quarters = halves.into_iter().flat_map(|half| -> [Rect; 2] {
            Layout::horizontal([Constraint::Fill(1); 2]).spacing(3).areas(half)
        });
        let table_area = |(kind, area)| {
            let parts = Layout::vertical([Constraint::Length(1), Constraint::Fill(1)]);
            let [title, rows] = parts.areas(area);
            TableArea { kind, title, rows }
        };
        TableKind::ALL.into_iter().zip(quarters).map(table_area).collect()
    }
}

/// Draws the whole screen.
pub(super) fn draw(canvas: &mut Canvas<'_>, state: &State, view: &View, theme: Theme) {
    let areas = Areas::split(canvas.area());
    let state = view.visible_state(state);
    let width = usize::from(areas.header.width);
    let header = [
        header::service(state, view.is_paused(), theme),
        header::store_and_policy(state, theme),
        header::health_line(state, width, theme),
    ];
    lines(canvas, areas.header, header);
    lines(canvas, areas.tiles, header::tiles(state, width, theme));
    if view.shows_help {
        return help(canvas, areas.chart.union(areas.tabs).union(areas.table));
    }
    match view.details() {
        // Without the charts, because the last line, a command, must be visible.
        Some(row) => {
            let area = areas.chart.union(areas.tabs).union(areas.table);
            let details = super::details::details(view.selected(), row, state);
            details::draw(canvas, area, &details, theme);
        }
        None => {
            chart::draw(canvas, areas.chart, state, theme);
            lines(canvas, areas.tabs, [tabs(state, view, theme)]);
            draw_tables(canvas, &areas, state, view, theme);
        }
    }
    lines(canvas, areas.footer, [footer(view, width, theme)]);
}

fn draw_tables(canvas: &mut Canvas<'_>, areas: &Areas, state: &State, view: &View, theme: Theme) {
    for TableArea { kind, title, rows } in areas.tables(view.selected()) {
        let table = view.table(kind, state);
        lines(canvas, title, [Line::styled(kind.title(), theme.strong())]);
        let TablePosition { first, cursor } = view.position(kind);
        let cursor = (kind == view.selected()).then_some(cursor);
        table::draw(canvas, rows, (kind, &table), table::Position { first, cursor }, theme);
    }
}

/// Returns the last line: the filter, or the keys.
fn footer(view: &View, width: usize, theme: Theme) -> Line<'static> {
    let text = match view.filter() {
        Some(filter) if view.is_typing() => {
            format!("filter: {}_  Enter keep  Esc remove", visible(filter))
        }
        Some(filter) => format!("filter: {}  Esc remove  / change  Enter details", visible(filter)),
        None if view.details().is_some() => "Esc back  q quit".to_owned(),
        None => return Line::styled(cut(KEYS, width), theme.faint()),
    };
    Line::styled(cut(&text, width), theme.strong())
}

fn lines<const N: usize>(canvas: &mut Canvas<'_>, area: Rect, lines: [Line<'static>; N]) {
    for (line, row) in lines.into_iter().zip(area.rows()) {
        canvas.render_widget(line, row);
    }
}

fn help(canvas: &mut Canvas<'_>, area: Rect) {
    for (line, row) in HELP.iter().zip(area.rows()) {
        canvas.render_widget(Line::raw(cut(line, usize::from(row.width))), row);
    }
}

/// Returns the tabs: names of the tables and their number of rows.
fn tabs(state: &State, view: &View, theme: Theme) -> Line<'static> {
    let tab = |(index, kind): (usize, TableKind)| {
        let style = if kind == view.selected() { theme.selected() } else { theme.faint() };
        let rows = view.table(kind, state).rows.len();
        let name = kind.title().split(',').next().unwrap_or_default();
        [Span::styled(format!(" {} {name} ({rows}) ", index + 1), style), Span::raw(" ")]
    };
    Line::from(TableKind::ALL.into_iter().enumerate().flat_map(tab).collect::<Vec<_>>())
}

/// Returns the scroll range of the selected table on a screen of this size.
pub(super) fn scroll_range(size: Size, state: &State, view: &View) -> ScrollRange {
    let areas = Areas::split(Rect::from((Position::ORIGIN, size)));
    let tables = areas.tables(view.selected());
    let selected = tables.iter().find(|area| area.kind == view.selected());
    let height = selected.map(|area| area.rows.height);
    let page = table::rows_in(height.unwrap_or_default());
    let rows = view.table(view.selected(), view.visible_state(state)).rows.len();
    ScrollRange { rows, page }
}
