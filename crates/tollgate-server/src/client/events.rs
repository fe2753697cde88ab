//! Server-sent events out of bytes, in whatever pieces those come.

use std::collections::VecDeque;
use std::mem::take;

/// How long an event may be: one of some hundred nodes with long warnings is not a tenth of it.
const MOST: usize = 4 * 1024 * 1024;

/// What a service has told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Event {
    pub(crate) name: String,
    pub(crate) data: String,
}

/// An event that does not end.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooLong;

/// Reads events. `id` and `retry` mean nothing to us: whoever comes back is told everything anew.
#[derive(Debug, Default)]
pub(super) struct Events {
    /// The line that has begun.
    line: Vec<u8>,
    /// Whether the last byte was a CR, so that an LF now belongs to it.
    after_return: bool,
    name: String,
    data: Vec<String>,
    ready: VecDeque<Event>,
}

impl Events {
    /// Takes more bytes.
    pub(super) fn feed(&mut self, bytes: &[u8]) -> Result<(), TooLong> {
        for piece in bytes.split_inclusive(|byte| matches!(byte, b'\r' | b'\n')) {
            let after_return = take(&mut self.after_return);
            match piece.split_last() {
                Some((b'\n', [])) if after_return => {}
                Some((end @ (b'\r' | b'\n'), rest)) => {
                    self.extend(rest)?;
                    self.end_line();
                    self.after_return = *end == b'\r';
                }
                _ => self.extend(piece)?,
            }
        }
        Ok(())
    }

    /// The next whole event.
    pub(super) fn next(&mut self) -> Option<Event> {
        self.ready.pop_front()
    }

    fn extend(&mut self, bytes: &[u8]) -> Result<(), TooLong> {
        let held: usize = self.data.iter().map(|line| line.len() + 1).sum();
        if held + self.line.len() + bytes.len() > MOST {
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
            // A comment, or a field of others.
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

    fn read(pieces: &[&[u8]]) -> Vec<Event> {
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
    fn events_are_read_as_the_standard_says() {
        let expected = [event("policy", "{\"a\":\"ä\"}"), event("", "one\n two"), event("", "\n€")];
        assert_eq!(read(&[STREAM.as_bytes()]), expected);
    }

    #[test]
    fn pieces_may_be_cut_anywhere() {
        let (bytes, whole) = (STREAM.as_bytes(), read(&[STREAM.as_bytes()]));
        for at in 0..=bytes.len() {
            let (first, second) = bytes.split_at(at);
            assert_eq!(read(&[first, second]), whole, "cut at {at}");
            assert_eq!(read(&[first, b"", second]), whole, "cut twice at {at}");
        }
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        assert_eq!(read(&single), whole);
    }

    #[test]
    fn what_is_not_text_is_made_some() {
        assert_eq!(read(&[b"data: \xff\n\n"]), [event("", "\u{fffd}")]);
    }

    #[test]
    fn what_does_not_end_is_not_kept() {
        let mut events = Events::default();
        let piece = [b'x'; 1024];
        let most = MOST / piece.len();
        let taken = (0..2 * most).take_while(|_| events.feed(&piece).is_ok()).count();
        assert_eq!(taken, most);
        let mut events = Events::default();
        let line = [b"data:".as_slice(), &piece, b"\n"].concat();
        let taken = (0..2 * most).take_while(|_| events.feed(&line).is_ok()).count();
        assert!((most - 30..most).contains(&taken), "{taken}");
    }

    #[test]
    fn a_long_event_within_the_bound_is_read() {
        let long = "x".repeat(900 * 1024);
        let text = format!("event: history\ndata: {long}\n\ndata: y\n\n");
        assert_eq!(read(&[text.as_bytes()]), [event("history", &long), event("", "y")]);
    }
}
