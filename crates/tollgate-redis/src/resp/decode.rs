//! Replies, read as they arrive.
//!
//! What has been read is never read again: a reply that comes in many pieces costs what it costs in one.
//! Memory is taken for bytes that have come, not for lengths that the peer claims.

use std::mem;

use bytes::{Buf, BytesMut};
use thiserror::Error;

use super::{ErrorReply, Reply};

/// How deep arrays may lie in arrays. Ours are flat, listings two deep.
const DEPTH: usize = 8;

/// So many digits are always less than 2^63.
const SHORT: usize = 18;

/// A buffer that a longer reply than this has stretched is not kept.
const KEPT: usize = 1024 * 1024;

/// How much there is room for at least when a socket is read.
const CHUNK: usize = 16 * 1024;

/// The fewest bytes that a reply can have.
const SHORTEST: usize = 3;

/// Why bytes are not a reply that we take.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(crate) enum Malformed {
    #[error("something that is not the Redis protocol")]
    Garbage,
    #[error("a reply of more than {0} bytes")]
    TooLong(usize),
    #[error("a reply nested more than {DEPTH} deep")]
    TooDeep,
}

/// Reads replies out of a buffer that is filled from a socket.
#[derive(Debug, Default)]
pub(crate) struct Decoder {
    buffer: BytesMut,
    /// How much of the buffer has been read.
    at: usize,
    /// How far beyond that an end of line has been looked for in vain.
    searched: usize,
    /// How many bytes the reply has had before those in the buffer.
    before: usize,
    /// The arrays whose items are still coming, outermost first.
    open: Vec<OpenArray>,
}

#[derive(Debug)]
struct OpenArray {
    items: Vec<Reply>,
    length: usize,
}

/// What one line begins.
enum Part {
    Whole(Reply),
    Array(usize),
}

impl Decoder {
    /// Where what is read from the socket belongs, with room for it.
    pub(crate) fn buffer(&mut self) -> &mut BytesMut {
        self.buffer.reserve(CHUNK);
        &mut self.buffer
    }

    /// Whether not even a part of a reply has come.
    pub(crate) fn is_empty(&self) -> bool {
        self.buffer.is_empty() && self.open.is_empty()
    }

    /// The next reply, if it has come whole. After an error nothing that follows makes sense.
    pub(crate) fn next(&mut self, cap: usize) -> Result<Option<Reply>, Malformed> {
        let reply = self.read(cap)?;
        let size = self.before + self.at;
        self.buffer.advance(self.at);
        self.at = 0;
        self.before = if reply.is_some() { 0 } else { size };
        if reply.is_some() && size > KEPT && self.buffer.is_empty() {
            self.buffer = BytesMut::new();
        }
        Ok(reply)
    }

    fn read(&mut self, cap: usize) -> Result<Option<Reply>, Malformed> {
        loop {
            self.read_integers();
            let part = self.part(cap)?;
            // Of an unfinished reply all that has come counts: whatever is in the buffer is part of it.
            let end = if part.is_some() { self.at } else { self.buffer.len() };
            if self.before + end > cap {
                return Err(Malformed::TooLong(cap));
            }
            let whole = match part {
                None => return Ok(None),
                Some(Part::Whole(reply)) => self.place(reply),
                Some(Part::Array(0)) => self.place(Reply::Array(Vec::new())),
                Some(Part::Array(length)) => self.begin_array(length, cap).map(|()| None)?,
            };
            if whole.is_some() {
                return Ok(whole);
            }
        }
    }

    fn begin_array(&mut self, length: usize, cap: usize) -> Result<(), Malformed> {
        if length > cap / SHORTEST {
            return Err(Malformed::TooLong(cap));
        }
        if self.open.len() == DEPTH {
            return Err(Malformed::TooDeep);
        }
        let come = (self.buffer.len() - self.at) / SHORTEST;
        self.open.push(OpenArray { items: Vec::with_capacity(length.min(come)), length });
        Ok(())
    }

    /// Puts a reply into the array that waits for it, and that one into its own if it was the last.
    fn place(&mut self, mut reply: Reply) -> Option<Reply> {
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

    /// Most replies are arrays of integers: this reads those that have come, but the last of an array,
    /// quicker than [`Self::part`], which reads whatever this does not.
    fn read_integers(&mut self) {
        let Some(array) = self.open.last_mut() else { return };
        let mut rest = self.buffer.get(self.at..).unwrap_or_default();
        while array.items.len() + 1 < array.length
            && let Some((value, after)) = short_integer(rest)
        {
            array.items.push(Reply::Integer(value));
            self.at += rest.len() - after.len();
            self.searched = 0;
            rest = after;
        }
    }

    /// The next part, if it has come.
    fn part(&mut self, cap: usize) -> Result<Option<Part>, Malformed> {
        let Some(rest) = self.buffer.get(self.at..) else { return Ok(None) };
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
        let mut end = self.at + line.len() + 2;
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
            // The null of RESP3, the one kind left.
            _ if line.is_empty() => Part::Whole(Reply::Null),
            _ => return Err(Malformed::Garbage),
        };
        (self.at, self.searched) = (end, 0);
        Ok(Some(part))
    }
}

/// The string of this length, if it has come with its end.
fn bulk(rest: &[u8], length: usize) -> Result<Option<Vec<u8>>, Malformed> {
    match (rest.get(..length), rest.get(length..length + 2)) {
        (Some(bytes), Some(b"\r\n")) => Ok(Some(bytes.to_vec())),
        (Some(_), Some(_)) => Err(Malformed::Garbage),
        _ => Ok(None),
    }
}

/// A length, or none for what is null.
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
    // Summed up below zero, where there is room for one more.
    let sum = digits.iter().try_fold(0_i64, |sum, digit| {
        let digit = digit.checked_sub(b'0').filter(|digit| *digit < 10)?;
        sum.checked_mul(10)?.checked_sub(i64::from(digit))
    });
    let value = if is_negative { sum } else { sum.and_then(i64::checked_neg) };
    value.ok_or(Malformed::Garbage)
}

/// An integer that cannot overflow, and what follows its line. None for anything else.
fn short_integer(bytes: &[u8]) -> Option<(i64, &[u8])> {
    let digits = bytes.strip_prefix(b":")?;
    let (sign, digits) = digits.strip_prefix(b"-").map_or((1, digits), |digits| (-1, digits));
    let mut value = 0;
    for (index, byte) in digits.iter().take(SHORT + 1).enumerate() {
        match byte {
            b'0'..=b'9' if index < SHORT => value = value * 10 + i64::from(byte - b'0'),
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
