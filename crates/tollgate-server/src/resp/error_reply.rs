//! Error replies: those of the service by the table of statuses, and those of Redis in its words.

use std::borrow::Cow;
use std::fmt;

use super::decode::Arguments;
use crate::error::ApiError;

/// Maximum length in bytes of the parts of a command that an error repeats.
pub(super) const MAX_QUOTED: usize = 128;

/// An error reply, which starts with its prefix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ErrorReply(Cow<'static, str>);

impl ErrorReply {
    pub(super) const fn fixed(text: &'static str) -> Self {
        Self(Cow::Borrowed(text))
    }

    pub(super) fn new(text: impl Into<String>) -> Self {
        Self(Cow::Owned(text.into()))
    }

    /// An error of `CL.THROTTLE` or `THROTTLE`, with the prefix of redis-cell.
    pub(super) fn cell(text: &(impl fmt::Display + ?Sized)) -> Self {
        Self::new(format!("Cell error: {text}"))
    }

    /// The reply of Redis to a command that it does not have.
    pub(super) fn unknown_command(arguments: &Arguments<'_>) -> Self {
        let mut shown = String::new();
        for argument in arguments.from(1) {
            if shown.len() >= MAX_QUOTED {
                break;
            }
            shown.push_str(&format!("'{}' ", quoted(argument, MAX_QUOTED - shown.len())));
        }
        let name = quoted(arguments.name(), MAX_QUOTED);
        Self::new(format!("ERR unknown command '{name}', with args beginning with: {shown}"))
    }

    /// The reply of Redis to a subcommand that it does not have.
    pub(super) fn unknown_subcommand(command: &str, subcommand: &[u8]) -> Self {
        let (shown, command) = (quoted(subcommand, MAX_QUOTED), command.to_ascii_uppercase());
        Self::new(format!("ERR unknown subcommand '{shown}'. Try {command} HELP."))
    }

    /// The reply of Redis to a wrong number of arguments.
    pub(super) fn wrong_arity(command: &str) -> Self {
        Self::new(format!("ERR wrong number of arguments for '{command}' command"))
    }
}

impl fmt::Display for ErrorReply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Errors of the service have the prefix that the table of statuses defines.
impl From<ApiError> for ErrorReply {
    fn from(error: ApiError) -> Self {
        Self::new(format!("{} {error}", error.kind().statuses().resp))
    }
}

/// Returns the start of an argument for an error: at most `max` bytes, and nothing after a NUL, as Redis.
pub(super) fn quoted(argument: &[u8], max: usize) -> String {
    let until_nul = argument.split(|byte| *byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(until_nul.get(..max).unwrap_or(until_nul)).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ApiErrorKind::{
        Conflict, Forbidden, Incompatible, Internal, Invalid, NotFound, Overloaded, TokenMissing,
        TooMany, Unauthorized, Unavailable, Unprocessable, Unsupported,
    };

    #[test]
    fn prefixes_are_those_of_the_table_and_are_never_retried() {
        let retried = ["LOADING", "TRYAGAIN", "BUSY", "CLUSTERDOWN", "READONLY", "MOVED", "ASK"];
        for (kind, expected) in [
            (Invalid, "ERR"),
            (TokenMissing, "NOAUTH"),
            (Unauthorized, "WRONGPASS"),
            (Forbidden, "NOPERM"),
            (NotFound, "ERR"),
            (Conflict, "ERR"),
            (Unprocessable, "ERR"),
            (TooMany, "ERR"),
            (Unavailable, "UNAVAILABLE"),
            (Overloaded, "OVERLOADED"),
            (Incompatible, "ERR"),
            (Unsupported, "ERR"),
            (Internal, "ERR"),
        ] {
            let reply = ErrorReply::from(ApiError::new(kind, "text")).to_string();
            assert_eq!(reply, format!("{expected} text"));
            assert!(retried.iter().all(|prefix| !reply.starts_with(prefix)), "{reply}");
        }
    }
}
