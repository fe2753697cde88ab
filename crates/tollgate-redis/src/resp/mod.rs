//! The protocol of Redis (RESP2): commands as they are written, replies as they are read.

mod decode;
mod encode;
#[cfg(test)]
mod tests;

use std::fmt;

pub(crate) use decode::{Decoder, Malformed};
pub(crate) use encode::Command;

/// How long a reply may be unless its command says otherwise.
pub(crate) const REPLY_CAP: usize = 1024 * 1024;

/// What a server answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Reply {
    Simple(String),
    Integer(i64),
    Bulk(Vec<u8>),
    Null,
    Array(Vec<Reply>),
    Error(ErrorReply),
}

/// An error that a server answers with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ErrorReply {
    /// The first word, such as `WRONGTYPE`.
    pub(crate) code: String,
    /// The whole line, the code included.
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
