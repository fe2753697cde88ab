//! Slow clients: many connections that send or read too slowly.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use crate::canary::contains_secret;
use crate::client::{JSON, begin, head};
use crate::node::Node;
use crate::waiting::wait_for;

/// Time between two turns. Each client has one turn a second, so that they do not all send at the same instant: the node and
/// other clients would see one burst a second, not slow clients.
const TURN_INTERVAL: Duration = Duration::from_millis(20);
/// Number of turns until a client has the next one.
const TURNS: usize = 50;

/// What a client is slow with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The headers: there is always one more line.
    Head,
    /// The body: there is always one more byte.
    Body,
    /// The responses: it sends many requests and reads nothing.
    Response,
}

impl Kind {
    /// The time after which a node must close the connection.
    pub fn timeout(self) -> Duration {
        Duration::from_secs(match self {
            Self::Head => 10,
            Self::Body | Self::Response => 30,
        })
    }

    /// The first bytes.
    fn opening(self, number: usize) -> Vec<u8> {
        let body = |path, length| head(path, &[JSON, length]) + "{";
        let text = match (self, number % 3) {
            (Self::Head, _) => begin("POST", "/check"),
            (Self::Body, 0) => body("/check", "content-length: 60000\r\n"),
            (Self::Body, 1) => body("/release", "content-length: 2000000\r\n"),
            (Self::Body, _) => {
                head("/check/batch", &[JSON, "transfer-encoding: chunked\r\n"]) + "1\r\n{\r\n"
            }
            (Self::Response, _) => {
                "GET /openapi.json HTTP/1.1\r\nhost: tollgate\r\n\r\n".repeat(100)
            }
        };
        text.into_bytes()
    }

    /// The bytes added once a second.
    fn drip(self, number: usize) -> &'static [u8] {
        match (self, number % 3) {
            (Self::Head, _) => b"x: y\r\n",
            (Self::Body, 2) => b"1\r\n \r\n",
            (Self::Body, _) => b" ",
            // The beginning of another request: the write fails if the node has closed the connection.
            (Self::Response, _) => b"G",
        }
    }
}

/// One slow client.
#[derive(Debug)]
pub struct SlowClient {
    kind: Kind,
    number: usize,
    stream: TcpStream,
    opened: Instant,
    received: Vec<u8>,
    /// The time until the node closed the connection.
    closed_after: Option<Duration>,
}

impl SlowClient {
    /// Opens `count` clients of a kind.
    pub fn open(node: &Node, kind: Kind, count: usize) -> Vec<Self> {
        (0..count).map(|number| Self::new(node, kind, number)).collect()
    }

    fn new(node: &Node, kind: Kind, number: usize) -> Self {
        let mut stream = TcpStream::connect(node.address()).expect("the node accepts connections");
        stream.write_all(&kind.opening(number)).expect("the node reads");
        stream.set_nonblocking(true).expect("set the socket to non-blocking");
        let (opened, received, closed_after) = (Instant::now(), Vec::new(), None);
        Self { kind, number, stream, opened, received, closed_after }
    }

    /// What this client is slow with.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The bytes received before the connection was closed.
    pub fn received(&self) -> String {
        String::from_utf8_lossy(&self.received).into_owned()
    }

    /// The time until the node closed the connection; `None` while it is open.
    pub fn closed_after(&self) -> Option<Duration> {
        self.closed_after
    }

    fn write_more(&mut self) {
        let written = self.stream.write(self.kind.drip(self.number));
        self.note_result(written.map(|_| ()));
    }

    fn read_more(&mut self) {
        if self.kind == Kind::Response {
            return;
        }
        let mut bytes = [0; 4096];
        let read = self.stream.read(&mut bytes);
        if let Ok(read) = &read {
            self.received.extend_from_slice(&bytes[..*read]);
            assert!(
                !contains_secret(&self.received()),
                "the response contains a secret: {}",
                self.received()
            );
        }
        self.note_result(match read {
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(_) => Ok(()),
            Err(error) => Err(error),
        });
    }

    fn note_result(&mut self, result: io::Result<()>) {
        match result {
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => {
                self.closed_after = self.closed_after.or(Some(self.opened.elapsed()));
            }
            _ => {}
        }
    }
}

/// Keeps the clients running until all are closed or `max` has passed.
pub fn run(clients: &mut [SlowClient], max: Duration) {
    let (began, mut turn) = (Instant::now(), 0);
    while began.elapsed() < max && clients.iter().any(|client| client.closed_after.is_none()) {
        wait_for(TURN_INTERVAL);
        let on_turn = clients.iter_mut().skip(turn % TURNS).step_by(TURNS);
        for client in on_turn.filter(|client| client.closed_after.is_none()) {
            client.read_more();
            if client.closed_after.is_none() {
                client.write_more();
            }
        }
        turn += 1;
    }
}
