//! RESP requests of the load generator.

use super::command::Command;
use crate::Outcome;
use crate::load::codec::{Codec, Part};
use crate::load::template::{Numbers, Template};

/// The name of the protocol for the load generator.
pub const PROTOCOL: &str = "resp";

/// Sends one command in pipelines.
#[derive(Debug, Clone)]
pub struct RespCodec {
    request: Template,
    allowed: &'static [u8],
    /// Length of the last reply in bytes. Most replies have the same length.
    last_bytes: usize,
}

impl RespCodec {
    /// Creates a codec for a command.
    #[must_use]
    pub fn new(command: Command) -> Self {
        Self {
            request: Template::new(command.request()),
            allowed: command.allowed(),
            last_bytes: 0,
        }
    }
}

impl Codec for RespCodec {
    fn encode(&mut self, numbers: Numbers, out: &mut Vec<u8>) -> Outcome<()> {
        self.request.write(numbers, out);
        Ok(())
    }

    fn decode(&mut self, received: &[u8], _out: &mut Vec<u8>) -> Outcome<Option<Part>> {
        let Some(bytes) = reply_bytes(received, self.last_bytes) else { return Ok(None) };
        self.last_bytes = bytes;
        if !received.starts_with(self.allowed) {
            let reply = received.get(..bytes).unwrap_or_default();
            let text = String::from_utf8_lossy(reply).replace("\r\n", " ");
            return Err(format!("unexpected reply: {}", text.trim_end()).into());
        }
        Ok(Some(Part { bytes, payload: Some(bytes) }))
    }
}

/// Returns the length of the first reply in bytes, if it is complete: one line, or an array of up to nine lines. Tries
/// `likely` first: to count line ends is much faster than to find one after the other.
fn reply_bytes(received: &[u8], likely: usize) -> Option<usize> {
    let lines = match received {
        [b'*', count @ b'1'..=b'9', b'\r', ..] => usize::from(count - b'0'),
        _ => 0,
    };
    if let Some(reply @ [.., b'\n']) = received.get(..likely) {
        let ends = reply.iter().filter(|byte| **byte == b'\n').count();
        if ends == lines + 1 {
            return Some(likely);
        }
    }
    let mut ends = received.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
    ends.nth(lines).map(|(end, _)| end + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPLY: &[u8] = b"*5\r\n:0\r\n:1000001\r\n:1000000\r\n:-1\r\n:3600\r\n";

    fn decode(command: Command, received: &[u8]) -> Outcome<Option<usize>> {
        let part = RespCodec::new(command).decode(received, &mut Vec::new())?;
        Ok(part.map(|part| part.bytes))
    }

    #[test]
    fn reply_is_complete_only_with_its_last_byte() {
        for end in 0..REPLY.len() {
            assert_eq!(decode(Command::ClThrottle, &REPLY[..end]).unwrap(), None, "{end}");
        }
        let two = [REPLY, REPLY].concat();
        assert_eq!(decode(Command::ClThrottle, &two).unwrap(), Some(REPLY.len()));
        assert_eq!(decode(Command::Incr, b":1\r\n:2\r\n").unwrap(), Some(4));
    }

    #[test]
    fn length_of_the_last_reply_does_not_matter() {
        let other = b":1\r\n:22\r\n:3\r\n";
        for likely in 0..other.len() + 2 {
            assert_eq!(reply_bytes(other, likely), Some(4), "{likely}");
            assert_eq!(reply_bytes(REPLY, likely), Some(REPLY.len()), "{likely}");
            assert_eq!(reply_bytes(b":1\r", likely), None, "{likely}");
        }
    }

    #[test]
    fn reply_that_does_not_allow_is_an_error() {
        let refused = "unexpected reply: *5 :0 :1000001 :1000000 :-1 :3600";
        assert_eq!(decode(Command::Throttle, REPLY).unwrap_err().to_string(), refused);
        let error = decode(Command::ClThrottle, b"-ERR unknown\r\n").unwrap_err();
        assert_eq!(error.to_string(), "unexpected reply: -ERR unknown");
    }
}
