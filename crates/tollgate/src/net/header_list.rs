//! Elements of a comma-separated header list, read from the right: the last written element first.
//!
//! The client controls the left part and must not be able to change how the rest is parsed, for example with an
//! unclosed quote.

/// Maximum number of hops that are read from a forwarding header; no real proxy chain is longer.
pub const MAX_HOPS: usize = 64;
/// Maximum number of bytes that are read from a forwarding header, over all its lines.
pub const MAX_FORWARDED_BYTES: usize = 8 * 1024;

/// Returns the position of the comma before the last element of a line.
pub(super) type LastComma = fn(&[u8]) -> Option<usize>;

/// Returns the elements of all lines of a header from the right, within the maximums. The lines form one list.
pub(super) const fn from_right<'h, L>(lines: L, last_comma: LastComma) -> FromRight<'h, L>
where
    L: DoubleEndedIterator<Item = &'h [u8]>,
{
    FromRight { lines, line: None, last_comma, hops: MAX_HOPS, bytes: MAX_FORWARDED_BYTES }
}

#[derive(Debug)]
pub(super) struct FromRight<'h, L> {
    lines: L,
    /// The unread part of the current line.
    line: Option<&'h [u8]>,
    last_comma: LastComma,
    hops: usize,
    bytes: usize,
}

impl<'h, L: DoubleEndedIterator<Item = &'h [u8]>> Iterator for FromRight<'h, L> {
    type Item = &'h [u8];

    fn next(&mut self) -> Option<&'h [u8]> {
        self.hops = self.hops.checked_sub(1)?;
        let line = match self.line.take() {
            Some(rest) => rest,
            None => self.lines.next_back()?,
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
