//! `tollgate top`: what a service does, while it does it. Events change what is known, and what is known is drawn.

mod figures;
mod health;
mod interrupt;
mod keys;
mod live;
mod plain;
mod response;
#[cfg(test)]
mod sample;
mod screen;
mod sheets;
mod state;
mod text;
mod update;

use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use clap::Args;
use tokio::runtime;
use tokio::sync::mpsc::{self, Receiver};
use tokio::time::timeout;

use super::asking::token;
use super::stdout::{say, try_say};
use super::{Exit, ServerArgs};
use crate::client::{AskError, Server};
use interrupt::Interrupt;
use state::State;
use text::{json_line, visible};
use update::{Heard, Update, follow};

/// How long a first frame may take to come when only that is wanted.
const PATIENCE: Duration = Duration::from_secs(30);

/// How much may be heard before it is looked at.
const AHEAD: usize = 16;

#[derive(Debug, Args)]
pub(crate) struct TopArgs {
    #[command(flatten)]
    server: ServerArgs,
    /// Print a summary of how things are now, and end
    #[arg(long)]
    once: bool,
    /// Print what the service tells each second, one JSON object a line; with --once, one
    #[arg(long)]
    json: bool,
}

/// Runs `tollgate top`.
pub(super) fn run(args: &TopArgs) -> Exit {
    let runtime = runtime::Builder::new_current_thread().enable_all().build();
    let watched = match runtime {
        Ok(runtime) => runtime.block_on(watch(args)),
        Err(error) => Err(AskError::NoAnswer(error.to_string())),
    };
    match watched {
        Ok(()) => Exit::Success,
        Err(AskError::Usage(reason)) => {
            complain(&visible(&reason));
            Exit::Usage
        }
        Err(AskError::NoAnswer(reason)) => {
            complain(&format!("no answer from {}: {}", args.server.server, visible(&reason)));
            Exit::NoAnswer
        }
    }
}

/// On standard error, which may be a terminal that is gone.
fn complain(text: &str) {
    let _ = writeln!(io::stderr(), "tollgate: {text}");
}

async fn watch(args: &TopArgs) -> Result<(), AskError> {
    let (server, token) = (Server::of(&args.server)?, read_token()?);
    let mut interrupt = Interrupt::new().map_err(|error| AskError::Usage(error.to_string()))?;
    let (to, mut heard) = mpsc::channel(AHEAD);
    tokio::spawn(follow(server, token, to));
    let state = State::new(&args.server.server);
    let watched = async {
        if args.json {
            return print_frames(&mut heard, args.once).await;
        }
        if args.once || !can_draw() {
            return print_summary(&mut heard, state).await;
        }
        live::watch(&mut heard, state).await
    };
    tokio::select! {
        ended = watched => ended,
        () = interrupt.wait() => Ok(()),
    }
}

/// The token for those who look, else that of administrators, who may look too.
fn read_token() -> Result<Option<String>, AskError> {
    match token("TOLLGATE_READ_TOKEN", "TOLLGATE_READ_TOKEN_FILE")? {
        Some(token) => Ok(Some(token)),
        None => Ok(token("TOLLGATE_ADMIN_TOKEN", "TOLLGATE_ADMIN_TOKEN_FILE")?),
    }
}

fn can_draw() -> bool {
    io::stdout().is_terminal() && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

/// What comes next; nobody ends without saying why.
async fn next(heard: &mut Receiver<Heard>) -> Heard {
    let silent = || Err(AskError::NoAnswer("nothing is heard any more".to_owned()));
    heard.recv().await.unwrap_or_else(silent)
}

async fn print_summary(heard: &mut Receiver<Heard>, mut state: State) -> Result<(), AskError> {
    let known = async {
        while state.frame.is_none() {
            state.apply(next(heard).await?.0);
        }
        Ok(())
    };
    in_time(known).await?;
    say(&plain::summary(&state));
    Ok(())
}

/// Prints frames until nobody reads them.
async fn print_frames(heard: &mut Receiver<Heard>, once: bool) -> Result<(), AskError> {
    let mut is_first = true;
    loop {
        let frame = next_frame(heard);
        let frame = if is_first { in_time(frame).await? } else { frame.await? };
        is_first = false;
        match try_say(&format!("{}\n", json_line(&frame))) {
            Ok(()) if once => return Ok(()),
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(()),
            Err(error) => {
                complain(&format!("the result could not be written: {error}"));
                return Ok(());
            }
        }
    }
}

async fn in_time<T>(first: impl Future<Output = Result<T, AskError>>) -> Result<T, AskError> {
    let late = |_| AskError::NoAnswer(format!("no figures within {} s", PATIENCE.as_secs()));
    timeout(PATIENCE, first).await.map_err(late)?
}

async fn next_frame(heard: &mut Receiver<Heard>) -> Result<String, AskError> {
    loop {
        match next(heard).await? {
            (Update::Frame(_), Some(event)) => return Ok(event.data),
            (Update::Lost(reason), _) => complain(&format!("reconnecting: {}", visible(&reason))),
            _ => {}
        }
    }
}
