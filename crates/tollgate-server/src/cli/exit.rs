//! Exit codes.

use std::process::ExitCode;

/// Result of a command, shown as its exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// 0: the command succeeded; `check`: the request is allowed.
    Success,
    /// 1: `check`: the request is refused; `override`: the client has no override; `policy import`: a file cannot be
    /// imported.
    Refused,
    /// 2: invalid input: a flag, a file, a line or a token.
    Usage,
    /// 3: no usable response from the service.
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
