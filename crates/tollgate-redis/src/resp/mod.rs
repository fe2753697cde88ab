//! The Redis protocol (RESP2): encoding of commands, decoding of replies.

mod decode;
mod encode;
#[cfg(test)]
mod tests;

use std::fmt;

pub(crate) use decode::{Decoder, Malformed};
pub(crate) use encode::Command;

/// Default maximum of a reply, in bytes.
pub(crate) const REPLY_CAP: usize = 1024 * 1024;

/// A reply of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Reply {
    Simple(String),
    Integer(i64),
    Bulk(Vec<u8>),
    Null,
    Array(Vec<Reply>),
    Error(ErrorReply),
}

/// An error reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ErrorReply {
    /// The first word, such as `WRONGTYPE`.
    pub(crate) code: String,
    /// The whole line, including the code.
    pub(crate) message: String,
}

impl ErrorReply {
    pub(crate) fn new(message: String) -> Self {
        let code = message.split(' ').next().unwrap_or_default().to_owned();
        Self { code, message }
    }
}

impl fmt::Display for ErrorReply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}
