//! gRPC calls of the load generator: unary calls over one HTTP/2 connection.

use super::call::{ALLOWED, Call};
use super::frame::{ACK, END_HEADERS, END_STREAM, Frame, HEADER_BYTES, Kind, PREFACE};
use crate::Outcome;
use crate::load::codec::{Codec, Part};
use crate::load::template::{Numbers, Template};

/// The name of the protocol for the load generator.
pub const PROTOCOL: &str = "grpc";

/// Bytes that either side may send at first (RFC 9113, section 6.9.2).
const INITIAL_WINDOW: u32 = 65_535;
/// The largest window. A run receives far fewer bytes on a connection, so it is never extended.
const LARGEST_WINDOW: u32 = (1 << 31) - 1;

/// Length of the header of a gRPC message in bytes: compression and length.
const MESSAGE_HEADER_BYTES: usize = 5;

/// Header fields that the first request adds to the table of the server, with the index of a known name in the static
/// table of HPACK (RFC 7541); the names of others follow. Strings are shorter than 127 bytes.
const FIELDS: [(u8, &str, &str); 4] = [
    (1, "", "127.0.0.1"),
    (0, "te", "trailers"),
    (31, "", "application/grpc"),
    (58, "", "tollgate-bench"),
];
/// `:method: POST` and `:scheme: http` of the static table.
const STATIC_FIELDS: [u8; 2] = [0x83, 0x86];
/// Index of `:path` in the static table.
const PATH: u8 = 4;
/// The header fields as the server has them in its table after the first request: the last one has index 62.
const KNOWN_FIELDS: [u8; 7] = [0x83, 0x86, 0x80 | 66, 0x80 | 65, 0x80 | 64, 0x80 | 63, 0x80 | 62];

/// Sends calls on streams of one connection.
#[derive(Debug)]
pub struct GrpcCodec {
    /// The first request, with complete header fields, and all others, with their indices.
    requests: [Request; 2],
    next_stream: u32,
    /// Open streams, and whether the message of the response has arrived.
    open: Vec<(u32, bool)>,
    /// Bytes of messages that may be sent before the server extends its window.
    window: u32,
    /// The message of the last response.
    message: Vec<u8>,
}

#[derive(Debug)]
struct Request {
    template: Template,
    header_block_bytes: usize,
    data_bytes: u32,
}

impl Request {
    fn new(header_block: &[u8], message: &[u8]) -> Outcome<Self> {
        let length = u32::try_from(message.len())?.to_be_bytes();
        let data = [&[0][..], &length, message].concat();
        let frame = |kind, flags, payload| Frame { kind, flags, stream: 0, payload };
        let mut bytes = Vec::new();
        frame(Kind::Headers, END_HEADERS, header_block).write(&mut bytes);
        frame(Kind::Data, END_STREAM, &data).write(&mut bytes);
        let (template, data_bytes) = (Template::new(bytes), u32::try_from(data.len())?);
        Ok(Self { template, header_block_bytes: header_block.len(), data_bytes })
    }

    /// Appends the request on a stream.
    fn write(&self, stream: u32, numbers: Numbers, out: &mut Vec<u8>) {
        let headers = out.len();
        self.template.write(numbers, out);
        for frame in [headers, headers + HEADER_BYTES + self.header_block_bytes] {
            let places = out.iter_mut().skip(frame + HEADER_BYTES - 4);
            for (place, byte) in places.zip(stream.to_be_bytes()) {
                *place = byte;
            }
        }
    }
}

impl GrpcCodec {
    /// Creates a codec for a call.
    ///
    /// # Errors
    /// The request cannot be encoded.
    pub fn new(call: Call) -> Outcome<Self> {
        let message = call.request()?;
        let first = Request::new(&new_fields(call.path())?, &message)?;
        let requests = [first, Request::new(&KNOWN_FIELDS, &message)?];
        let (open, message) = (Vec::new(), Vec::new());
        Ok(Self { requests, next_stream: 1, open, window: INITIAL_WINDOW, message })
    }

    /// Returns the message of the last response.
    #[must_use]
    pub fn message(&self) -> &[u8] {
        &self.message
    }

    /// Checks the message of a response, which must be in one frame.
    fn receive_message(&mut self, frame: &Frame<'_>) -> Outcome<()> {
        let Some((header, message)) = frame.payload.split_first_chunk::<MESSAGE_HEADER_BYTES>()
        else {
            return Ok(());
        };
        let [compression, length @ ..] = *header;
        let is_complete = u32::try_from(message.len())? == u32::from_be_bytes(length);
        if compression != 0 || !is_complete || !message.starts_with(&ALLOWED) {
            return Err(format!("unexpected response: {message:02x?}").into());
        }
        let stream = self.open.iter_mut().find(|(stream, _)| *stream == frame.stream);
        stream.ok_or("a message on a closed stream")?.1 = true;
        self.message.clear();
        self.message.extend_from_slice(message);
        Ok(())
    }

    /// Closes the stream after its trailers and returns the length of the message.
    fn close(&mut self, frame: &Frame<'_>) -> Outcome<usize> {
        let place = self.open.iter().position(|(stream, _)| *stream == frame.stream);
        let (_, has_message) = self.open.swap_remove(place.ok_or("trailers on a closed stream")?);
        if has_message {
            return Ok(self.message.len());
        }
        // Strings in headers are mostly compressed.
        Err(format!("the call failed; compressed headers: {:02x?}", frame.payload).into())
    }
}

impl Codec for GrpcCodec {
    fn open(&mut self, out: &mut Vec<u8>) {
        out.extend_from_slice(PREFACE);
        Frame { kind: Kind::Settings, flags: 0, stream: 0, payload: &[] }.write(out);
        let payload = &(LARGEST_WINDOW - INITIAL_WINDOW).to_be_bytes();
        Frame { kind: Kind::WindowUpdate, flags: 0, stream: 0, payload }.write(out);
    }

    fn encode(&mut self, numbers: Numbers, out: &mut Vec<u8>) -> Outcome<()> {
        let [first, next] = &self.requests;
        let request = if self.next_stream == 1 { first } else { next };
        self.window = self.window.checked_sub(request.data_bytes).ok_or("the window is full")?;
        request.write(self.next_stream, numbers, out);
        self.open.push((self.next_stream, false));
        self.next_stream += 2;
        Ok(())
    }

    fn decode(&mut self, received: &[u8], out: &mut Vec<u8>) -> Outcome<Option<Part>> {
        let Some(frame) = Frame::parse(received) else { return Ok(None) };
        let mut payload = None;
        match frame.kind {
            Kind::Data => self.receive_message(&frame)?,
            Kind::Headers if frame.flags & END_STREAM != 0 => payload = Some(self.close(&frame)?),
            Kind::Settings | Kind::Ping if frame.flags & ACK == 0 => {
                let payload = if frame.kind == Kind::Ping { frame.payload } else { &[] };
                Frame { flags: ACK, payload, ..frame }.write(out);
            }
            Kind::WindowUpdate if frame.stream == 0 => {
                self.window = self.window.saturating_add(frame.number());
            }
            Kind::Reset => return Err(format!("the server reset a stream: {frame:?}").into()),
            Kind::GoAway => {
                let text = String::from_utf8_lossy(frame.payload.get(8..).unwrap_or_default());
                return Err(format!("the server ended the connection: {text}").into());
            }
            _ => {}
        }
        Ok(Some(Part { bytes: frame.bytes(), payload }))
    }
}

/// Encodes the header fields of a request so that the server adds them to its table.
fn new_fields(path: &str) -> Outcome<Vec<u8>> {
    let mut block = STATIC_FIELDS.to_vec();
    for (index, name, value) in [(PATH, "", path)].into_iter().chain(FIELDS) {
        block.push(0x40 | index);
        for text in [name, value].into_iter().filter(|text| !text.is_empty()) {
            block.push(u8::try_from(text.len())?);
            block.extend_from_slice(text.as_bytes());
        }
    }
    Ok(block)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OK: &[u8] = &[0, 0, 0, 0, 4, 0x08, 0x01, 0x18, 0x07];

    fn frame(kind: Kind, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        Frame { kind, flags, stream, payload }.write(&mut bytes);
        bytes
    }

    fn codec_with_calls(calls: u32) -> GrpcCodec {
        let mut codec = GrpcCodec::new(Call::ShouldRateLimit).unwrap();
        for key in 0..calls {
            codec.encode(Numbers { key, rule: 0 }, &mut Vec::new()).unwrap();
        }
        codec
    }

    #[test]
    fn requests_are_headers_and_a_message_on_new_streams() {
        let mut codec = GrpcCodec::new(Call::Throttle).unwrap();
        for (key, stream) in [(1, 1), (2, 3), (3, 5)] {
            let mut out = Vec::new();
            codec.encode(Numbers { key, rule: 0 }, &mut out).unwrap();
            let headers = Frame::parse(&out).unwrap();
            let data = Frame::parse(&out[headers.bytes()..]).unwrap();
            assert_eq!([headers.stream, data.stream], [stream; 2]);
            assert_eq!((headers.kind, data.kind), (Kind::Headers, Kind::Data));
            let text = String::from_utf8_lossy(data.payload);
            assert!(text.contains(&format!("user:{key:08}")), "{text}");
        }
    }

    #[test]
    fn responses_may_arrive_in_any_order() {
        let mut codec = codec_with_calls(2);
        let mut payloads = Vec::new();
        for (kind, flags, stream, payload) in [
            (Kind::Headers, END_HEADERS, 3, &[0x88][..]),
            (Kind::Headers, END_HEADERS, 1, &[0x88]),
            (Kind::Data, 0, 3, OK),
            (Kind::Data, 0, 1, OK),
            (Kind::Headers, END_HEADERS | END_STREAM, 3, &[]),
            (Kind::Headers, END_HEADERS | END_STREAM, 1, &[]),
        ] {
            let bytes = frame(kind, flags, stream, payload);
            payloads.push(codec.decode(&bytes, &mut Vec::new()).unwrap().unwrap().payload);
        }
        assert_eq!(payloads, [None, None, None, None, Some(4), Some(4)]);
        assert_eq!(codec.message(), &OK[5..]);
    }

    #[test]
    fn settings_and_pings_are_acknowledged() {
        let mut codec = codec_with_calls(1);
        for (kind, payload, answer) in
            [(Kind::Settings, &[0; 6][..], &[][..]), (Kind::Ping, &[7; 8], &[7; 8])]
        {
            for (flags, expected) in [(0, frame(kind, ACK, 0, answer)), (ACK, Vec::new())] {
                let mut out = Vec::new();
                codec.decode(&frame(kind, flags, 0, payload), &mut out).unwrap().unwrap();
                assert_eq!(out, expected, "{kind:?}");
            }
        }
    }

    #[test]
    fn failed_calls_are_errors() {
        let over_limit = &[0, 0, 0, 0, 2, 0x08, 0x02];
        for (bytes, message) in [
            (frame(Kind::Data, 0, 1, over_limit), "unexpected response: [08, 02]"),
            (frame(Kind::Headers, END_STREAM, 1, &[]), "the call failed"),
            (frame(Kind::Data, 0, 9, OK), "a message on a closed stream"),
            (frame(Kind::Reset, 0, 1, &[0; 4]), "the server reset a stream"),
            (frame(Kind::GoAway, 0, 0, b"12345678calm"), "the server ended the connection: calm"),
        ] {
            let error = codec_with_calls(1).decode(&bytes, &mut Vec::new()).unwrap_err();
            assert!(error.to_string().starts_with(message), "{error}");
        }
    }

    #[test]
    fn requests_need_a_window() {
        let mut codec = codec_with_calls(1);
        codec.window = 0;
        assert!(codec.encode(Numbers { key: 1, rule: 0 }, &mut Vec::new()).is_err());
        let update = frame(Kind::WindowUpdate, 0, 0, &100_u32.to_be_bytes());
        codec.decode(&update, &mut Vec::new()).unwrap();
        codec.encode(Numbers { key: 1, rule: 0 }, &mut Vec::new()).unwrap();
    }
}
