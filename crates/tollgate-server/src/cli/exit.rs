//! How a command ends.

use std::process::ExitCode;

/// What a command's exit code says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Done; of a check: allowed.
    Success,
    /// A check was refused.
    Refused,
    /// The question was wrong: a flag, a file, a line.
    Usage,
    /// Nobody answered.
    NoAnswer,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Success => 0,
            Exit::Refused => 1,
            Exit::Usage => 2,
            Exit::NoAnswer => 3,
        })
    }
}
