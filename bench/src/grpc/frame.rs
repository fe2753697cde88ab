//! HTTP/2 frames (RFC 9113) as far as a load generator needs them.

/// Length of a frame header in bytes.
pub const HEADER_BYTES: usize = 9;

/// What a client sends first, before its settings.
pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Flag of the last frame of a stream in one direction.
pub const END_STREAM: u8 = 0x1;
/// Flag of an acknowledgment of settings or of a ping.
pub const ACK: u8 = 0x1;
/// Flag of a complete header block.
pub const END_HEADERS: u8 = 0x4;

/// The type of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Bytes of a body.
    Data,
    /// Headers or trailers.
    Headers,
    /// The end of a stream by an error.
    Reset,
    /// Settings of the connection.
    Settings,
    /// A ping, or its acknowledgment.
    Ping,
    /// The end of the connection.
    GoAway,
    /// More bytes may be sent.
    WindowUpdate,
    /// Another type, which a client may ignore.
    Other,
}

impl Kind {
    const CODES: [(u8, Self); 7] = [
        (0, Self::Data),
        (1, Self::Headers),
        (3, Self::Reset),
        (4, Self::Settings),
        (6, Self::Ping),
        (7, Self::GoAway),
        (8, Self::WindowUpdate),
    ];

    fn from_code(code: u8) -> Self {
        let known = Self::CODES.into_iter().find(|(known, _)| *known == code);
        known.map_or(Self::Other, |(_, kind)| kind)
    }

    fn code(self) -> u8 {
        let known = Self::CODES.into_iter().find(|(_, kind)| *kind == self);
        known.map_or(u8::MAX, |(code, _)| code)
    }
}

/// A complete frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame<'b> {
    /// The type.
    pub kind: Kind,
    /// The flags.
    pub flags: u8,
    /// The stream; 0 for the connection.
    pub stream: u32,
    /// The content.
    pub payload: &'b [u8],
}

impl<'b> Frame<'b> {
    /// Parses the first frame. Returns `None` if it is incomplete.
    #[must_use]
    pub fn parse(bytes: &'b [u8]) -> Option<Self> {
        let (header, rest) = bytes.split_first_chunk::<HEADER_BYTES>()?;
        let [high, middle, low, code, flags, stream @ ..] = *header;
        let length = u32::from_be_bytes([0, high, middle, low]);
        let payload = rest.get(..usize::try_from(length).ok()?)?;
        let stream = u32::from_be_bytes(stream) & !(1 << 31);
        Some(Self { kind: Kind::from_code(code), flags, stream, payload })
    }

    /// Appends the frame. Its payload must be shorter than 16 MiB.
    pub fn write(&self, out: &mut Vec<u8>) {
        let length = u32::try_from(self.payload.len()).unwrap_or(u32::MAX);
        out.extend_from_slice(length.to_be_bytes().get(1..).unwrap_or_default());
        out.extend_from_slice(&[self.kind.code(), self.flags]);
        out.extend_from_slice(&self.stream.to_be_bytes());
        out.extend_from_slice(self.payload);
    }

    /// Returns the length in bytes, including the header.
    #[must_use]
    pub fn bytes(&self) -> usize {
        HEADER_BYTES + self.payload.len()
    }

    /// Returns the number in the first four bytes of the payload, without its reserved bit.
    #[must_use]
    pub fn number(&self) -> u32 {
        let number = self.payload.first_chunk().copied().unwrap_or_default();
        u32::from_be_bytes(number) & !(1 << 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frame_round_trips_and_needs_its_last_byte() {
        let payload = [7; 300];
        for (_, kind) in Kind::CODES {
            let frame = Frame { kind, flags: END_STREAM, stream: 70_001, payload: &payload };
            let mut bytes = Vec::new();
            frame.write(&mut bytes);
            assert_eq!(bytes.len(), frame.bytes());
            assert_eq!(Frame::parse(&bytes[..bytes.len() - 1]), None);
            bytes.push(0);
            assert_eq!(Frame::parse(&bytes), Some(frame));
        }
    }

    #[test]
    fn numbers_have_31_bits() {
        let frame = Frame::parse(&[0, 0, 4, 8, 0, 0, 0, 0, 0, 0x80, 0, 1, 0]).unwrap();
        assert_eq!((frame.kind, frame.number()), (Kind::WindowUpdate, 256));
    }
}
