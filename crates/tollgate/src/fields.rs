//! Binary encoding of snapshot fields: fixed-width big-endian integers.

use crate::time::{MAX_EXACT, MAX_PERIOD, Timestamp};

/// Reader of encoded fields. It never reads past the end and checks every length against the input.
#[derive(Debug, Clone)]
pub(crate) struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    pub(crate) const fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn bytes(&mut self, length: usize) -> Option<&'a [u8]> {
        let (bytes, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(bytes)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (array, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*array)
    }

    pub(crate) fn byte(&mut self) -> Option<u8> {
        self.array().map(u8::from_be_bytes)
    }

    pub(crate) fn short(&mut self) -> Option<u16> {
        self.array().map(u16::from_be_bytes)
    }

    pub(crate) fn word(&mut self) -> Option<u32> {
        self.array().map(u32::from_be_bytes)
    }

    pub(crate) fn long(&mut self) -> Option<u64> {
        self.array().map(u64::from_be_bytes)
    }

    pub(crate) fn wide(&mut self) -> Option<u128> {
        self.array().map(u128::from_be_bytes)
    }

    /// Reads an integer of at most 2^53.
    pub(crate) fn exact(&mut self) -> Option<u64> {
        self.long().filter(|number| *number <= MAX_EXACT)
    }

    /// Reads a time stamp in microseconds, at most `Timestamp::MAX`.
    pub(crate) fn timestamp(&mut self) -> Option<u64> {
        self.long().filter(|micros| *micros <= Timestamp::MAX.as_micros())
    }

    /// Reads a duration in microseconds, at most `MAX_PERIOD`.
    pub(crate) fn length(&mut self) -> Option<u64> {
        self.long().filter(|micros| *micros <= MAX_PERIOD)
    }

    /// Reads the number of entries of `size` bytes that follow; `None` if the rest of the input is shorter.
    pub(crate) fn entries(&mut self, size: usize) -> Option<usize> {
        let count = usize::try_from(self.word()?).ok()?;
        count.checked_mul(size).filter(|bytes| *bytes <= self.0.len())?;
        Some(count)
    }

    /// Reads a length and then a text.
    pub(crate) fn text(&mut self) -> Option<&'a str> {
        let length = usize::try_from(self.word()?).ok()?;
        std::str::from_utf8(self.bytes(length)?).ok()
    }
}

pub(crate) fn put_longs(out: &mut Vec<u8>, numbers: impl IntoIterator<Item = u64>) {
    for number in numbers {
        out.extend_from_slice(&number.to_be_bytes());
    }
}

/// Writes a length and then a text; `None` if the length exceeds 32 bits.
pub(crate) fn put_text(out: &mut Vec<u8>, text: &str) -> Option<()> {
    put_length(out, text.len())?;
    out.extend_from_slice(text.as_bytes());
    Some(())
}

/// Writes a length or count; `None` if it exceeds 32 bits.
pub(crate) fn put_length(out: &mut Vec<u8>, length: usize) -> Option<()> {
    out.extend_from_slice(&u32::try_from(length).ok()?.to_be_bytes());
    Some(())
}
