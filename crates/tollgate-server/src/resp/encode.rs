//! Replies as RESP, written into one buffer per connection.

use std::fmt::Display;
use std::io::Write;
use std::ops::Range;

/// The version of the protocol that a client has selected with HELLO.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Version {
    #[default]
    Resp2,
    Resp3,
}

/// Replies that are not sent yet, in order.
#[derive(Debug, Default)]
pub(super) struct Replies {
    bytes: Vec<u8>,
    version: Version,
}

impl Replies {
    /// Selects the version of the following replies.
    pub(super) const fn set_version(&mut self, version: Version) {
        self.version = version;
    }

    pub(super) const fn version(&self) -> Version {
        self.version
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(super) const fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Forgets the replies that were sent. Keeps the buffer unless it is larger than `max_kept` bytes.
    pub(super) fn clear(&mut self, max_kept: usize) {
        self.bytes.clear();
        self.bytes.shrink_to(max_kept);
    }

    /// Appends encoded replies.
    pub(super) fn append(&mut self, encoded: &[u8]) {
        self.bytes.extend_from_slice(encoded);
    }

    /// Appends a status such as `OK`.
    pub(super) fn status(&mut self, text: &str) {
        self.bytes.push(b'+');
        self.bytes.extend_from_slice(text.as_bytes());
        self.line_end();
    }

    /// Appends an error, which starts with its prefix, such as `ERR`.
    pub(super) fn error(&mut self, text: &(impl Display + ?Sized)) {
        self.bytes.push(b'-');
        let start = self.bytes.len();
        // Writing to a vector cannot fail.
        let _ = write!(self.bytes, "{text}");
        // An error is one line, whatever the client has sent.
        let line = self.bytes.iter_mut().skip(start);
        line.filter(|byte| matches!(byte, b'\r' | b'\n')).for_each(|byte| *byte = b' ');
        self.line_end();
    }

    /// Replaces the bytes of a reply by an error.
    pub(super) fn replace_by_error(&mut self, reply: Range<usize>, text: &(impl Display + ?Sized)) {
        let end = reply.end.min(self.bytes.len());
        let rest = self.bytes.split_off(end);
        self.bytes.truncate(reply.start);
        self.error(text);
        self.append(&rest);
    }

    pub(super) fn integer(&mut self, number: impl itoa::Integer) {
        self.header(b':', number);
    }

    /// Appends a binary-safe string.
    pub(super) fn bulk(&mut self, bytes: impl AsRef<[u8]>) {
        let bytes = bytes.as_ref();
        self.header(b'$', bytes.len());
        self.bytes.extend_from_slice(bytes);
        self.line_end();
    }

    /// Appends a text that RESP3 marks as plain text for people.
    pub(super) fn verbatim(&mut self, text: &str) {
        match self.version {
            Version::Resp2 => self.bulk(text),
            Version::Resp3 => {
                self.header(b'=', text.len().saturating_add(4));
                self.bytes.extend_from_slice(b"txt:");
                self.bytes.extend_from_slice(text.as_bytes());
                self.line_end();
            }
        }
    }

    /// Appends the absent string.
    pub(super) fn null(&mut self) {
        self.bytes.extend_from_slice(match self.version {
            Version::Resp2 => b"$-1\r\n",
            Version::Resp3 => b"_\r\n",
        });
    }

    /// Appends the absent array.
    pub(super) fn null_array(&mut self) {
        self.bytes.extend_from_slice(match self.version {
            Version::Resp2 => b"*-1\r\n",
            Version::Resp3 => b"_\r\n",
        });
    }

    /// Begins an array of `length` items, which follow.
    pub(super) fn array(&mut self, length: usize) {
        self.header(b'*', length);
    }

    /// Begins a set of `length` items, which follow; an array in RESP2.
    pub(super) fn set(&mut self, length: usize) {
        let kind = if self.version == Version::Resp3 { b'~' } else { b'*' };
        self.header(kind, length);
    }

    /// Begins a map of `length` keys and values, which follow; a flat array in RESP2.
    pub(super) fn map(&mut self, length: usize) {
        match self.version {
            Version::Resp2 => self.header(b'*', length.saturating_mul(2)),
            Version::Resp3 => self.header(b'%', length),
        }
    }

    fn header(&mut self, kind: u8, number: impl itoa::Integer) {
        match *itoa::Buffer::new().format(number).as_bytes() {
            // Most numbers have one or two digits: one write.
            [ones] => self.bytes.extend_from_slice(&[kind, ones, b'\r', b'\n']),
            [tens, ones] => self.bytes.extend_from_slice(&[kind, tens, ones, b'\r', b'\n']),
            ref digits => {
                self.bytes.push(kind);
                self.bytes.extend_from_slice(digits);
                self.line_end();
            }
        }
    }

    fn line_end(&mut self) {
        self.bytes.extend_from_slice(b"\r\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(version: Version, write: impl FnOnce(&mut Replies)) -> String {
        let mut replies = Replies::default();
        replies.set_version(version);
        write(&mut replies);
        String::from_utf8(replies.as_bytes().to_vec()).unwrap()
    }

    #[test]
    fn both_versions_encode_the_same_values() {
        let all = |replies: &mut Replies| {
            replies.status("OK");
            replies.integer(-7_i64);
            replies.bulk(b"a\r\nb");
            replies.verbatim("text");
            replies.null();
            replies.null_array();
            replies.array(1);
            replies.set(1);
            replies.map(1);
        };
        assert_eq!(
            encoded(Version::Resp2, all),
            "+OK\r\n:-7\r\n$4\r\na\r\nb\r\n$4\r\ntext\r\n$-1\r\n*-1\r\n*1\r\n*1\r\n*2\r\n"
        );
        assert_eq!(
            encoded(Version::Resp3, all),
            "+OK\r\n:-7\r\n$4\r\na\r\nb\r\n=8\r\ntxt:text\r\n_\r\n_\r\n*1\r\n~1\r\n%1\r\n"
        );
    }

    #[test]
    fn an_error_is_one_line() {
        let error = encoded(Version::Resp2, |replies| replies.error("ERR a\r\n+OK\r\n"));
        assert_eq!(error, "-ERR a  +OK  \r\n");
    }
}
