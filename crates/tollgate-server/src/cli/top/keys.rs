//! What is looked at, and the keys that change it.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::sheets::Kind;
use super::state::State;

/// What is looked at.
#[derive(Debug, Default)]
pub(super) struct View {
    /// Which table, as its place among all.
    focus: usize,
    /// The first row that is shown, of each table.
    scrolled: [usize; Kind::ALL.len()],
    /// What was known when it was paused.
    paused: Option<Box<State>>,
    pub(super) shows_help: bool,
}

/// How far the focused table can be scrolled, and by how much a page moves it.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Reach {
    pub(super) most: usize,
    pub(super) page: usize,
}

/// What becomes of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pressed {
    GoOn,
    Quit,
}

impl View {
    /// The table that keys are for.
    pub(super) fn focus(&self) -> Kind {
        Kind::ALL.get(self.focus).copied().unwrap_or(Kind::Refused)
    }

    /// The first row that is shown of a table.
    pub(super) fn scrolled(&self, kind: Kind) -> usize {
        let place = Kind::ALL.iter().position(|known| *known == kind);
        place.and_then(|place| self.scrolled.get(place)).copied().unwrap_or_default()
    }

    /// What is drawn: what is known, or was when it was paused.
    pub(super) fn of<'a>(&'a self, state: &'a State) -> &'a State {
        self.paused.as_deref().unwrap_or(state)
    }

    pub(super) fn is_paused(&self) -> bool {
        self.paused.is_some()
    }

    /// Does what a key says.
    pub(super) fn press(&mut self, key: KeyEvent, state: &State, reach: Reach) -> Pressed {
        if key.kind == KeyEventKind::Release {
            return Pressed::GoOn;
        }
        let is_held = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('c' | 'd') if is_held => return Pressed::Quit,
            KeyCode::Char(_) if is_held => {}
            KeyCode::Esc | KeyCode::Char('?') if self.shows_help => self.shows_help = false,
            KeyCode::Esc | KeyCode::Char('q') => return Pressed::Quit,
            KeyCode::Char('?') => self.shows_help = true,
            KeyCode::Char('p' | ' ') => self.pause(state),
            KeyCode::Tab => self.focus = (self.focus + 1) % Kind::ALL.len(),
            KeyCode::BackTab => {
                self.focus = (self.focus + Kind::ALL.len() - 1) % Kind::ALL.len();
            }
            KeyCode::Char(digit @ '1'..='4') => {
                self.focus = "1234".find(digit).unwrap_or_default();
            }
            code => self.scroll(code, reach),
        }
        Pressed::GoOn
    }

    fn pause(&mut self, state: &State) {
        self.paused = match self.paused.take() {
            Some(_) => None,
            None => Some(Box::new(state.clone())),
        };
    }

    fn scroll(&mut self, code: KeyCode, reach: Reach) {
        let Some(at) = self.scrolled.get_mut(self.focus) else { return };
        let to = match code {
            KeyCode::Up | KeyCode::Char('k') => at.saturating_sub(1),
            KeyCode::Down | KeyCode::Char('j') => at.saturating_add(1),
            KeyCode::PageUp => at.saturating_sub(reach.page),
            KeyCode::PageDown => at.saturating_add(reach.page),
            KeyCode::Home => 0,
            KeyCode::End => reach.most,
            _ => *at,
        };
        *at = to.min(reach.most);
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    const REACH: Reach = Reach { most: 7, page: 5 };

    fn press(view: &mut View, code: KeyCode) -> Pressed {
        view.press(KeyEvent::from(code), &sample::state(), REACH)
    }

    #[test]
    fn tables_are_chosen_by_name_and_in_turn() {
        let mut view = View::default();
        assert_eq!(view.focus(), Kind::Refused);
        for (code, kind) in [
            (KeyCode::Tab, Kind::Nodes),
            (KeyCode::Char('4'), Kind::Rules),
            (KeyCode::Tab, Kind::Refused),
            (KeyCode::BackTab, Kind::Rules),
            (KeyCode::Char('3'), Kind::Trials),
            (KeyCode::Char('9'), Kind::Trials),
        ] {
            assert_eq!(press(&mut view, code), Pressed::GoOn);
            assert_eq!(view.focus(), kind, "{code:?}");
        }
    }

    #[test]
    fn each_table_is_scrolled_by_itself_and_not_too_far() {
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
            assert_eq!(view.scrolled(Kind::Refused), at, "{code:?}");
        }
        assert_eq!(view.scrolled(Kind::Nodes), 0);
    }

    #[test]
    fn there_are_ways_out() {
        let control_c = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
        let state = sample::state();
        for key in [KeyCode::Char('q').into(), KeyCode::Esc.into(), control_c] {
            assert_eq!(View::default().press(key, &state, REACH), Pressed::Quit, "{key:?}");
        }
        let mut view = View::default();
        press(&mut view, KeyCode::Char('?'));
        assert!(view.shows_help);
        assert_eq!(press(&mut view, KeyCode::Esc), Pressed::GoOn);
        assert!(!view.shows_help);
    }

    #[test]
    fn a_pause_holds_what_was_known() {
        let (mut view, mut state) = (View::default(), sample::state());
        press(&mut view, KeyCode::Char('p'));
        state.frame = None;
        assert!(view.is_paused() && view.of(&state).frame.is_some());
        press(&mut view, KeyCode::Char('p'));
        assert!(!view.is_paused() && view.of(&state).frame.is_none());
    }
}
