//! A client connection with one request in flight.

use std::io::{ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::time::Instant;

use mio::net::TcpStream;
use mio::{Interest, Registry, Token};

use super::request::{Numbers, Request};
use super::response::Response;
use crate::Outcome;

/// Buffer size in bytes, larger than any expected response or error.
const BUFFER_BYTES: usize = 16 << 10;

/// A keep-alive connection.
#[derive(Debug)]
pub(super) struct Connection {
    stream: TcpStream,
    request: Request,
    received: Box<[u8]>,
    filled: usize,
    sent: Instant,
}

/// A complete response.
#[derive(Debug, Clone, Copy)]
pub(super) struct Received {
    /// When the request was sent.
    pub(super) sent: Instant,
    /// Length of the body in bytes.
    pub(super) body_bytes: usize,
}

impl Connection {
    /// Connects and registers the socket for read events with this token.
    pub(super) fn open(
        address: SocketAddr,
        request: Request,
        registry: &Registry,
        token: Token,
    ) -> Outcome<Self> {
        let stream = std::net::TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        let mut stream = TcpStream::from_std(stream);
        registry.register(&mut stream, token, Interest::READABLE)?;
        let received = vec![0; BUFFER_BYTES].into_boxed_slice();
        Ok(Self { stream, request, received, filled: 0, sent: Instant::now() })
    }

    /// Sends a request. `now` is recorded as the time of sending.
    pub(super) fn send(&mut self, numbers: Numbers, now: Instant) -> Outcome<()> {
        let bytes = self.request.with_numbers(numbers);
        self.sent = now;
        // The previous request was answered, so the send buffer is empty and takes the whole
        // request.
        if self.stream.write(bytes)? == bytes.len() {
            return Ok(());
        }
        Err("the request did not fit into the send buffer".into())
    }

    /// Reads available bytes; returns a response once it is complete.
    ///
    /// Events are edge-triggered. It is safe to stop reading at the end of a response: the next
    /// bytes arrive only after the next request, with their own event.
    pub(super) fn receive(&mut self) -> Outcome<Option<Received>> {
        loop {
            let buffer = self.received.get_mut(self.filled..).unwrap_or_default();
            if buffer.is_empty() {
                return Err(format!("response of more than {BUFFER_BYTES} bytes").into());
            }
            match self.stream.read(buffer) {
                Ok(0) => return Err("the server closed the connection".into()),
                Ok(count) => self.filled += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(error.into()),
            }
            let received = self.received.get(..self.filled).unwrap_or_default();
            if let Some(response) = Response::parse(received)? {
                response.ensure_allowed()?;
                let received = Received { sent: self.sent, body_bytes: response.body.len() };
                self.filled = 0;
                return Ok(Some(received));
            }
        }
    }
}
