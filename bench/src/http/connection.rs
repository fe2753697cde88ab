//! One socket with one request on its way.

use std::io::{ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::time::Instant;

use mio::net::TcpStream;
use mio::{Interest, Registry, Token};

use super::answer::Answer;
use super::request::{Numbers, Request};
use crate::Outcome;

/// More than any answer that is expected, or any problem worth showing.
const ROOM: usize = 16 << 10;

/// A connection that is kept alive.
#[derive(Debug)]
pub(super) struct Connection {
    stream: TcpStream,
    request: Request,
    received: Box<[u8]>,
    filled: usize,
    sent: Instant,
}

/// A whole answer has come.
#[derive(Debug, Clone, Copy)]
pub(super) struct Received {
    /// When its request was sent.
    pub(super) sent: Instant,
    /// How long its body was.
    pub(super) body_bytes: usize,
}

impl Connection {
    /// Connects, and asks for the readiness of the socket under this token.
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
        let received = vec![0; ROOM].into_boxed_slice();
        Ok(Self { stream, request, received, filled: 0, sent: Instant::now() })
    }

    /// Sends a request; the time it is given counts as the time of sending.
    pub(super) fn send(&mut self, numbers: Numbers, now: Instant) -> Outcome<()> {
        let bytes = self.request.about(numbers);
        self.sent = now;
        // The last request was answered, so the socket's buffer is empty and takes this one whole.
        if self.stream.write(bytes)? == bytes.len() {
            return Ok(());
        }
        Err("a request did not fit into its socket's buffer".into())
    }

    /// Reads what has come.
    ///
    /// Readiness is told once per arrival. Nothing is read beyond the end of an answer, since nothing
    /// more can come before the next request, whose answer is an arrival of its own.
    pub(super) fn receive(&mut self) -> Outcome<Option<Received>> {
        loop {
            let room = self.received.get_mut(self.filled..).unwrap_or_default();
            if room.is_empty() {
                return Err(format!("an answer of more than {ROOM} bytes").into());
            }
            match self.stream.read(room) {
                Ok(0) => return Err("the server closed a connection".into()),
                Ok(count) => self.filled += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(error.into()),
            }
            let received = self.received.get(..self.filled).unwrap_or_default();
            if let Some(answer) = Answer::parse(received)? {
                answer.must_allow()?;
                let received = Received { sent: self.sent, body_bytes: answer.body.len() };
                self.filled = 0;
                return Ok(Some(received));
            }
        }
    }
}
