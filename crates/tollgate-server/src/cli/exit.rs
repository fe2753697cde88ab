//! Exit codes.

use std::process::ExitCode;

/// Result of a command, shown as its exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// 0: the command succeeded; `check`: the request is allowed.
    Success,
    /// 1: `check` and `reserve`: the request is refused; `settle`: the reservation is unknown; `override`: the client has no override; `policy import`: a file cannot be
    /// imported.
    Refused,
    /// 2: invalid input: a flag, a file, a line or a token.
    Usage,
    /// 3: no usable response from the service.
    NoAnswer,
}

impl Exit {
    /// Returns the exit code.
    pub(super) const fn code(self) -> u8 {
        match self {
            Self::Success => 0,
            Self::Refused => 1,
            Self::Usage => 2,
            Self::NoAnswer => 3,
        }
    }

    /// Returns the `kind` of a failure in JSON.
    pub(super) const fn failure_kind(self) -> &'static str {
        match self {
            Self::Success => "none",
            Self::Refused => "not_found",
            Self::Usage => "usage",
            Self::NoAnswer => "no_response",
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}
