//! HTTP/2 frames by hand, valid or not, and what a server answers to them.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};

use tollgate_testkit::wait::MAX_WAIT;

use crate::grpc_client::METHOD;

pub(crate) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

pub(crate) const DATA: u8 = 0;
pub(crate) const HEADERS: u8 = 1;
pub(crate) const PRIORITY: u8 = 2;
pub(crate) const RST_STREAM: u8 = 3;
pub(crate) const SETTINGS: u8 = 4;
pub(crate) const PUSH_PROMISE: u8 = 5;
pub(crate) const PING: u8 = 6;
pub(crate) const GOAWAY: u8 = 7;
pub(crate) const WINDOW_UPDATE: u8 = 8;
pub(crate) const CONTINUATION: u8 = 9;

pub(crate) const END_STREAM: u8 = 1;
pub(crate) const ACK: u8 = 1;
pub(crate) const END_HEADERS: u8 = 4;
pub(crate) const PADDED: u8 = 8;
pub(crate) const WITH_PRIORITY: u8 = 32;

/// Maximum payload of a frame, unless the server announces another.
const MAX_FRAME: usize = 16_384;

/// Encodes a frame.
pub(crate) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).expect("a short payload").to_be_bytes();
    let mut bytes = length[1..].to_vec();
    bytes.extend([kind, flags]);
    bytes.extend(stream.to_be_bytes());
    bytes.extend(payload);
    bytes
}

/// The begin of a connection: the preface, empty settings, and the acknowledgement of the server's settings.
pub(crate) fn hello() -> Vec<u8> {
    [PREFACE, &frame(SETTINGS, 0, 0, &[]), &frame(SETTINGS, ACK, 0, &[])].concat()
}

/// Encodes headers as literals, without tables and Huffman codes.
pub(crate) fn block<N: AsRef<[u8]>, V: AsRef<[u8]>>(headers: &[(N, V)]) -> Vec<u8> {
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

/// The headers of a valid call.
pub(crate) fn call_headers() -> Vec<(String, Vec<u8>)> {
    [
        (":method", "POST"),
        (":scheme", "http"),
        (":path", METHOD),
        (":authority", "tollgate"),
        ("te", "trailers"),
        ("content-type", "application/grpc"),
    ]
    .map(|(name, value)| (name.to_owned(), value.as_bytes().to_vec()))
    .to_vec()
}

/// Frames of a message, as data of stream 1 that ends it.
pub(crate) fn data(bytes: &[u8]) -> Vec<u8> {
    let mut chunks: Vec<&[u8]> = bytes.chunks(MAX_FRAME).collect();
    let last = chunks.pop().unwrap_or_default();
    let mut frames: Vec<u8> = chunks.iter().flat_map(|chunk| frame(DATA, 0, 1, chunk)).collect();
    frames.extend(frame(DATA, END_STREAM, 1, last));
    frames
}

/// A message with the prefix of gRPC.
pub(crate) fn message(protobuf: &[u8]) -> Vec<u8> {
    let length = u32::try_from(protobuf.len()).expect("a short message");
    [&[0][..], &length.to_be_bytes(), protobuf].concat()
}

/// What a server answered.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Answer {
    /// Headers without a message: an error, or the head of a response.
    pub(crate) has_headers: bool,
    /// A message, so the call succeeded.
    pub(crate) has_message: bool,
    pub(crate) is_reset: bool,
    pub(crate) has_goaway: bool,
    pub(crate) is_closed: bool,
}

impl Answer {
    /// Returns whether the server refused the input: with an error, a reset or the end of the connection.
    pub(crate) fn is_refusal(self) -> bool {
        !self.has_message
            && (self.has_headers || self.is_reset || self.has_goaway || self.is_closed)
    }
}

/// One connection.
pub(crate) struct RawConnection {
    stream: TcpStream,
    unread: Vec<u8>,
}

impl RawConnection {
    pub(crate) fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).expect("the server accepts connections");
        stream.set_read_timeout(Some(MAX_WAIT)).expect("a timeout");
        stream.set_write_timeout(Some(MAX_WAIT)).expect("a timeout");
        stream.set_nodelay(true).expect("an option");
        Self { stream, unread: Vec::new() }
    }

    /// Sends bytes; false if the server has closed the connection.
    pub(crate) fn send(&mut self, bytes: &[u8]) -> bool {
        self.stream.write_all(bytes).is_ok()
    }

    /// Announces that no more bytes follow.
    pub(crate) fn finish(&self) {
        let _ = self.stream.shutdown(Shutdown::Write);
    }

    /// Waits until the server has read everything sent so far; false at the end of the connection.
    pub(crate) fn ping(&mut self) -> bool {
        self.send(&frame(PING, 0, 0, &[1; 8]))
            && std::iter::from_fn(|| self.next_frame())
                .any(|(kind, flags, _)| (kind, flags) == (PING, ACK))
    }

    /// Reads until stream 1 or the connection ends.
    pub(crate) fn answer(&mut self) -> Answer {
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
    pub(crate) fn is_refused(&mut self) -> bool {
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
    pub(crate) fn read_to_end(&mut self) -> Answer {
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
