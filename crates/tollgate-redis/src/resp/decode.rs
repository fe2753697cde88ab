//! The decoder of replies.
//!
//! It reads every byte once: a reply in many pieces costs as much as in one. It allocates memory for received
//! bytes, not for the lengths that the server announces.

use std::mem;

use bytes::{Buf, BytesMut};
use thiserror::Error;

use super::{ErrorReply, Reply};

/// Maximum nesting of arrays. Replies of our programs are flat, listings have two levels.
const MAX_DEPTH: usize = 8;

/// A number with this many digits is always below 2^63.
const SHORT_DIGITS: usize = 18;

/// A buffer that has grown beyond this size is not kept, in bytes.
const MAX_KEPT_BUFFER: usize = 1024 * 1024;

/// Minimum free space in the buffer for a read from the socket, in bytes.
const READ_SIZE: usize = 16 * 1024;

/// Minimum length of a reply, in bytes.
const MIN_REPLY: usize = 3;

/// An invalid reply.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Error)]
pub(crate) enum Malformed {
    #[error("bytes that are not the Redis protocol")]
    Garbage,
    #[error("a reply of more than {0} bytes")]
    TooLong(usize),
    #[error("a reply with more than {MAX_DEPTH} levels")]
    TooDeep,
}

/// Decodes replies from a buffer that is filled from a socket.
#[derive(Debug, Default)]
pub(crate) struct Decoder {
    buffer: BytesMut,
    /// Number of decoded bytes in the buffer.
    position: usize,
    /// Number of bytes after `position` without an end of line.
    searched: usize,
    /// Number of bytes of the current reply that are no longer in the buffer.
    before: usize,
    /// The incomplete arrays, outermost first.
    open: Vec<OpenArray>,
}

#[derive(Debug)]
struct OpenArray {
    items: Vec<Reply>,
    length: usize,
}

/// The value or array that one line begins.
enum Part {
    Whole(Reply),
    Array(usize),
}

impl Decoder {
    /// Returns the buffer for bytes from the socket, with free space.
    pub(crate) fn buffer(&mut self) -> &mut BytesMut {
        self.buffer.reserve(READ_SIZE);
        &mut self.buffer
    }

    /// Whether no part of a reply has arrived.
    pub(crate) fn is_empty(&self) -> bool {
        self.buffer.is_empty() && self.open.is_empty()
    }

    /// Returns the number of items for which the incomplete arrays have memory.
    #[cfg(test)]
    pub(super) fn reserved_items(&self) -> usize {
        self.open.iter().map(|array| array.items.capacity()).sum()
    }

    /// Returns the next complete reply. After an error the decoder is unusable.
    pub(crate) fn next(&mut self, cap: usize) -> Result<Option<Reply>, Malformed> {
        let reply = self.read(cap)?;
        let size = self.before + self.position;
        self.buffer.advance(self.position);
        self.position = 0;
        self.before = if reply.is_some() { 0 } else { size };
        if reply.is_some() && size > MAX_KEPT_BUFFER && self.buffer.is_empty() {
            self.buffer = BytesMut::new();
        }
        Ok(reply)
    }

    fn read(&mut self, cap: usize) -> Result<Option<Reply>, Malformed> {
        loop {
            self.read_integers();
            let part = self.part(cap)?;
            // All bytes in the buffer belong to the incomplete reply.
            let end = if part.is_some() { self.position } else { self.buffer.len() };
            if self.before + end > cap {
                return Err(Malformed::TooLong(cap));
            }
            let reply = match part {
                None => return Ok(None),
                Some(Part::Whole(reply)) => self.push_reply(reply),
                Some(Part::Array(0)) => self.push_reply(Reply::Array(Vec::new())),
                Some(Part::Array(length)) => self.open_array(length, cap).map(|()| None)?,
            };
            if reply.is_some() {
                return Ok(reply);
            }
        }
    }

    fn open_array(&mut self, length: usize, cap: usize) -> Result<(), Malformed> {
        if length > cap / MIN_REPLY {
            return Err(Malformed::TooLong(cap));
        }
        if self.open.len() == MAX_DEPTH {
            return Err(Malformed::TooDeep);
        }
        let arrived = (self.buffer.len() - self.position) / MIN_REPLY;
        self.open.push(OpenArray { items: Vec::with_capacity(length.min(arrived)), length });
        Ok(())
    }

    /// Adds a reply to the innermost array, and each completed array to its parent.
    fn push_reply(&mut self, mut reply: Reply) -> Option<Reply> {
        while let Some(array) = self.open.last_mut() {
            array.items.push(reply);
            if array.items.len() < array.length {
                return None;
            }
            reply = Reply::Array(mem::take(&mut array.items));
            self.open.pop();
        }
        Some(reply)
    }

    /// Decodes short integers, except the last of an array, faster than [`Self::part`]. Most replies are arrays of
    /// integers.
    fn read_integers(&mut self) {
        let Some(array) = self.open.last_mut() else { return };
        let mut rest = self.buffer.get(self.position..).unwrap_or_default();
        while array.items.len() + 1 < array.length
            && let Some((value, after)) = short_integer(rest)
        {
            array.items.push(Reply::Integer(value));
            self.position += rest.len() - after.len();
            self.searched = 0;
            rest = after;
        }
    }

    /// Decodes the next part, if it has arrived.
    fn part(&mut self, cap: usize) -> Result<Option<Part>, Malformed> {
        let Some(rest) = self.buffer.get(self.position..) else { return Ok(None) };
        let Some((kind, text)) = rest.split_first() else { return Ok(None) };
        if !b"+-:$*_".contains(kind) {
            return Err(Malformed::Garbage);
        }
        let fresh = text.get(self.searched..).unwrap_or_default();
        let Some(found) = fresh.iter().position(|byte| *byte == b'\n') else {
            self.searched = text.len();
            return Ok(None);
        };
        let line = text.get(..self.searched + found).unwrap_or_default();
        let mut end = self.position + line.len() + 2;
        let line = line.strip_suffix(b"\r").ok_or(Malformed::Garbage)?;
        let part = match kind {
            b':' => Part::Whole(Reply::Integer(integer(line)?)),
            b'+' => Part::Whole(Reply::Simple(text_of(line))),
            b'-' => Part::Whole(Reply::Error(ErrorReply::new(text_of(line)))),
            b'*' => length(line)?.map_or(Part::Whole(Reply::Null), Part::Array),
            b'$' => match length(line)? {
                None => Part::Whole(Reply::Null),
                Some(length) if length > cap => return Err(Malformed::TooLong(cap)),
                Some(length) => match bulk(self.buffer.get(end..).unwrap_or_default(), length)? {
                    None => return Ok(None),
                    Some(bytes) => {
                        end += length + 2;
                        Part::Whole(Reply::Bulk(bytes))
                    }
                },
            },
            // The only remaining kind: null of RESP3.
            _ if line.is_empty() => Part::Whole(Reply::Null),
            _ => return Err(Malformed::Garbage),
        };
        (self.position, self.searched) = (end, 0);
        Ok(Some(part))
    }
}

/// Returns the string of this length, if it has arrived completely.
fn bulk(rest: &[u8], length: usize) -> Result<Option<Vec<u8>>, Malformed> {
    match (rest.get(..length), rest.get(length..length + 2)) {
        (Some(bytes), Some(b"\r\n")) => Ok(Some(bytes.to_vec())),
        (Some(_), Some(_)) => Err(Malformed::Garbage),
        _ => Ok(None),
    }
}

/// Parses a length. `None` is null.
fn length(line: &[u8]) -> Result<Option<usize>, Malformed> {
    match integer(line)? {
        -1 => Ok(None),
        length => usize::try_from(length).map(Some).map_err(|_| Malformed::Garbage),
    }
}

fn integer(line: &[u8]) -> Result<i64, Malformed> {
    let (is_negative, digits) = match line.split_first() {
        Some((b'-', digits)) => (true, digits),
        Some((b'+', digits)) => (false, digits),
        _ => (false, line),
    };
    if digits.is_empty() {
        return Err(Malformed::Garbage);
    }
    // A negative sum, because the range of negative numbers has one more value.
    let sum = digits.iter().try_fold(0_i64, |sum, digit| {
        let digit = digit.checked_sub(b'0').filter(|digit| *digit < 10)?;
        sum.checked_mul(10)?.checked_sub(i64::from(digit))
    });
    let value = if is_negative { sum } else { sum.and_then(i64::checked_neg) };
    value.ok_or(Malformed::Garbage)
}

/// Parses an integer that cannot overflow. Returns it and the rest after its line, else `None`.
fn short_integer(bytes: &[u8]) -> Option<(i64, &[u8])> {
    let digits = bytes.strip_prefix(b":")?;
    let (sign, digits) = digits.strip_prefix(b"-").map_or((1, digits), |digits| (-1, digits));
    let mut value = 0;
    for (index, byte) in digits.iter().take(SHORT_DIGITS + 1).enumerate() {
        match byte {
            b'0'..=b'9' if index < SHORT_DIGITS => value = value * 10 + i64::from(byte - b'0'),
            b'\r' if index > 0 => {
                return Some((sign * value, digits.get(index..)?.strip_prefix(b"\r\n")?));
            }
            _ => return None,
        }
    }
    None
}

fn text_of(line: &[u8]) -> String {
    String::from_utf8_lossy(line).into_owned()
}
