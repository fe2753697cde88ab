//! The screen, as long as somebody looks at it.

use std::io;
use std::thread;
use std::time::Duration;

use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event};
use tokio::sync::mpsc::{self, Receiver};
use tokio::time::{MissedTickBehavior, interval};

use super::keys::{Pressed, View};
use super::next;
use super::screen::{self, Look};
use super::state::State;
use super::update::Heard;
use crate::client::AskError;

/// How many keys may be pressed before they are heeded.
const AHEAD: usize = 64;

/// The terminal while it is ours. It is given back whatever happens: on every way out of here, and before a panic
/// is told.
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

    fn draw(&mut self, state: &State, view: &View, look: Look) -> io::Result<()> {
        self.terminal.draw(|canvas| screen::draw(canvas, state, view, look)).map(drop)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let _ = self.terminal.show_cursor();
        let _ = ratatui::try_restore();
    }
}

/// Draws what is heard, until it is enough.
pub(super) async fn watch(heard: &mut Receiver<Heard>, mut state: State) -> Result<(), AskError> {
    // Who was never there is told of on an ordinary screen.
    state.apply(next(heard).await?.0);
    let cannot =
        |error| AskError::Usage(format!("cannot draw on this terminal: {error}; try --once"));
    let mut session = Session::open().map_err(cannot)?;
    let mut keys = keys().map_err(cannot)?;
    let mut seconds = interval(Duration::from_secs(1));
    seconds.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (mut view, look) = (View::default(), Look::new(has_colours()));
    loop {
        session.draw(&state, &view, look).map_err(cannot)?;
        tokio::select! {
            heard = next(heard) => state.apply(heard?.0),
            _ = seconds.tick() => state.tick(),
            event = keys.recv() => {
                let Some(event) = event.transpose().map_err(cannot)? else { return Ok(()) };
                if heed(&event, &mut view, &state, &session).map_err(cannot)? == Pressed::Quit {
                    return Ok(());
                }
            }
        }
    }
}

/// Any change of size is drawn, because everything is.
fn heed(event: &Event, view: &mut View, state: &State, session: &Session) -> io::Result<Pressed> {
    let Event::Key(key) = event else { return Ok(Pressed::GoOn) };
    let reach = screen::reach(session.terminal.size()?, state, view);
    Ok(view.press(*key, state, reach))
}

/// What is typed. It is waited for in a thread that ends with the process: nothing else can end the wait.
fn keys() -> io::Result<Receiver<io::Result<Event>>> {
    let (to, keys) = mpsc::channel(AHEAD);
    thread::Builder::new().name("keys".to_owned()).spawn(move || {
        loop {
            let event = event::read();
            let is_over = event.is_err();
            if to.blocking_send(event).is_err() || is_over {
                return;
            }
        }
    })?;
    Ok(keys)
}

/// As <https://no-color.org> has it.
fn has_colours() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}
