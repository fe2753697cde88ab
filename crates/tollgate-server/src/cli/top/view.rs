//! View settings of the screen, and the keys that change them.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::state::State;
use super::tables::TableKind;

/// Selected table, scroll positions, pause and help.
#[derive(Debug, Default)]
pub(super) struct View {
    /// Index of the selected table in [`TableKind::ALL`].
    selected: usize,
    /// Index of the first visible row of each table.
    first_rows: [usize; TableKind::ALL.len()],
    /// State at the time of the pause; none while live.
    paused: Option<Box<State>>,
    pub(super) shows_help: bool,
}

/// Scroll range of the selected table, in rows.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ScrollRange {
    /// Largest index of the first visible row.
    pub(super) max: usize,
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

    /// Returns the index of the first visible row of a table.
    pub(super) fn first_row(&self, kind: TableKind) -> usize {
        let index = TableKind::ALL.iter().position(|other| *other == kind);
        index.and_then(|index| self.first_rows.get(index)).copied().unwrap_or_default()
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
            KeyCode::Esc | KeyCode::Char('?') if self.shows_help => self.shows_help = false,
            KeyCode::Esc | KeyCode::Char('q') => return KeyAction::Quit,
            KeyCode::Char('?') => self.shows_help = true,
            KeyCode::Char('p' | ' ') => self.pause(state),
            KeyCode::Tab => self.selected = (self.selected + 1) % TableKind::ALL.len(),
            KeyCode::BackTab => {
                self.selected = (self.selected + TableKind::ALL.len() - 1) % TableKind::ALL.len();
            }
            KeyCode::Char(digit @ '1'..='4') => {
                self.selected = "1234".find(digit).unwrap_or_default();
            }
            code => self.scroll(code, range),
        }
        KeyAction::Continue
    }

    fn pause(&mut self, state: &State) {
        self.paused = match self.paused.take() {
            Some(_) => None,
            None => Some(Box::new(state.clone())),
        };
    }

    fn scroll(&mut self, code: KeyCode, range: ScrollRange) {
        let Some(first_row) = self.first_rows.get_mut(self.selected) else { return };
        let target = match code {
            KeyCode::Up | KeyCode::Char('k') => first_row.saturating_sub(1),
            KeyCode::Down | KeyCode::Char('j') => first_row.saturating_add(1),
            KeyCode::PageUp => first_row.saturating_sub(range.page),
            KeyCode::PageDown => first_row.saturating_add(range.page),
            KeyCode::Home => 0,
            KeyCode::End => range.max,
            _ => *first_row,
        };
        *first_row = target.min(range.max);
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    const RANGE: ScrollRange = ScrollRange { max: 7, page: 5 };

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
    fn scrolls_each_table_within_its_range() {
        let mut view = View::default();
        for (code, at) in [
            (KeyCode::Up, 0),
            (KeyCode::Down, 1),
            (KeyCode::PageDown, 6),
            (KeyCode::PageDown, 7),
            (KeyCode::Char('j'), 7),
            (KeyCode::Char('k'), 6),
            (KeyCode::Home, 0),
            (KeyCode::End, 7),
            (KeyCode::PageUp, 2),
        ] {
            press(&mut view, code);
            assert_eq!(view.first_row(TableKind::Refused), at, "{code:?}");
        }
        assert_eq!(view.first_row(TableKind::Nodes), 0);
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
