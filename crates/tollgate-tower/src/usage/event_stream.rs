//! Server-sent events, byte by byte: finds the data of each event.

use super::figures::Figures;
use super::json::JsonScanner;

/// The only field of an event that matters here.
const DATA: &[u8] = b"data";

const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// A parser of a `text/event-stream`. Lines end with `\n`, `\r` or `\r\n`.
#[derive(Debug)]
pub(super) struct EventStream {
    line: Line,
    /// The last byte was `\r`: a `\n` belongs to the same line end.
    is_after_cr: bool,
    data: JsonScanner,
}

/// The part of the line that is next.
#[derive(Debug, Clone, Copy)]
enum Line {
    /// The rest of a byte order mark, or of a line that starts with other bytes.
    ByteOrderMark(&'static [u8]),
    /// The rest of `data`.
    Name(&'static [u8]),
    /// An optional space before the value.
    Space,
    Value,
    /// A comment or another field.
    Ignored,
}

impl EventStream {
    pub(super) fn new() -> Self {
        let line = Line::ByteOrderMark(BYTE_ORDER_MARK);
        Self { line, is_after_cr: false, data: JsonScanner::new() }
    }

    pub(super) fn push(&mut self, mut bytes: &[u8], total: &mut Figures) {
        while let Some((first, rest)) = bytes.split_first() {
            let is_rest_of_line_end = self.is_after_cr && *first == b'\n';
            self.is_after_cr = *first == b'\r';
            bytes = match first {
                b'\n' if is_rest_of_line_end => rest,
                b'\n' | b'\r' => {
                    self.end_line(total);
                    rest
                }
                _ => self.read_line(bytes, total),
            };
        }
    }

    /// Ends the stream. Its last event counts also without the empty line at the end.
    pub(super) fn end(&mut self, total: &mut Figures) {
        self.data.end(total);
    }

    fn end_line(&mut self, total: &mut Figures) {
        let is_empty = match self.line {
            Line::Name(rest) => rest.len() == DATA.len(),
            Line::ByteOrderMark(rest) => matches!(rest.len(), 0 | 3),
            Line::Space | Line::Value | Line::Ignored => false,
        };
        if is_empty {
            self.data.end(total);
        } else if matches!(self.line, Line::Value) {
            // Several data fields are the lines of one text.
            self.data.push(b"\n", total);
        }
        self.line = Line::Name(DATA);
    }

    /// Reads bytes of a line, up to its end at most. Returns the remaining bytes.
    fn read_line<'b>(&mut self, bytes: &'b [u8], total: &mut Figures) -> &'b [u8] {
        let Some((first, rest)) = bytes.split_first() else { return bytes };
        match self.line {
            Line::ByteOrderMark(mark) => match mark.split_first() {
                Some((expected, mark)) if expected == first => {
                    self.line = Line::ByteOrderMark(mark);
                    return rest;
                }
                None | Some((0xef, _)) => {
                    self.line = Line::Name(DATA);
                    return bytes;
                }
                Some(_) => self.line = Line::Ignored,
            },
            Line::Name(name) => {
                self.line = match name.split_first() {
                    Some((expected, name)) if expected == first => Line::Name(name),
                    None if *first == b':' => Line::Space,
                    _ => Line::Ignored,
                };
                return rest;
            }
            Line::Space => {
                self.line = Line::Value;
                return if *first == b' ' { rest } else { bytes };
            }
            Line::Value | Line::Ignored => {}
        }
        let is_within_line = |byte: &&u8| !matches!(byte, b'\n' | b'\r');
        let (text, rest) = bytes.split_at(bytes.iter().take_while(is_within_line).count());
        if matches!(self.line, Line::Value) {
            self.data.push(text, total);
        }
        rest
    }
}
