//! What a server answers.

use std::io::{self, BufRead};

/// An answer. What RESP3 adds is read as what RESP2 would say: a map as an array of keys and values in
/// turn, a boolean as 0 or 1, a double as text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// Nothing.
    Nil,
    /// A whole number.
    Int(i64),
    /// A line of text, as `OK` is.
    Simple(String),
    /// Bytes.
    Bulk(Vec<u8>),
    /// Several.
    Array(Vec<Value>),
    /// An error with its code in front, without the `-`.
    Error(String),
}

impl Value {
    /// The number.
    ///
    /// # Panics
    /// If it is something else; so do the others.
    #[track_caller]
    pub fn int(&self) -> i64 {
        match self {
            Self::Int(number) => *number,
            other => panic!("no number: {other:?}"),
        }
    }

    /// The text, whichever way it was sent.
    #[track_caller]
    pub fn text(&self) -> &str {
        match self {
            Self::Simple(text) => text,
            Self::Bulk(bytes) => match str::from_utf8(bytes) {
                Ok(text) => text,
                Err(_) => panic!("no text: {self:?}"),
            },
            other => panic!("no text: {other:?}"),
        }
    }

    /// The bytes, whichever way they were sent.
    #[track_caller]
    pub fn bytes(&self) -> &[u8] {
        match self {
            Self::Simple(text) => text.as_bytes(),
            Self::Bulk(bytes) => bytes,
            other => panic!("no bytes: {other:?}"),
        }
    }

    /// The parts.
    #[track_caller]
    pub fn array(&self) -> &[Value] {
        match self {
            Self::Array(values) => values,
            other => panic!("no array: {other:?}"),
        }
    }

    /// The error.
    #[track_caller]
    pub fn error(&self) -> &str {
        match self {
            Self::Error(text) => text,
            other => panic!("no error: {other:?}"),
        }
    }

    /// Whether it is nothing.
    pub fn is_nil(&self) -> bool {
        *self == Self::Nil
    }

    /// Whether it is an error.
    pub fn is_error(&self) -> bool {
        matches!(self, Self::Error(_))
    }

    pub(super) fn read(from: &mut impl BufRead) -> io::Result<Self> {
        let line = read_line(from)?;
        let kind = line.chars().next().ok_or_else(|| garbled(&line))?;
        let rest = &line[kind.len_utf8()..];
        Ok(match kind {
            '_' => Self::Nil,
            '+' | ',' | '(' => Self::Simple(rest.to_owned()),
            '-' => Self::Error(rest.to_owned()),
            ':' => Self::Int(rest.parse().map_err(|_| garbled(&line))?),
            '#' => Self::Int(i64::from(rest == "t")),
            '$' => read_bytes(from, rest)?.map_or(Self::Nil, Self::Bulk),
            // Bytes begin with their kind, as in `txt:`.
            '=' => {
                read_bytes(from, rest)?.map_or(Self::Nil, |bytes| Self::Bulk(bytes[4..].to_vec()))
            }
            '!' => {
                let bytes = read_bytes(from, rest)?.unwrap_or_default();
                Self::Error(String::from_utf8_lossy(&bytes).into_owned())
            }
            '*' | '~' | '>' => read_array(from, rest, 1)?,
            '%' => read_array(from, rest, 2)?,
            _ => return Err(garbled(&line)),
        })
    }
}

/// A line without its end.
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

fn read_array(from: &mut impl BufRead, length: &str, each: usize) -> io::Result<Value> {
    let Some(length) = read_length(length)? else { return Ok(Value::Nil) };
    let values = (0..length * each).map(|_| Value::read(from));
    Ok(Value::Array(values.collect::<io::Result<_>>()?))
}

/// Nothing has the length -1.
fn read_length(text: &str) -> io::Result<Option<usize>> {
    if text == "-1" {
        return Ok(None);
    }
    text.parse().map(Some).map_err(|_| garbled(text))
}

fn garbled(line: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("this is no answer: {line:?}"))
}
