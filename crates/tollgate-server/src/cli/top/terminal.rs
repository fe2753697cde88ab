//! Event loop of the interactive screen.

use std::io;
use std::thread;
use std::time::Duration;

use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event};
use tokio::sync::mpsc::{self, Receiver};
use tokio::time::{MissedTickBehavior, interval};

use super::next;
use super::screen::{self, Theme};
use super::state::State;
use super::update::Message;
use super::view::{KeyAction, View};
use crate::cli::client::ClientError;

/// Number of key events that are buffered.
const KEY_BUFFER: usize = 64;

/// The terminal in raw mode. Dropping it restores the terminal; a panic restores it before its message is printed.
struct Session {
    terminal: DefaultTerminal,
}

impl Session {
    fn open() -> io::Result<Self> {
        match ratatui::try_init() {
            Ok(terminal) => Ok(Self { terminal }),
            Err(error) => {
                let _ = ratatui::try_restore();
                Err(error)
            }
        }
    }

    fn draw(&mut self, state: &State, view: &View, theme: Theme) -> io::Result<()> {
        self.terminal.draw(|canvas| screen::draw(canvas, state, view, theme)).map(drop)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let _ = self.terminal.show_cursor();
        let _ = ratatui::try_restore();
    }
}

/// Draws the state after every update, second and key, until the user quits.
pub(super) async fn watch(
    updates: &mut Receiver<Message>,
    mut state: State,
) -> Result<(), ClientError> {
    // A failure of the first connection is reported on the ordinary screen.
    state.apply(next(updates).await?.0);
    let cannot_draw =
        |error| ClientError::Usage(format!("cannot draw on this terminal: {error}; try --once"));
    let mut session = Session::open().map_err(cannot_draw)?;
    let mut keys = read_keys().map_err(cannot_draw)?;
    let mut seconds = interval(Duration::from_secs(1));
    seconds.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (mut view, theme) = (View::default(), Theme::new(has_colours()));
    loop {
        session.draw(&state, &view, theme).map_err(cannot_draw)?;
        tokio::select! {
            message = next(updates) => state.apply(message?.0),
            _ = seconds.tick() => state.tick(),
            event = keys.recv() => {
                let Some(event) = event.transpose().map_err(cannot_draw)? else { return Ok(()) };
                if handle(&event, &mut view, &state, &session).map_err(cannot_draw)? == KeyAction::Quit {
                    return Ok(());
                }
            }
        }
    }
}

/// Handles a key. Other events, such as a resize, need no action because the loop redraws everything.
fn handle(
    event: &Event,
    view: &mut View,
    state: &State,
    session: &Session,
) -> io::Result<KeyAction> {
    let Event::Key(key) = event else { return Ok(KeyAction::Continue) };
    let range = screen::scroll_range(session.terminal.size()?, state, view);
    Ok(view.press(*key, state, range))
}

/// Reads terminal events in a thread that runs until the process exits, because the read cannot be interrupted.
fn read_keys() -> io::Result<Receiver<io::Result<Event>>> {
    let (sender, keys) = mpsc::channel(KEY_BUFFER);
    thread::Builder::new().name("keys".to_owned()).spawn(move || {
        loop {
            let event = event::read();
            let is_last = event.is_err();
            if sender.blocking_send(event).is_err() || is_last {
                return;
            }
        }
    })?;
    Ok(keys)
}

/// Returns whether colours are enabled, as <https://no-color.org> specifies.
fn has_colours() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}
