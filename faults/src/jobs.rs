//! Rows at the same time: rows mostly wait, so together they take less time. Each runs in its own process, because the
//! panics of a process belong to the row that it runs.

use std::collections::VecDeque;
use std::env;
use std::io;
use std::process::{Command, Output, Stdio};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::thread;

use crate::cli::Arguments;
use crate::row::Row;
use crate::table;

/// Runs rows in child processes. Calls `finished` with each row, its line and whether it passes, in the order in which rows
/// finish.
///
/// # Errors
/// If this program cannot be started again.
pub fn run_all(
    rows: &[Row],
    arguments: &Arguments,
    mut finished: impl FnMut(&Row, String, bool),
) -> io::Result<()> {
    let queue = Mutex::new(rows.iter().collect::<VecDeque<_>>());
    let (sender, receiver) = channel();
    thread::scope(|scope| {
        for _ in 0..arguments.jobs {
            let (queue, sender) = (&queue, sender.clone());
            scope.spawn(move || work(queue, arguments, &sender));
        }
        drop(sender);
        for (row, output) in receiver {
            let output = output?;
            finished(row, line_of(row, &output), output.status.success());
        }
        Ok(())
    })
}

type Finished<'a> = (&'a Row, io::Result<Output>);

/// Runs rows of the queue until it is empty.
fn work<'a>(
    queue: &Mutex<VecDeque<&'a Row>>,
    arguments: &Arguments,
    finished: &Sender<Finished<'a>>,
) {
    loop {
        let next = queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        let Some(row) = next else { return };
        if finished.send((row, run(row, arguments))).is_err() {
            return;
        }
    }
}

/// Runs this program for one row.
fn run(row: &Row, arguments: &Arguments) -> io::Result<Output> {
    let mut command = Command::new(env::current_exe()?);
    command.arg(&arguments.tollgate).args(arguments.flags()).arg(row.number.to_string());
    command.stdin(Stdio::null()).stderr(Stdio::inherit()).output()
}

/// The table line of a row in the output of its process.
fn line_of(row: &Row, output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stdout);
    let begin = table::begin(row);
    let line = text.lines().find(|line| line.starts_with(&begin)).map(str::to_owned);
    line.unwrap_or_else(|| table::crashed(row, output.status))
}
