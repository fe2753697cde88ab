//! A client connection with a fixed number of requests in flight.

use std::io::{ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::time::Instant;

use mio::net::TcpStream;
use mio::{Interest, Registry, Token};

use super::codec::Codec;
use super::template::Numbers;
use crate::Outcome;

/// Buffer size in bytes, larger than the expected responses to the requests in flight, or an error.
const BUFFER_BYTES: usize = 64 << 10;

/// A connection that sends several requests in one write.
#[derive(Debug)]
pub(super) struct Connection<C> {
    stream: TcpStream,
    codec: C,
    received: Box<[u8]>,
    filled: usize,
    out: Vec<u8>,
    in_flight: u32,
    sent: Instant,
}

/// Responses that arrived together.
#[derive(Debug, Clone, Copy)]
pub(super) struct Received {
    /// When the requests were sent.
    pub(super) sent: Instant,
    /// The number of responses.
    pub(super) responses: u32,
    /// Length of the last response without its framing, in bytes.
    pub(super) payload_bytes: usize,
}

impl<C: Codec> Connection<C> {
    /// Connects and registers the socket for read events with this token.
    pub(super) fn open(
        address: SocketAddr,
        mut codec: C,
        registry: &Registry,
        token: Token,
    ) -> Outcome<Self> {
        let stream = std::net::TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        let mut stream = TcpStream::from_std(stream);
        registry.register(&mut stream, token, Interest::READABLE)?;
        let mut out = Vec::new();
        codec.open(&mut out);
        let received = vec![0; BUFFER_BYTES].into_boxed_slice();
        let sent = Instant::now();
        Ok(Self { stream, codec, received, filled: 0, out, in_flight: 0, sent })
    }

    /// Returns whether all requests are answered.
    pub(super) fn is_idle(&self) -> bool {
        self.in_flight == 0
    }

    /// Adds a request to the next [`Connection::send`].
    pub(super) fn add(&mut self, numbers: Numbers) -> Outcome<()> {
        self.in_flight += 1;
        self.codec.encode(numbers, &mut self.out)
    }

    /// Sends the added requests. `now` is recorded as the time of sending.
    pub(super) fn send(&mut self, now: Instant) -> Outcome<()> {
        self.sent = now;
        self.flush()
    }

    fn flush(&mut self) -> Outcome<()> {
        // Earlier requests were answered, so the send buffer is empty and takes all bytes.
        if self.stream.write(&self.out)? != self.out.len() {
            return Err("the requests did not fit into the send buffer".into());
        }
        self.out.clear();
        Ok(())
    }

    /// Reads available bytes and returns their responses.
    ///
    /// Events are edge-triggered. It is safe to stop reading when all requests are answered: the next response arrives
    /// only after the next request, with its own event.
    pub(super) fn receive(&mut self) -> Outcome<Received> {
        let mut received = Received { sent: self.sent, responses: 0, payload_bytes: 0 };
        while !self.is_idle() {
            let buffer = self.received.get_mut(self.filled..).unwrap_or_default();
            if buffer.is_empty() {
                return Err(format!("response of more than {BUFFER_BYTES} bytes").into());
            }
            match self.stream.read(buffer) {
                Ok(0) => return Err("the server closed the connection".into()),
                Ok(count) => self.filled += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(error.into()),
            }
            self.decode(&mut received)?;
        }
        if !self.out.is_empty() && !self.is_idle() {
            self.flush()?;
        }
        Ok(received)
    }

    /// Decodes the complete parts in the buffer and keeps the rest.
    fn decode(&mut self, received: &mut Received) -> Outcome<()> {
        let mut start = 0;
        while start < self.filled {
            let bytes = self.received.get(start..self.filled).unwrap_or_default();
            let Some(part) = self.codec.decode(bytes, &mut self.out)? else { break };
            start += part.bytes;
            let Some(payload_bytes) = part.payload else { continue };
            if self.is_idle() {
                return Err("a response without a request".into());
            }
            self.in_flight -= 1;
            received.responses += 1;
            received.payload_bytes = payload_bytes;
        }
        self.received.copy_within(start..self.filled, 0);
        self.filled -= start;
        Ok(())
    }
}
