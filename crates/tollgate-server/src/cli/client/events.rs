//! Parser of server-sent events that accepts its input in pieces of any size.

use std::collections::VecDeque;
use std::mem::take;

/// Maximum size of an event in bytes, ten times that of a frame with several hundred nodes.
const MAX_EVENT: usize = 4 * 1024 * 1024;

/// One event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Event {
    pub(crate) name: String,
    pub(crate) data: String,
}

/// An event exceeds [`MAX_EVENT`].
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooLong;

/// Event parser. It ignores `id` and `retry`, because the service sends its full state on every connection.
#[derive(Debug, Default)]
pub(super) struct Events {
    /// The incomplete line.
    line: Vec<u8>,
    /// Whether the last byte was a CR; an LF that follows belongs to the same line end.
    after_cr: bool,
    name: String,
    data: Vec<String>,
    ready: VecDeque<Event>,
}

impl Events {
    /// Parses more bytes.
    pub(super) fn feed(&mut self, bytes: &[u8]) -> Result<(), TooLong> {
        for piece in bytes.split_inclusive(|byte| matches!(byte, b'\r' | b'\n')) {
            let after_cr = take(&mut self.after_cr);
            match piece.split_last() {
                Some((b'\n', [])) if after_cr => {}
                Some((end @ (b'\r' | b'\n'), rest)) => {
                    self.extend(rest)?;
                    self.end_line();
                    self.after_cr = *end == b'\r';
                }
                _ => self.extend(piece)?,
            }
        }
        Ok(())
    }

    /// Returns the next complete event.
    pub(super) fn next(&mut self) -> Option<Event> {
        self.ready.pop_front()
    }

    fn extend(&mut self, bytes: &[u8]) -> Result<(), TooLong> {
        let buffered: usize = self.data.iter().map(|line| line.len() + 1).sum();
        if buffered + self.line.len() + bytes.len() > MAX_EVENT {
            return Err(TooLong);
        }
        self.line.extend_from_slice(bytes);
        Ok(())
    }

    fn end_line(&mut self) {
        let bytes = take(&mut self.line);
        let line = String::from_utf8_lossy(&bytes);
        let line = line.strip_prefix('\u{feff}').unwrap_or(&line);
        if line.is_empty() {
            return self.end_event();
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => value.clone_into(&mut self.name),
            "data" => self.data.push(value.to_owned()),
            // A comment, or an unknown field.
            _ => {}
        }
    }

    fn end_event(&mut self) {
        let (name, data) = (take(&mut self.name), take(&mut self.data));
        if !data.is_empty() {
            self.ready.push_back(Event { name, data: data.join("\n") });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(pieces: &[&[u8]]) -> Vec<Event> {
        let mut events = Events::default();
        pieces.iter().for_each(|piece| events.feed(piece).unwrap());
        std::iter::from_fn(|| events.next()).collect()
    }

    fn event(name: &str, data: &str) -> Event {
        Event { name: name.to_owned(), data: data.to_owned() }
    }

    const STREAM: &str = "\u{feff}: hello\n\nevent: policy\r\ndata: {\"a\":\"ä\"}\r\n\r\nid: 7\rretry: 3\rdata:one\rdata:  two\r\r\
                          event: nothing\n\ndata\ndata: €\n\nevent: unfinished\ndata: x\n";

    #[test]
    fn parses_events_as_specified() {
        let expected = [event("policy", "{\"a\":\"ä\"}"), event("", "one\n two"), event("", "\n€")];
        assert_eq!(parse(&[STREAM.as_bytes()]), expected);
    }

    #[test]
    fn accepts_pieces_split_anywhere() {
        let (bytes, expected) = (STREAM.as_bytes(), parse(&[STREAM.as_bytes()]));
        for at in 0..=bytes.len() {
            let (first, second) = bytes.split_at(at);
            assert_eq!(parse(&[first, second]), expected, "split at {at}");
            assert_eq!(parse(&[first, b"", second]), expected, "split twice at {at}");
        }
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        assert_eq!(parse(&single), expected);
    }

    #[test]
    fn replaces_invalid_utf8() {
        assert_eq!(parse(&[b"data: \xff\n\n"]), [event("", "\u{fffd}")]);
    }

    #[test]
    fn rejects_events_above_maximum_size() {
        let mut events = Events::default();
        let piece = [b'x'; 1024];
        let max = MAX_EVENT / piece.len();
        let accepted = (0..2 * max).take_while(|_| events.feed(&piece).is_ok()).count();
        assert_eq!(accepted, max);
        let mut events = Events::default();
        let line = [b"data:".as_slice(), &piece, b"\n"].concat();
        let accepted = (0..2 * max).take_while(|_| events.feed(&line).is_ok()).count();
        assert!((max - 30..max).contains(&accepted), "{accepted}");
    }

    #[test]
    fn parses_long_events_below_maximum_size() {
        let long = "x".repeat(900 * 1024);
        let text = format!("event: history\ndata: {long}\n\ndata: y\n\n");
        assert_eq!(parse(&[text.as_bytes()]), [event("history", &long), event("", "y")]);
    }
}
