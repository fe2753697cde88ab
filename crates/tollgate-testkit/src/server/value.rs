//! Replies of a server.

use std::io::{self, BufRead};

/// A reply. RESP3 types are converted to RESP2: a map to an array of alternating keys and values, a boolean to 0 or 1,
/// a double to text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// Null.
    Nil,
    /// An integer.
    Int(i64),
    /// A simple string, such as `OK`.
    Simple(String),
    /// A bulk string.
    Bulk(Vec<u8>),
    /// An array.
    Array(Vec<Value>),
    /// An error that starts with its code, without the `-`.
    Error(String),
}

impl Value {
    /// Returns the integer. This and the other accessors panic on another type.
    ///
    /// # Panics
    /// If it is not an integer.
    #[track_caller]
    pub fn int(&self) -> i64 {
        match self {
            Self::Int(number) => *number,
            other => panic!("not an integer: {other:?}"),
        }
    }

    /// Returns the text of a simple or bulk string.
    #[track_caller]
    pub fn text(&self) -> &str {
        match self {
            Self::Simple(text) => text,
            Self::Bulk(bytes) => match str::from_utf8(bytes) {
                Ok(text) => text,
                Err(_) => panic!("not UTF-8: {self:?}"),
            },
            other => panic!("not a string: {other:?}"),
        }
    }

    /// Returns the bytes of a simple or bulk string.
    #[track_caller]
    pub fn bytes(&self) -> &[u8] {
        match self {
            Self::Simple(text) => text.as_bytes(),
            Self::Bulk(bytes) => bytes,
            other => panic!("not a string: {other:?}"),
        }
    }

    /// Returns the items of an array.
    #[track_caller]
    pub fn array(&self) -> &[Value] {
        match self {
            Self::Array(values) => values,
            other => panic!("not an array: {other:?}"),
        }
    }

    /// Returns the text of an error.
    #[track_caller]
    pub fn error(&self) -> &str {
        match self {
            Self::Error(text) => text,
            other => panic!("not an error: {other:?}"),
        }
    }

    /// Returns whether it is null.
    pub fn is_nil(&self) -> bool {
        *self == Self::Nil
    }

    /// Returns whether it is an error.
    pub fn is_error(&self) -> bool {
        matches!(self, Self::Error(_))
    }

    pub(super) fn read(from: &mut impl BufRead) -> io::Result<Self> {
        let line = read_line(from)?;
        let kind = line.chars().next().ok_or_else(|| invalid_reply(&line))?;
        let rest = &line[kind.len_utf8()..];
        Ok(match kind {
            '_' => Self::Nil,
            '+' | ',' | '(' => Self::Simple(rest.to_owned()),
            '-' => Self::Error(rest.to_owned()),
            ':' => Self::Int(rest.parse().map_err(|_| invalid_reply(&line))?),
            '#' => Self::Int(i64::from(rest == "t")),
            '$' => read_bytes(from, rest)?.map_or(Self::Nil, Self::Bulk),
            // Verbatim strings start with their format, such as `txt:`.
            '=' => {
                read_bytes(from, rest)?.map_or(Self::Nil, |bytes| Self::Bulk(bytes[4..].to_vec()))
            }
            '!' => {
                let bytes = read_bytes(from, rest)?.unwrap_or_default();
                Self::Error(String::from_utf8_lossy(&bytes).into_owned())
            }
            '*' | '~' | '>' => read_array(from, rest, 1)?,
            '%' => read_array(from, rest, 2)?,
            _ => return Err(invalid_reply(&line)),
        })
    }
}

/// Reads a line, without its CRLF.
fn read_line(from: &mut impl BufRead) -> io::Result<String> {
    let mut line = Vec::new();
    from.read_until(b'\n', &mut line)?;
    let text = String::from_utf8_lossy(&line);
    match text.strip_suffix("\r\n") {
        Some(line) => Ok(line.to_owned()),
        None => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

fn read_bytes(from: &mut impl BufRead, length: &str) -> io::Result<Option<Vec<u8>>> {
    let Some(length) = read_length(length)? else { return Ok(None) };
    let mut bytes = vec![0; length + 2];
    from.read_exact(&mut bytes)?;
    bytes.truncate(length);
    Ok(Some(bytes))
}

fn read_array(from: &mut impl BufRead, length: &str, values_each: usize) -> io::Result<Value> {
    let Some(length) = read_length(length)? else { return Ok(Value::Nil) };
    let values = (0..length * values_each).map(|_| Value::read(from));
    Ok(Value::Array(values.collect::<io::Result<_>>()?))
}

/// Parses a length; `None` for -1, which is null.
fn read_length(text: &str) -> io::Result<Option<usize>> {
    if text == "-1" {
        return Ok(None);
    }
    text.parse().map(Some).map_err(|_| invalid_reply(text))
}

fn invalid_reply(line: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("invalid reply: {line:?}"))
}
