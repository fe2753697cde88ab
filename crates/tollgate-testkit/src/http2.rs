//! HTTP/2 frames by hand, valid or not, and what a server answers to them.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};

use crate::wait::MAX_WAIT;

/// The preface of a client.
pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// A kind of frame.
pub const DATA: u8 = 0;
/// A kind of frame.
pub const HEADERS: u8 = 1;
/// A kind of frame.
pub const PRIORITY: u8 = 2;
/// A kind of frame.
pub const RST_STREAM: u8 = 3;
/// A kind of frame.
pub const SETTINGS: u8 = 4;
/// A kind of frame.
pub const PUSH_PROMISE: u8 = 5;
/// A kind of frame.
pub const PING: u8 = 6;
/// A kind of frame.
pub const GOAWAY: u8 = 7;
/// A kind of frame.
pub const WINDOW_UPDATE: u8 = 8;
/// A kind of frame.
pub const CONTINUATION: u8 = 9;

/// A flag of frames.
pub const END_STREAM: u8 = 1;
/// A flag of frames.
pub const ACK: u8 = 1;
/// A flag of frames.
pub const END_HEADERS: u8 = 4;
/// A flag of frames.
pub const PADDED: u8 = 8;
/// A flag of frames.
pub const WITH_PRIORITY: u8 = 32;

/// Maximum payload of a frame, unless the server announces another.
const MAX_FRAME: usize = 16_384;

/// The method of Envoy's rate limit service.
pub const SHOULD_RATE_LIMIT: &str = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit";

/// Encodes a frame.
///
/// # Panics
/// If the payload has 4 GiB or more.
pub fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).expect("a short payload").to_be_bytes();
    let mut bytes = length[1..].to_vec();
    bytes.extend([kind, flags]);
    bytes.extend(stream.to_be_bytes());
    bytes.extend(payload);
    bytes
}

/// The begin of a connection: the preface, empty settings, and the acknowledgement of the server's settings.
pub fn hello() -> Vec<u8> {
    [PREFACE, &frame(SETTINGS, 0, 0, &[]), &frame(SETTINGS, ACK, 0, &[])].concat()
}

/// Encodes headers as literals, without tables and Huffman codes.
pub fn block<N: AsRef<[u8]>, V: AsRef<[u8]>>(headers: &[(N, V)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (name, value) in headers {
        bytes.push(0);
        for text in [name.as_ref(), value.as_ref()] {
            integer(&mut bytes, text.len());
            bytes.extend(text);
        }
    }
    bytes
}

/// Encodes the length of a literal: 7 bits, then groups of 7.
fn integer(bytes: &mut Vec<u8>, length: usize) {
    let byte = |number: usize| u8::try_from(number).expect("seven bits");
    if length < 127 {
        return bytes.push(byte(length));
    }
    bytes.push(127);
    let mut rest = length - 127;
    while rest >= 128 {
        bytes.push(byte(rest % 128) | 128);
        rest /= 128;
    }
    bytes.push(byte(rest));
}

/// Encodes the headers of a valid call that opens stream `2 * number + 1`.
pub fn open_stream(number: u32, flags: u8) -> Vec<u8> {
    frame(HEADERS, END_HEADERS | flags, 2 * number + 1, &block(&call_headers()))
}

/// Encodes calls that the client resets at once.
pub fn reset_calls(numbers: std::ops::Range<u32>) -> Vec<u8> {
    let reset = |number: u32| frame(RST_STREAM, 0, 2 * number + 1, &8_u32.to_be_bytes());
    numbers.flat_map(|number| [open_stream(number, 0), reset(number)].concat()).collect()
}

/// The headers of a valid call.
pub fn call_headers() -> Vec<(String, Vec<u8>)> {
    [
        (":method", "POST"),
        (":scheme", "http"),
        (":path", SHOULD_RATE_LIMIT),
        (":authority", "tollgate"),
        ("te", "trailers"),
        ("content-type", "application/grpc"),
    ]
    .map(|(name, value)| (name.to_owned(), value.as_bytes().to_vec()))
    .to_vec()
}

/// Frames of a message, as data of stream 1 that ends it.
pub fn data(bytes: &[u8]) -> Vec<u8> {
    let mut chunks: Vec<&[u8]> = bytes.chunks(MAX_FRAME).collect();
    let last = chunks.pop().unwrap_or_default();
    let mut frames: Vec<u8> = chunks.iter().flat_map(|chunk| frame(DATA, 0, 1, chunk)).collect();
    frames.extend(frame(DATA, END_STREAM, 1, last));
    frames
}

/// A message with the prefix of gRPC.
///
/// # Panics
/// If the message has 4 GiB or more.
pub fn message(protobuf: &[u8]) -> Vec<u8> {
    let length = u32::try_from(protobuf.len()).expect("a short message");
    [&[0][..], &length.to_be_bytes(), protobuf].concat()
}

/// Sends `count` parts, far more than the buffers of a connection hold, until the server closes the connection. Returns
/// false if it has not.
pub fn flood(
    address: SocketAddr,
    begin: &[u8],
    mut next: impl FnMut(u32) -> Vec<u8>,
    count: u32,
) -> bool {
    let mut connection = RawConnection::connect(address);
    connection.send(&[hello(), begin.to_vec()].concat());
    (0..count).any(|number| !connection.send(&next(number)))
}

/// What a server answered.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Answer {
    /// Headers without a message: an error, or the head of a response.
    pub has_headers: bool,
    /// A message, so the call succeeded.
    pub has_message: bool,
    /// A stream was reset.
    pub is_reset: bool,
    /// The server announced the end of the connection.
    pub has_goaway: bool,
    /// The server closed the connection.
    pub is_closed: bool,
}

impl Answer {
    /// Returns whether the server refused the input: with an error, a reset or the end of the connection.
    pub fn is_refusal(self) -> bool {
        !self.has_message
            && (self.has_headers || self.is_reset || self.has_goaway || self.is_closed)
    }
}

/// One connection.
#[derive(Debug)]
pub struct RawConnection {
    stream: TcpStream,
    unread: Vec<u8>,
}

impl RawConnection {
    /// Connects to a server.
    ///
    /// # Panics
    /// If the server does not accept the connection.
    pub fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).expect("the server accepts connections");
        stream.set_read_timeout(Some(MAX_WAIT)).expect("a timeout");
        stream.set_write_timeout(Some(MAX_WAIT)).expect("a timeout");
        stream.set_nodelay(true).expect("an option");
        Self { stream, unread: Vec::new() }
    }

    /// Sends bytes; false if the server has closed the connection.
    pub fn send(&mut self, bytes: &[u8]) -> bool {
        self.stream.write_all(bytes).is_ok()
    }

    /// Announces that no more bytes follow.
    pub fn finish(&self) {
        let _ = self.stream.shutdown(Shutdown::Write);
    }

    /// Waits until the server has read everything sent so far; false at the end of the connection.
    pub fn ping(&mut self) -> bool {
        self.send(&frame(PING, 0, 0, &[1; 8]))
            && std::iter::from_fn(|| self.next_frame())
                .any(|(kind, flags, _)| (kind, flags) == (PING, ACK))
    }

    /// Reads until stream 1 or the connection ends.
    pub fn answer(&mut self) -> Answer {
        let mut answer = Answer::default();
        while let Some((kind, flags, stream)) = self.next_frame() {
            match kind {
                HEADERS if stream == 1 => answer.has_headers = true,
                DATA if stream == 1 => answer.has_message = true,
                RST_STREAM => answer.is_reset = true,
                GOAWAY => answer.has_goaway = true,
                _ => {}
            }
            let has_ended = flags & END_STREAM != 0 && matches!(kind, DATA | HEADERS);
            if stream == 1 && (has_ended || kind == RST_STREAM) {
                return answer;
            }
        }
        Answer { is_closed: true, ..answer }
    }

    /// Waits for a refusal: an error of any stream, or the end of the connection. False if a call succeeds.
    pub fn is_refused(&mut self) -> bool {
        while let Some((kind, flags, _)) = self.next_frame() {
            match kind {
                RST_STREAM | GOAWAY => return true,
                // An error has no message, so its headers are the last frame.
                HEADERS if flags & END_STREAM != 0 => return true,
                DATA => return false,
                _ => {}
            }
        }
        true
    }

    /// Reads until the connection ends.
    pub fn read_to_end(&mut self) -> Answer {
        let mut answer = Answer::default();
        while !answer.is_closed {
            let next = self.answer();
            answer = Answer {
                has_headers: answer.has_headers || next.has_headers,
                has_message: answer.has_message || next.has_message,
                is_reset: answer.is_reset || next.is_reset,
                has_goaway: answer.has_goaway || next.has_goaway,
                is_closed: next.is_closed,
            };
        }
        answer
    }

    /// Reads one frame: its kind, flags and stream; `None` at the end of the connection.
    fn next_frame(&mut self) -> Option<(u8, u8, u32)> {
        loop {
            if let Some((head, rest)) = self.unread.split_first_chunk::<9>() {
                let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
                let length = usize::try_from(length).expect("24 bits");
                if rest.len() >= length {
                    let stream = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
                    let found = (head[3], head[4], stream);
                    self.unread.drain(..9 + length);
                    return Some(found);
                }
            }
            let mut bytes = [0; 4096];
            match self.stream.read(&mut bytes) {
                Ok(0) => return None,
                Ok(read) => self.unread.extend(&bytes[..read]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    panic!("the server neither answers nor closes the connection")
                }
                Err(_) => return None,
            }
        }
    }
}
