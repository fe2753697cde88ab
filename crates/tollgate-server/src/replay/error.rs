//! Errors that end a replay.

use std::fmt;
use std::io;

/// Why a replay cannot continue: a file that cannot be read, or a log of an unknown format.
#[derive(Debug)]
pub(crate) struct ReplayError(String);

impl ReplayError {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }

    pub(super) fn of_file(name: &str, error: &io::Error) -> Self {
        Self(format!("{name}: cannot read the log: {error}"))
    }
}

impl fmt::Display for ReplayError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
