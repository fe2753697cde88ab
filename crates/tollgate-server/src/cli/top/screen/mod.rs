//! What is known, drawn: nothing here changes anything.

mod chart;
mod head;
mod look;
mod table;
#[cfg(test)]
mod tests;

use ratatui::Frame as Canvas;
use ratatui::layout::{Constraint, Layout, Position, Rect, Size};
use ratatui::text::{Line, Span};

use super::keys::{Reach, View};
use super::sheets::Kind;
use super::state::State;
use super::text::cut;
pub(super) use look::Look;

/// Room enough for all tables at once.
const ROOMY: Size = Size { width: 150, height: 24 };

const KEYS: &str = "q quit  Tab 1-4 table  ↑ ↓ scroll  p pause  ? help";

const HELP: [&str; 12] = [
    "q Esc Ctrl-C   quit",
    "Tab 1 2 3 4    choose a table",
    "↑ ↓ PgUp PgDn  scroll it; Home and End too",
    "p              pause, and go on",
    "? Esc          close this",
    "",
    "Figures are per second, over the last five, of what the first line names.",
    "Refused keys: at least so often in the last five minutes.",
    "SHADOW     a rule in mode shadow would have refused",
    "NEXT       the limits under next: would have refused",
    "DIVERGED   node and Redis decided differently",
    "·          a second that nobody told of",
];

/// Where things are. What there is no room for has none.
#[derive(Debug)]
struct Places {
    head: Rect,
    tiles: Rect,
    chart: Rect,
    tabs: Rect,
    table: Rect,
    foot: Rect,
}

/// Where a table is.
#[derive(Debug)]
struct Placed {
    kind: Kind,
    title: Rect,
    rows: Rect,
}

impl Places {
    fn of(area: Rect) -> Self {
        let height = area.height;
        let head = if height >= 9 { 3 } else { height.min(1) };
        let tiles = if height >= 4 { 2 } else { 0 };
        let foot = u16::from(height >= 12);
        let tabs = u16::from(height >= 6);
        let rest = height.saturating_sub(head + tiles + foot + tabs);
        let chart = if rest >= 10 { (rest / 3).clamp(4, 9) } else { 0 };
        let [head, tiles, chart, tabs, table, foot] = Layout::vertical([
            Constraint::Length(head),
            Constraint::Length(tiles),
            Constraint::Length(chart),
            Constraint::Length(tabs),
            Constraint::Fill(1),
            Constraint::Length(foot),
        ])
        .areas(area);
        Self { head, tiles, chart, tabs, table, foot }
    }

    /// Which tables are where, with titles of their own: all of them if there is room, else the one that keys are
    /// for, whose tab is title enough.
    fn tables(&self, focus: Kind) -> Vec<Placed> {
        let area = self.table;
        if area.width < ROOMY.width || area.height < ROOMY.height {
            return vec![Placed { kind: focus, title: Rect::default(), rows: area }];
        }
        let halves: [Rect; 2] = Layout::vertical([Constraint::Fill(1); 2]).spacing(1).areas(area);
        let quarters = halves.into_iter().flat_map(|half| -> [Rect; 2] {
            Layout::horizontal([Constraint::Fill(1); 2]).spacing(3).areas(half)
        });
        let placed = |(kind, area)| {
            let parts = Layout::vertical([Constraint::Length(1), Constraint::Fill(1)]);
            let [title, rows] = parts.areas(area);
            Placed { kind, title, rows }
        };
        Kind::ALL.into_iter().zip(quarters).map(placed).collect()
    }
}

/// Draws everything.
pub(super) fn draw(canvas: &mut Canvas<'_>, state: &State, view: &View, look: Look) {
    let places = Places::of(canvas.area());
    let state = view.of(state);
    let width = usize::from(places.head.width);
    let heads = [
        head::who(state, view.is_paused(), look),
        head::what(state, look),
        head::sentence(state, width, look),
    ];
    lines(canvas, places.head, heads);
    lines(canvas, places.tiles, head::tiles(state, width, look));
    if view.shows_help {
        return help(canvas, places.chart.union(places.tabs).union(places.table));
    }
    chart::draw(canvas, places.chart, state, look);
    lines(canvas, places.tabs, [tabs(state, view, look)]);
    for Placed { kind, title, rows } in places.tables(view.focus()) {
        let sheet = kind.sheet(state);
        lines(canvas, title, [Line::styled(kind.title(), look.strong())]);
        table::draw(canvas, rows, (kind, &sheet), view.scrolled(kind), look);
    }
    lines(canvas, places.foot, [Line::styled(cut(KEYS, width), look.faint())]);
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

/// The names of the tables, with how much is in them.
fn tabs(state: &State, view: &View, look: Look) -> Line<'static> {
    let tab = |(at, kind): (usize, Kind)| {
        let style = if kind == view.focus() { look.chosen() } else { look.faint() };
        let rows = kind.sheet(state).rows.len();
        let name = kind.title().split(',').next().unwrap_or_default();
        [Span::styled(format!(" {} {name} ({rows}) ", at + 1), style), Span::raw(" ")]
    };
    Line::from(Kind::ALL.into_iter().enumerate().flat_map(tab).collect::<Vec<_>>())
}

/// How far the table that keys are for can be scrolled on a screen of this size.
pub(super) fn reach(size: Size, state: &State, view: &View) -> Reach {
    let places = Places::of(Rect::from((Position::ORIGIN, size)));
    let tables = places.tables(view.focus());
    let focused = tables.iter().find(|placed| placed.kind == view.focus());
    let height = focused.map(|placed| placed.rows.height);
    let page = table::rows_in(height.unwrap_or_default());
    let rows = view.focus().sheet(view.of(state)).rows.len();
    Reach { most: rows.saturating_sub(page), page }
}
