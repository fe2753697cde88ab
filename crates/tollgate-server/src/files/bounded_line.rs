//! Reads lines of bounded length.

use std::io::{self, BufRead, Read};

/// Maximum length of a line in bytes.
pub(crate) const MAX_LINE: usize = 64 * 1024;

/// Appends one line to `line`; returns false at the end of the input. Of a line longer than [`MAX_LINE`], keeps only
/// enough bytes to show that it is too long, and skips the rest.
pub(crate) fn read_line(lines: &mut dyn BufRead, line: &mut Vec<u8>) -> io::Result<bool> {
    let max = u64::try_from(MAX_LINE).unwrap_or(u64::MAX);
    let mut read = lines.take(max + 2).read_until(b'\n', line)?;
    let has_line = read > 0;
    while read > MAX_LINE && !line.ends_with(b"\n") {
        let rest = lines.fill_buf()?;
        let end = rest.iter().position(|byte| *byte == b'\n');
        let length = end.map_or(rest.len(), |end| end + 1);
        if end.is_some() || rest.is_empty() {
            read = 0;
        }
        lines.consume(length);
    }
    Ok(has_line)
}
