//! View settings of the screen, and the keys that change them.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::state::State;
use super::tables::{Row, Table, TableKind};

/// Maximum length of the filter, in characters.
const MAX_FILTER: usize = 64;

/// Selected table and row, filter, pause, help and details.
#[derive(Debug, Default)]
pub(super) struct View {
    /// Index of the selected table in [`TableKind::ALL`].
    selected: usize,
    /// Position in each table.
    positions: [TablePosition; TableKind::ALL.len()],
    /// Text that the shown rows contain; empty for all rows.
    filter: String,
    input: Input,
    /// State at the time of the pause; none while live.
    paused: Option<Box<State>>,
    pub(super) shows_help: bool,
    /// Row whose details are shown.
    details: Option<Row>,
}

/// What the keys do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Input {
    /// They are commands.
    #[default]
    Commands,
    /// They are the text of the filter.
    Filter,
}

/// Position in a table, in rows.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct TablePosition {
    /// Index of the first visible row.
    pub(super) first: usize,
    /// Index of the selected row.
    pub(super) cursor: usize,
}

/// Size of the selected table, in rows.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ScrollRange {
    /// Number of rows that the filter leaves.
    pub(super) rows: usize,
    /// Number of rows per page.
    pub(super) page: usize,
}

/// Result of a key press.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeyAction {
    Continue,
    Quit,
}

impl View {
    /// Returns the selected table.
    pub(super) fn selected(&self) -> TableKind {
        TableKind::ALL.get(self.selected).copied().unwrap_or(TableKind::Refused)
    }

    /// Returns the position in a table.
    pub(super) fn position(&self, kind: TableKind) -> TablePosition {
        let index = TableKind::ALL.iter().position(|other| *other == kind);
        index.and_then(|index| self.positions.get(index)).copied().unwrap_or_default()
    }

    /// Returns a table with the rows that the filter leaves.
    pub(super) fn table(&self, kind: TableKind, state: &State) -> Table {
        kind.table(state).filtered(&self.filter)
    }

    /// Returns the row whose details are shown.
    pub(super) fn details(&self) -> Option<&Row> {
        self.details.as_ref()
    }

    /// Returns the filter, if there is one or if it is being typed.
    pub(super) fn filter(&self) -> Option<&str> {
        (self.is_typing() || !self.filter.is_empty()).then_some(&self.filter)
    }

    /// Returns whether the keys change the filter.
    pub(super) fn is_typing(&self) -> bool {
        self.input == Input::Filter
    }

    /// Returns the state to draw: the current one, or the one at the time of the pause.
    pub(super) fn visible_state<'a>(&'a self, state: &'a State) -> &'a State {
        self.paused.as_deref().unwrap_or(state)
    }

    pub(super) fn is_paused(&self) -> bool {
        self.paused.is_some()
    }

    /// Handles a key press.
    pub(super) fn press(&mut self, key: KeyEvent, state: &State, range: ScrollRange) -> KeyAction {
        if key.kind == KeyEventKind::Release {
            return KeyAction::Continue;
        }
        let has_control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('c' | 'd') if has_control => return KeyAction::Quit,
            KeyCode::Char(_) if has_control => {}
            code if self.is_typing() => self.type_filter(code),
            KeyCode::Char('q') => return KeyAction::Quit,
            KeyCode::Esc if !self.leave() => return KeyAction::Quit,
            KeyCode::Char('?') => self.shows_help = !self.shows_help,
            KeyCode::Char('/') => (self.input, self.details) = (Input::Filter, None),
            KeyCode::Enter => self.toggle_details(state),
            KeyCode::Char('p' | ' ') => self.pause(state),
            KeyCode::Tab => self.select((self.selected + 1) % TableKind::ALL.len()),
            KeyCode::BackTab => {
                self.select((self.selected + TableKind::ALL.len() - 1) % TableKind::ALL.len());
            }
            KeyCode::Char(digit @ '1'..='4') => self.select("1234".find(digit).unwrap_or_default()),
            code => self.scroll(code, range),
        }
        KeyAction::Continue
    }

    fn select(&mut self, index: usize) {
        (self.selected, self.details) = (index, None);
    }

    /// Closes the help or the details, or removes the filter. Returns whether one of them was there.
    fn leave(&mut self) -> bool {
        if self.shows_help {
            self.shows_help = false;
        } else if self.details.is_some() {
            self.details = None;
        } else if !self.filter.is_empty() {
            self.set_filter(String::new());
        } else {
            return false;
        }
        true
    }

    fn type_filter(&mut self, code: KeyCode) {
        let mut filter = self.filter.clone();
        match code {
            KeyCode::Enter => self.input = Input::Commands,
            KeyCode::Esc => {
                filter.clear();
                self.input = Input::Commands;
            }
            KeyCode::Backspace => drop(filter.pop()),
            KeyCode::Char(letter) if filter.chars().count() < MAX_FILTER => filter.push(letter),
            _ => {}
        }
        self.set_filter(filter);
    }

    /// Changes the filter. Other rows are shown then, from the first on.
    fn set_filter(&mut self, filter: String) {
        if filter != self.filter {
            (self.filter, self.positions) = (filter, Default::default());
        }
    }

    fn toggle_details(&mut self, state: &State) {
        self.details = match self.details.take() {
            Some(_) => None,
            None => {
                let kind = self.selected();
                let mut rows = self.table(kind, self.visible_state(state)).rows;
                let cursor = self.position(kind).cursor.min(rows.len().saturating_sub(1));
                (cursor < rows.len()).then(|| rows.swap_remove(cursor))
            }
        };
    }

    fn pause(&mut self, state: &State) {
        self.paused = match self.paused.take() {
            Some(_) => None,
            None => Some(Box::new(state.clone())),
        };
    }

    /// Moves the cursor, and scrolls so that it is visible.
    fn scroll(&mut self, code: KeyCode, range: ScrollRange) {
        let Some(position) = self.positions.get_mut(self.selected) else { return };
        let last = range.rows.saturating_sub(1);
        let cursor = position.cursor.min(last);
        let cursor = match code {
            KeyCode::Up | KeyCode::Char('k') => cursor.saturating_sub(1),
            KeyCode::Down | KeyCode::Char('j') => cursor.saturating_add(1),
            KeyCode::PageUp => cursor.saturating_sub(range.page),
            KeyCode::PageDown => cursor.saturating_add(range.page),
            KeyCode::Home => 0,
            KeyCode::End => last,
            _ => return,
        };
        let cursor = cursor.min(last);
        let lowest = (cursor + 1).saturating_sub(range.page);
        *position = TablePosition { first: position.first.clamp(lowest, cursor), cursor };
        self.details = None;
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    const RANGE: ScrollRange = ScrollRange { rows: 8, page: 5 };

    fn press(view: &mut View, code: KeyCode) -> KeyAction {
        view.press(KeyEvent::from(code), &sample::state(), RANGE)
    }

    #[test]
    fn selects_tables_by_digit_and_tab() {
        let mut view = View::default();
        assert_eq!(view.selected(), TableKind::Refused);
        for (code, kind) in [
            (KeyCode::Tab, TableKind::Nodes),
            (KeyCode::Char('4'), TableKind::Rules),
            (KeyCode::Tab, TableKind::Refused),
            (KeyCode::BackTab, TableKind::Rules),
            (KeyCode::Char('3'), TableKind::Trials),
            (KeyCode::Char('9'), TableKind::Trials),
        ] {
            assert_eq!(press(&mut view, code), KeyAction::Continue);
            assert_eq!(view.selected(), kind, "{code:?}");
        }
    }

    #[test]
    fn cursor_stays_in_the_table_and_visible() {
        let mut view = View::default();
        for (code, at) in [
            (KeyCode::Up, (0, 0)),
            (KeyCode::Down, (0, 1)),
            (KeyCode::PageDown, (2, 6)),
            (KeyCode::PageDown, (3, 7)),
            (KeyCode::Char('j'), (3, 7)),
            (KeyCode::Char('k'), (3, 6)),
            (KeyCode::Home, (0, 0)),
            (KeyCode::End, (3, 7)),
            (KeyCode::PageUp, (2, 2)),
        ] {
            press(&mut view, code);
            let position = view.position(TableKind::Refused);
            assert_eq!((position.first, position.cursor), at, "{code:?}");
        }
        assert_eq!(view.position(TableKind::Nodes).cursor, 0);
    }

    #[test]
    fn filter_is_typed_kept_and_removed() {
        let (mut view, state) = (View::default(), sample::state());
        let keys = |view: &mut View, text: &str| {
            for letter in text.chars() {
                press(view, KeyCode::Char(letter));
            }
        };
        keys(&mut view, "/q1");
        assert_eq!(view.filter(), Some("q1"));
        assert_eq!(view.table(TableKind::Refused, &state).rows.len(), 0);
        press(&mut view, KeyCode::Backspace);
        press(&mut view, KeyCode::Backspace);
        keys(&mut view, "acme");
        press(&mut view, KeyCode::Enter);
        assert!(!view.is_typing());
        assert_eq!(view.table(TableKind::Refused, &state).rows.len(), 1);
        assert_eq!(press(&mut view, KeyCode::Esc), KeyAction::Continue);
        assert_eq!(view.filter(), None);
        assert_eq!(press(&mut view, KeyCode::Esc), KeyAction::Quit);
        let mut view = View::default();
        keys(&mut view, &format!("/{}", "x".repeat(100)));
        assert_eq!(view.filter().map(str::len), Some(MAX_FILTER));
        press(&mut view, KeyCode::Esc);
        assert_eq!(view.filter(), None);
    }

    #[test]
    fn enter_shows_details_of_the_selected_row() {
        let mut view = View::default();
        press(&mut view, KeyCode::Down);
        press(&mut view, KeyCode::Enter);
        assert_eq!(view.details().unwrap().cells[0], "12");
        assert_eq!(press(&mut view, KeyCode::Esc), KeyAction::Continue);
        assert!(view.details().is_none());
        press(&mut view, KeyCode::Enter);
        press(&mut view, KeyCode::Tab);
        assert!(view.details().is_none());
        let mut view = View::default();
        view.press(KeyEvent::from(KeyCode::Enter), &State::new("x"), ScrollRange::default());
        assert!(view.details().is_none());
    }

    #[test]
    fn quits_on_q_escape_and_control_c() {
        let control_c = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
        let state = sample::state();
        for key in [KeyCode::Char('q').into(), KeyCode::Esc.into(), control_c] {
            assert_eq!(View::default().press(key, &state, RANGE), KeyAction::Quit, "{key:?}");
        }
        let mut view = View::default();
        press(&mut view, KeyCode::Char('?'));
        assert!(view.shows_help);
        assert_eq!(press(&mut view, KeyCode::Esc), KeyAction::Continue);
        assert!(!view.shows_help);
    }

    #[test]
    fn pause_keeps_the_state() {
        let (mut view, mut state) = (View::default(), sample::state());
        press(&mut view, KeyCode::Char('p'));
        state.frame = None;
        assert!(view.is_paused() && view.visible_state(&state).frame.is_some());
        press(&mut view, KeyCode::Char('p'));
        assert!(!view.is_paused() && view.visible_state(&state).frame.is_none());
    }
}
