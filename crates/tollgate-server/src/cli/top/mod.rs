//! `tollgate top`: live view of a running service.
//!
//! A background task follows `/api/live` and sends updates; they change the [`State`], and the screen or the
//! summary is drawn from it.

mod details;
mod format;
mod health;
mod interrupt;
mod response;
mod rows;
#[cfg(test)]
mod sample;
mod screen;
mod state;
mod summary;
mod tables;
mod terminal;
mod text;
mod update;
mod view;

use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use clap::Args;
use tokio::runtime;
use tokio::sync::mpsc::{self, Receiver};
use tokio::time::timeout;

use super::failure::fail;
use super::request::token;
use super::stdout::{print, try_print};
use super::{Exit, ServerArgs};
use crate::cli::client::{ClientError, Server};
use interrupt::Interrupt;
use state::State;
use text::{json_line, visible};
use update::{Message, Update, follow};

/// Time to wait for the first frame before a one-time output fails.
const FIRST_FRAME_TIMEOUT: Duration = Duration::from_secs(30);

/// Number of updates that are buffered before the follower waits.
const UPDATE_BUFFER: usize = 16;

#[derive(Debug, Args)]
pub(crate) struct TopArgs {
    #[command(flatten)]
    server: ServerArgs,
    /// Print a summary of the current state and exit
    #[arg(long)]
    once: bool,
    /// Print one JSON object per second, one per line; with --once, print one and exit
    #[arg(long)]
    pub(super) json: bool,
}

/// Runs `tollgate top`.
pub(super) fn run(args: &TopArgs) -> Exit {
    let runtime = runtime::Builder::new_current_thread().enable_all().build();
    let result = match runtime {
        Ok(runtime) => runtime.block_on(watch(args)),
        Err(error) => Err(ClientError::NoAnswer(error.to_string())),
    };
    match result {
        Ok(()) => Exit::Success,
        Err(ClientError::Usage(reason)) => fail(Exit::Usage, &visible(&reason)),
        Err(ClientError::NoAnswer(reason)) => {
            let reason = visible(&reason);
            fail(Exit::NoAnswer, &format!("no response from {}: {reason}", args.server.server))
        }
    }
}

/// Writes to standard error and ignores failures, because the terminal may be closed.
fn print_error(text: &str) {
    let _ = writeln!(io::stderr(), "tollgate: {text}");
}

async fn watch(args: &TopArgs) -> Result<(), ClientError> {
    let (server, token) = (Server::from_args(&args.server)?, read_token()?);
    let mut interrupt = Interrupt::new().map_err(|error| ClientError::Usage(error.to_string()))?;
    let (sender, mut updates) = mpsc::channel(UPDATE_BUFFER);
    tokio::spawn(follow(server, token, sender));
    let state = State::new(&args.server.server);
    let output = async {
        if args.json {
            return print_frames(&mut updates, args.once).await;
        }
        if args.once || !can_draw() {
            return print_summary(&mut updates, state).await;
        }
        terminal::watch(&mut updates, state).await
    };
    tokio::select! {
        result = output => result,
        () = interrupt.wait() => Ok(()),
    }
}

/// Returns the read token, otherwise the admin token, which permits reading too.
fn read_token() -> Result<Option<String>, ClientError> {
    match token("TOLLGATE_READ_TOKEN", "TOLLGATE_READ_TOKEN_FILE")? {
        Some(token) => Ok(Some(token)),
        None => Ok(token("TOLLGATE_ADMIN_TOKEN", "TOLLGATE_ADMIN_TOKEN_FILE")?),
    }
}

fn can_draw() -> bool {
    io::stdout().is_terminal() && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

/// Receives the next message. The follower sends an error before it stops.
async fn next(updates: &mut Receiver<Message>) -> Message {
    let stopped = || Err(ClientError::NoAnswer("the follower task stopped".to_owned()));
    updates.recv().await.unwrap_or_else(stopped)
}

async fn print_summary(
    updates: &mut Receiver<Message>,
    mut state: State,
) -> Result<(), ClientError> {
    let first_frame = async {
        while state.frame.is_none() {
            state.apply(next(updates).await?.0);
        }
        Ok(())
    };
    within_timeout(first_frame).await?;
    print(&summary::summary(&state));
    Ok(())
}

/// Prints frames until the reader closes standard output.
async fn print_frames(updates: &mut Receiver<Message>, once: bool) -> Result<(), ClientError> {
    let mut is_first = true;
    loop {
        let frame = next_frame(updates);
        let frame = if is_first { within_timeout(frame).await? } else { frame.await? };
        is_first = false;
        match try_print(&format!("{}\n", json_line(&frame))) {
            Ok(()) if once => return Ok(()),
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(()),
            Err(error) => {
                print_error(&format!("cannot write the result to standard output: {error}"));
                return Ok(());
            }
        }
    }
}

async fn within_timeout<T>(
    first: impl Future<Output = Result<T, ClientError>>,
) -> Result<T, ClientError> {
    let seconds = FIRST_FRAME_TIMEOUT.as_secs();
    let late = |_| ClientError::NoAnswer(format!("no data within {seconds} s"));
    timeout(FIRST_FRAME_TIMEOUT, first).await.map_err(late)?
}

async fn next_frame(updates: &mut Receiver<Message>) -> Result<String, ClientError> {
    loop {
        match next(updates).await? {
            (Update::Frame(_), Some(event)) => return Ok(event.data),
            (Update::Lost(reason), _) => {
                print_error(&format!("reconnecting: {}", visible(&reason)));
            }
            _ => {}
        }
    }
}
