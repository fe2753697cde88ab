//! Writing results to standard output.

use std::io::{self, Write};

/// Prints a result. A closed pipe is ignored; any other write error is reported on standard error.
/// Neither changes the exit code, because the operation itself is already done.
pub(super) fn print(text: &str) {
    match try_print(text) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
        Err(error) => eprintln!("tollgate: cannot write the result to standard output: {error}"),
    }
}

/// Prints a result and returns write errors, for commands that print until the reader stops.
pub(super) fn try_print(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush())
}
