//! The elements of a header that is a list, from the right: what was written last comes first.
//!
//! From the right, too, because what stands on the left is the client's, who must not be able to change how
//! the rest is read, say by a quote that never ends.

use http::header::ValueIter;
use http::{HeaderMap, HeaderValue};

/// The most elements looked at. Longer chains of proxies are not built.
pub(super) const MAX_HOPS: usize = 64;
/// The most bytes looked at, over all lines.
pub(super) const MAX_BYTES: usize = 8 * 1024;

/// Where the last element of a line begins: after this comma.
pub(super) type LastComma = fn(&[u8]) -> Option<usize>;

/// The elements of all lines of this header, as far as they are looked at. Lines are one list, in order.
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
    /// What is left of the line being read.
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
        let (beyond, near) = line.split_at_checked(line.len().saturating_sub(self.bytes))?;
        let element = match (self.last_comma)(near) {
            Some(comma) => {
                self.line = line.get(..beyond.len() + comma);
                near.get(comma + 1..)?
            }
            None if beyond.is_empty() => near,
            // It begins where nobody looks.
            None => return None,
        };
        self.bytes = self.bytes.saturating_sub(element.len() + 1);
        Some(element)
    }
}

/// The last comma of a list that has no quotes.
pub(super) fn last_comma(line: &[u8]) -> Option<usize> {
    line.iter().rposition(|byte| *byte == b',')
}
