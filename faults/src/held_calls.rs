//! gRPC calls that a client begins and never completes, all on one HTTP/2 connection.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use tollgate_testkit::http2::{
    ACK, DATA, END_HEADERS, END_STREAM, GOAWAY, HEADERS, PING, RST_STREAM, SETTINGS, WINDOW_UPDATE,
    block, call_headers, frame, hello,
};
use tollgate_testkit::wait::MAX_WAIT;

use crate::canary::CHECK_TOKEN;

/// The number of calls on one connection: the maximum of a node.
pub const CALLS: u32 = 100;

/// The identifier of the setting `SETTINGS_MAX_CONCURRENT_STREAMS`.
const MAX_CONCURRENT_STREAMS: u16 = 3;

/// The connection window before the node announces more, in bytes.
const INITIAL_WINDOW: u32 = 65_535;

/// The reset of a call that the node has answered before the client ended it.
const NO_ERROR: u32 = 0;

/// The payload of a PING that the client sends.
const PAYLOAD: [u8; 8] = *b"heldcall";

/// The part of a call that is sent.
#[derive(Debug, Clone, Default)]
pub struct UnfinishedCall {
    /// Headers besides those of every call.
    pub headers: Vec<(&'static str, Vec<u8>)>,
    /// The begin of the body: at most one frame. All bodies of a connection must fit into its window.
    pub body: Vec<u8>,
}

impl UnfinishedCall {
    /// The frames of [`CALLS`] such calls.
    fn frames(&self) -> Vec<u8> {
        let mut headers = call_headers();
        headers.push(("authorization".to_owned(), format!("Bearer {CHECK_TOKEN}").into()));
        let more = self.headers.iter().map(|(name, value)| ((*name).to_owned(), value.clone()));
        headers.extend(more);
        let head = block(&headers);
        let call = |number: u32| {
            let stream = 2 * number + 1;
            let mut bytes = frame(HEADERS, END_HEADERS, stream, &head);
            if !self.body.is_empty() {
                bytes.extend(frame(DATA, 0, stream, &self.body));
            }
            bytes
        };
        (0..CALLS).flat_map(call).collect()
    }
}

/// One connection with [`CALLS`] unfinished calls.
#[derive(Debug)]
pub struct HeldCalls {
    stream: TcpStream,
    unread: Vec<u8>,
    begun: Instant,
    /// The number of calls that the node has ended with an error.
    ended: u32,
}

impl HeldCalls {
    /// Connects, waits until the node permits all calls and their bodies, sends them, and waits until the node has read them.
    ///
    /// # Errors
    /// As for [`count_ended`](Self::count_ended), or the connection is refused.
    ///
    /// # Panics
    /// If the node permits fewer than [`CALLS`] calls.
    pub fn open(address: SocketAddr, call: &UnfinishedCall) -> io::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(MAX_WAIT))?;
        stream.set_write_timeout(Some(MAX_WAIT))?;
        stream.set_nodelay(true)?;
        let mut held = Self { stream, unread: Vec::new(), begun: Instant::now(), ended: 0 };
        held.stream.write_all(&hello())?;
        held.wait_until_permitted(call)?;
        held.begun = Instant::now();
        // Fails if the node closes the connection, which the next read reports with its reason.
        let _ = held.stream.write_all(&call.frames());
        held.count_ended()?;
        Ok(held)
    }

    /// The time since the calls were sent.
    pub fn age(&self) -> Duration {
        self.begun.elapsed()
    }

    /// Waits until the node has read everything. Returns the number of those that it has ended with an error.
    ///
    /// # Errors
    /// The node has closed the connection, or reset or decided a call.
    pub fn count_ended(&mut self) -> io::Result<u32> {
        // If it fails, the next read does too, with the reason.
        let _ = self.stream.write_all(&frame(PING, 0, 0, &PAYLOAD));
        loop {
            let frame = self.read_frame()?;
            match frame.kind {
                PING if frame.flags & ACK != 0 && frame.payload == PAYLOAD => {
                    return Ok(self.ended);
                }
                HEADERS if frame.flags & END_STREAM != 0 => self.ended += 1,
                HEADERS | DATA => {
                    let stream = frame.stream;
                    return Err(io::Error::other(format!("a response on stream {stream}")));
                }
                RST_STREAM if frame.number(0) != NO_ERROR => {
                    let (stream, code) = (frame.stream, frame.number(0));
                    return Err(io::Error::other(format!("RST_STREAM {stream}, code {code}")));
                }
                _ => {}
            }
        }
    }

    fn wait_until_permitted(&mut self, call: &UnfinishedCall) -> io::Result<()> {
        let needed = CALLS * u32::try_from(call.body.len()).expect("a short body");
        let (mut window, mut max_calls) = (INITIAL_WINDOW, None);
        while max_calls.is_none() || window < needed {
            let frame = self.read_frame()?;
            match frame.kind {
                SETTINGS if frame.flags & ACK == 0 => {
                    max_calls = Some(frame.setting(MAX_CONCURRENT_STREAMS).unwrap_or(u32::MAX));
                }
                WINDOW_UPDATE if frame.stream == 0 => window += frame.number(0),
                _ => {}
            }
        }
        assert!(max_calls >= Some(CALLS), "the node permits {max_calls:?} calls per connection");
        Ok(())
    }

    /// Reads a frame. GOAWAY is an error.
    fn read_frame(&mut self) -> io::Result<Frame> {
        loop {
            if let Some(frame) = Frame::take(&mut self.unread) {
                if frame.kind == GOAWAY {
                    let code = frame.number(4);
                    return Err(io::Error::other(format!("GOAWAY, code {code}")));
                }
                return Ok(frame);
            }
            let mut bytes = [0; 4096];
            match self.stream.read(&mut bytes)? {
                0 => return Err(ErrorKind::UnexpectedEof.into()),
                read => self.unread.extend(&bytes[..read]),
            }
        }
    }
}

/// A received frame.
#[derive(Debug)]
struct Frame {
    kind: u8,
    flags: u8,
    stream: u32,
    payload: Vec<u8>,
}

impl Frame {
    /// Removes the first frame from `bytes`; `None` if it is incomplete.
    fn take(bytes: &mut Vec<u8>) -> Option<Self> {
        let (head, rest) = bytes.split_first_chunk::<9>()?;
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        let length = usize::try_from(length).expect("24 bits");
        let payload = rest.get(..length)?.to_vec();
        let stream = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
        let frame = Self { kind: head[3], flags: head[4], stream, payload };
        bytes.drain(..9 + length);
        Some(frame)
    }

    /// The 32-bit number at this offset of the payload.
    fn number(&self, at: usize) -> u32 {
        let bytes = self.payload.get(at..).and_then(<[u8]>::first_chunk);
        u32::from_be_bytes(*bytes.expect("the frame has this number"))
    }

    /// The value of a setting.
    fn setting(&self, id: u16) -> Option<u32> {
        let mut settings = self.payload.chunks_exact(6);
        let found = settings.find(|setting| setting[..2] == id.to_be_bytes())?;
        found[2..].first_chunk().map(|value| u32::from_be_bytes(*value))
    }
}

#[cfg(test)]
mod tests {
    use tollgate_testkit::http2::{PING, SETTINGS, frame};

    use super::{Frame, MAX_CONCURRENT_STREAMS};

    #[test]
    fn frames_are_read_one_by_one() {
        let settings = [0, 4, 0, 1, 64, 0, 0, 3, 0, 0, 0, 100];
        let mut bytes = [frame(SETTINGS, 0, 0, &settings), frame(PING, 1, 0, &[7; 8])].concat();
        bytes.pop();
        let first = Frame::take(&mut bytes).expect("a frame");
        assert_eq!(first.setting(MAX_CONCURRENT_STREAMS), Some(100));
        assert_eq!((first.number(2), first.setting(1)), (81_920, None));
        assert!(Frame::take(&mut bytes).is_none());
        bytes.push(7);
        let second = Frame::take(&mut bytes).expect("a frame");
        assert_eq!((second.kind, second.flags, second.stream), (PING, 1, 0));
        assert!(bytes.is_empty());
    }
}
