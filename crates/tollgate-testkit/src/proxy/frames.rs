//! Finds the ends of requests and replies in a stream.

/// Parses one direction of a connection. Requests and replies have the same structure: a line, which may announce bytes
/// or further frames.
#[derive(Debug, Default)]
pub(super) struct Frames {
    line: Vec<u8>,
    /// Remaining bytes of a bulk string, including its CRLF.
    bulk: usize,
    /// Remaining frames until the outermost is complete. Zero between frames.
    open: usize,
    /// Whether the outermost frame is a push of the server, not a reply.
    is_push: bool,
}

/// The parsed part of some bytes.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Found {
    /// The number of bytes of this frame.
    pub(super) length: usize,
    /// Whether a request or reply ends there.
    pub(super) is_end: bool,
}

impl Frames {
    /// Returns whether the next byte begins a frame.
    pub(super) fn is_between(&self) -> bool {
        self.open == 0 && self.bulk == 0 && self.line.is_empty()
    }

    /// Parses up to the end of the first frame, or all bytes.
    pub(super) fn follow(&mut self, bytes: &[u8]) -> Found {
        let mut length = 0;
        while length < bytes.len() {
            if self.bulk > 0 {
                let skipped = self.bulk.min(bytes.len() - length);
                self.bulk -= skipped;
                length += skipped;
            } else {
                self.push(bytes[length]);
                length += 1;
            }
            if self.is_between() {
                return Found { length, is_end: !self.is_push };
            }
        }
        Found { length, is_end: false }
    }

    /// Parses all bytes, and counts the ends of requests or replies.
    pub(super) fn count(&mut self, mut bytes: &[u8]) -> u64 {
        let mut ends = 0;
        while !bytes.is_empty() {
            let found = self.follow(bytes);
            ends += u64::from(found.is_end);
            bytes = &bytes[found.length..];
        }
        ends
    }

    /// Adds one byte of a line.
    fn push(&mut self, byte: u8) {
        self.line.push(byte);
        if byte != b'\n' {
            return;
        }
        let line = std::mem::take(&mut self.line);
        let number =
            str::from_utf8(&line[1..]).ok().and_then(|text| text.trim().parse::<usize>().ok());
        if self.open == 0 {
            self.open = 1;
            self.is_push = line[0] == b'>';
        }
        self.open -= 1;
        match (line[0], number) {
            (b'*' | b'~' | b'>', Some(number)) => self.open += number,
            (b'%', Some(number)) => self.open += number * 2,
            (b'$' | b'=' | b'!', Some(number)) => self.bulk = number + 2,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Frames;

    const STREAM: &str = "*2\r\n$3\r\nGET\r\n$1\r\nk\r\n+OK\r\n$-1\r\n*-1\r\n*0\r\n$0\r\n\r\nPING\r\n\
        *2\r\n*1\r\n:1\r\n%1\r\n+a\r\n$4\r\n*1\r\n\r\n>2\r\n+a\r\n+b\r\n-ERR no\r\n";

    #[test]
    fn counts_frames_however_reads_are_split() {
        for size in 1..STREAM.len() {
            let mut frames = Frames::default();
            let ends: u64 = STREAM.as_bytes().chunks(size).map(|part| frames.count(part)).sum();
            // All except the push.
            assert_eq!((ends, frames.is_between()), (9, true), "in parts of {size}");
        }
    }

    #[test]
    fn stops_at_the_end_of_a_frame() {
        let mut frames = Frames::default();
        let found = frames.follow(b"$2\r\nab\r\n+O");
        assert_eq!((found.length, found.is_end), (8, true));
        let found = frames.follow(b"+O");
        assert_eq!((found.length, found.is_end, frames.is_between()), (2, false, false));
    }
}
