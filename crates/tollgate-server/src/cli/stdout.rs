//! Results on standard output.

use std::io::{self, Write};

/// Prints a result. Where nobody reads any more, that is nobody's fault; where it cannot be written, that
/// is told on standard error. Neither changes what has happened, so neither changes the exit code.
pub(super) fn say(text: &str) {
    match try_say(text) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
        Err(error) => eprintln!("tollgate: the result could not be written: {error}"),
    }
}

/// The same, for who goes on talking and wants to know whether anybody reads.
pub(super) fn try_say(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush())
}
