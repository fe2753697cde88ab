//! Commands from bytes: arrays of bulk strings and inline commands, decoded in place.

use std::fmt;
use std::ops::Range;

use super::inline_command;

/// Maximum length in bytes of a command without its key that [`Decoder::parts`] returns.
const MAX_PARTS: usize = 256;
/// Maximum number of digits of a length.
const MAX_DIGITS: usize = 10;

/// Bounds of one command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Bounds {
    /// Maximum length of a command in bytes, which is also the capacity of the read buffer.
    pub(super) length: usize,
    /// Maximum number of arguments, including the name of the command.
    pub(super) arguments: usize,
    /// Maximum length of an inline command in bytes.
    inline: usize,
    /// First word of errors about these bounds.
    prefix: &'static str,
}

impl Bounds {
    /// Bounds before authentication, where any peer can fill buffers.
    pub(super) const UNAUTHENTICATED: Self =
        Self { length: 1024, arguments: 10, inline: 1024, prefix: "unauthenticated" };
    /// Bounds of clients that may decide: enough for 32 facts of the maximum length.
    pub(super) const AUTHENTICATED: Self =
        Self { length: 64 * 1024, arguments: 64, inline: 8 * 1024, prefix: "invalid" };

    /// Returns the error for a command that fills the whole buffer and is incomplete.
    pub(super) fn too_long(&self) -> ProtocolError {
        ProtocolError(format!("a command must be shorter than {} bytes", self.length))
    }
}

/// The result of decoding the start of the input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Decoded {
    /// The command is not complete.
    Incomplete,
    /// A command of `length` bytes; its arguments are in the decoder.
    Command { length: usize },
    /// An empty command of `length` bytes, which has no reply.
    Empty { length: usize },
}

/// Input that is not RESP. The connection cannot be used after it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ProtocolError(String);

impl ProtocolError {
    pub(super) fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

impl fmt::Display for ProtocolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ERR Protocol error: {}", self.0)
    }
}

/// Decodes one command at a time, and reuses its memory.
#[derive(Debug, Default)]
pub(super) struct Decoder {
    ranges: Vec<Range<usize>>,
    /// The arguments of an inline command without quotes and escapes.
    unquoted: Vec<u8>,
    is_inline: bool,
}

/// The arguments of a command, of which the first is its name.
#[derive(Debug, Clone, Copy)]
pub(super) struct Arguments<'a> {
    source: &'a [u8],
    ranges: &'a [Range<usize>],
}

/// The bytes of a command around its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CommandParts<'a> {
    /// The bytes before the length of the key.
    pub(super) head: &'a [u8],
    /// The bytes after the key.
    pub(super) tail: &'a [u8],
}

impl<'a> Arguments<'a> {
    pub(super) const fn len(&self) -> usize {
        self.ranges.len()
    }

    pub(super) fn get(&self, index: usize) -> Option<&'a [u8]> {
        self.source.get(self.ranges.get(index)?.clone())
    }

    /// Returns the name of the command.
    pub(super) fn name(&self) -> &'a [u8] {
        self.get(0).unwrap_or_default()
    }

    /// Returns the arguments from `index` on.
    pub(super) fn from(&self, index: usize) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let Self { source, ranges } = *self;
        ranges.iter().skip(index).filter_map(move |range| source.get(range.clone()))
    }
}

impl Decoder {
    /// Decodes the command at the start of the input.
    pub(super) fn decode(
        &mut self,
        input: &[u8],
        bounds: &Bounds,
    ) -> Result<Decoded, ProtocolError> {
        self.ranges.clear();
        self.is_inline = false;
        match input.first() {
            None => Ok(Decoded::Incomplete),
            Some(b'*') => self.decode_array(input, bounds),
            Some(_) => self.decode_inline(input, bounds),
        }
    }

    /// Returns the arguments of the command that was decoded last, from this input.
    pub(super) fn arguments<'a>(&'a self, input: &'a [u8]) -> Arguments<'a> {
        let source = if self.is_inline { self.unquoted.as_slice() } else { input };
        Arguments { source, ranges: &self.ranges }
    }

    /// Returns whether the last command was an inline command.
    pub(super) const fn is_inline(&self) -> bool {
        self.is_inline
    }

    /// Returns the bytes around the first argument of the command that was decoded last, which has `length` bytes. `None` if
    /// it is an inline command or long.
    pub(super) fn parts<'a>(&self, input: &'a [u8], length: usize) -> Option<CommandParts<'a>> {
        let key = self.ranges.get(1)?;
        if self.is_inline || length.saturating_sub(key.len()) > MAX_PARTS {
            return None;
        }
        let before = input.get(..key.start)?;
        let dollar = before.iter().rposition(|byte| *byte == b'$')?;
        let (head, _) = before.split_at_checked(dollar.checked_add(1)?)?;
        Some(CommandParts { head, tail: input.get(key.end..length)? })
    }

    fn decode_array(&mut self, input: &[u8], bounds: &Bounds) -> Result<Decoded, ProtocolError> {
        let Some((count, mut at)) = read_length(input, 1, "invalid multibulk length")? else {
            return Ok(Decoded::Incomplete);
        };
        // Redis ignores empty and absent arrays.
        let Ok(count @ 1..) = usize::try_from(count) else {
            return Ok(Decoded::Empty { length: at });
        };
        if count > bounds.arguments {
            return Err(ProtocolError(format!("{} multibulk length", bounds.prefix)));
        }
        for _ in 0..count {
            match input.get(at) {
                None => return Ok(Decoded::Incomplete),
                Some(b'$') => {}
                Some(byte) => {
                    let found = char::from(*byte);
                    return Err(ProtocolError(format!("expected '$', got '{found}'")));
                }
            }
            let header = read_length(input, at.saturating_add(1), "invalid bulk length")?;
            let Some((length, start)) = header else { return Ok(Decoded::Incomplete) };
            let length =
                usize::try_from(length).map_err(|_| ProtocolError::new("invalid bulk length"))?;
            let end = start.saturating_add(length);
            at = end.saturating_add(2);
            if at > bounds.length {
                return Err(ProtocolError(format!("{} bulk length", bounds.prefix)));
            }
            match input.get(end..at) {
                Some(b"\r\n") => self.ranges.push(start..end),
                Some(_) => {
                    return Err(ProtocolError::new("expected CRLF after a bulk string"));
                }
                None => return Ok(Decoded::Incomplete),
            }
        }
        Ok(Decoded::Command { length: at })
    }

    fn decode_inline(&mut self, input: &[u8], bounds: &Bounds) -> Result<Decoded, ProtocolError> {
        let line = input.get(..bounds.inline).unwrap_or(input);
        let Some(end) = line.iter().position(|byte| *byte == b'\n') else {
            if input.len() >= bounds.inline {
                return Err(ProtocolError::new("too big inline request"));
            }
            return Ok(Decoded::Incomplete);
        };
        let line = line.get(..end).unwrap_or_default();
        self.is_inline = true;
        self.unquoted.clear();
        inline_command::split(line, &mut self.unquoted, &mut self.ranges)
            .map_err(|_| ProtocolError::new("unbalanced quotes in request"))?;
        let length = end.saturating_add(1);
        match self.ranges.len() {
            0 => Ok(Decoded::Empty { length }),
            count if count > bounds.arguments => {
                Err(ProtocolError::new("too many arguments in an inline request"))
            }
            _ => Ok(Decoded::Command { length }),
        }
    }
}

/// Reads a decimal length and its CRLF. Returns the number and the position after it; `None` if it is incomplete.
#[inline]
fn read_length(
    input: &[u8],
    at: usize,
    error: &'static str,
) -> Result<Option<(i64, usize)>, ProtocolError> {
    let rest = input.get(at..).unwrap_or_default();
    if let Some((number, used)) = read_short_length(rest) {
        return Ok(Some((number, at.saturating_add(used))));
    }
    let length = read_long_length(rest, error)?;
    Ok(length.map(|(number, used)| (number, at.saturating_add(used))))
}

/// Reads a length of one or two digits, as most are, and its CRLF.
#[inline]
pub(super) fn read_short_length(input: &[u8]) -> Option<(i64, usize)> {
    match input {
        [ones @ b'0'..=b'9', b'\r', b'\n', ..] => Some((i64::from(ones - b'0'), 3)),
        [tens @ b'0'..=b'9', ones @ b'0'..=b'9', b'\r', b'\n', ..] => {
            Some((i64::from(tens - b'0') * 10 + i64::from(ones - b'0'), 4))
        }
        _ => None,
    }
}

/// Reads a decimal length of any number of digits and its CRLF. Returns the number and how many bytes it has.
#[cold]
fn read_long_length(
    input: &[u8],
    error: &'static str,
) -> Result<Option<(i64, usize)>, ProtocolError> {
    let invalid = || ProtocolError::new(error);
    let (mut number, mut is_negative, mut digits) = (0_i64, false, 0_usize);
    let mut position = 0_usize;
    for byte in input {
        position = position.saturating_add(1);
        match byte {
            b'0'..=b'9' if digits < MAX_DIGITS => {
                number = number.saturating_mul(10).saturating_add(i64::from(byte - b'0'));
                digits = digits.saturating_add(1);
            }
            b'-' if digits == 0 && !is_negative => is_negative = true,
            b'\r' if digits > 0 => {
                return match input.get(position) {
                    None => Ok(None),
                    Some(b'\n') => {
                        let number = if is_negative { number.saturating_neg() } else { number };
                        Ok(Some((number, position.saturating_add(1))))
                    }
                    Some(_) => Err(invalid()),
                };
            }
            _ => return Err(invalid()),
        }
    }
    Ok(None)
}
