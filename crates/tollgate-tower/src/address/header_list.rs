//! Elements of a comma-separated header list, read from the right: the last written element first.
//!
//! The client controls the left part and must not be able to change how the rest is parsed, for example with an
//! unclosed quote.

use http::header::ValueIter;
use http::{HeaderMap, HeaderValue};

/// Maximum number of elements read; no real proxy chain is longer.
pub(super) const MAX_HOPS: usize = 64;
/// Maximum number of bytes read, over all header lines.
pub(super) const MAX_BYTES: usize = 8 * 1024;

/// Returns the position of the comma before the last element of a line.
pub(super) type LastComma = fn(&[u8]) -> Option<usize>;

/// Returns the elements of all lines of a header from the right, within the maximums. The lines form one list.
pub(super) fn from_right<'h>(
    headers: &'h HeaderMap,
    name: &str,
    last_comma: LastComma,
) -> FromRight<'h> {
    let lines = headers.get_all(name).iter();
    FromRight { lines, line: None, last_comma, hops: MAX_HOPS, bytes: MAX_BYTES }
}

#[derive(Debug)]
pub(super) struct FromRight<'h> {
    lines: ValueIter<'h, HeaderValue>,
    /// The unread part of the current line.
    line: Option<&'h [u8]>,
    last_comma: LastComma,
    hops: usize,
    bytes: usize,
}

impl<'h> Iterator for FromRight<'h> {
    type Item = &'h [u8];

    fn next(&mut self) -> Option<&'h [u8]> {
        self.hops = self.hops.checked_sub(1)?;
        let line = match self.line.take() {
            Some(rest) => rest,
            None => self.lines.next_back()?.as_bytes(),
        };
        let (unread, near) = line.split_at_checked(line.len().saturating_sub(self.bytes))?;
        let element = match (self.last_comma)(near) {
            Some(comma) => {
                self.line = line.get(..unread.len() + comma);
                near.get(comma + 1..)?
            }
            None if unread.is_empty() => near,
            // The element starts beyond the byte maximum.
            None => return None,
        };
        self.bytes = self.bytes.saturating_sub(element.len() + 1);
        Some(element)
    }
}

/// Returns the position of the last comma in a list without quotes.
pub(super) fn last_comma(line: &[u8]) -> Option<usize> {
    line.iter().rposition(|byte| *byte == b',')
}
