//! Slow clients: many connections that send or read too slowly.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use tollgate_testkit::http2::{DATA, END_HEADERS, HEADERS, block, call_headers, frame, hello};

use crate::canary::{CHECK_TOKEN, contains_secret};
use crate::client::{JSON, begin, head};
use crate::front_end::FrontEnd;
use crate::node::Node;
use crate::waiting::wait_for;

/// Time between two turns. Each client has one turn a second, so that they do not all send at the same instant: the node and
/// other clients would see one burst a second, not slow clients.
const TURN_INTERVAL: Duration = Duration::from_millis(20);
/// The maximum time of the first write of a client that reads nothing.
const OPENING_TIMEOUT: Duration = Duration::from_millis(100);
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
    /// A RESP command: there is always one more byte.
    Command,
    /// The replies over RESP: it sends many commands and reads nothing.
    Replies,
    /// The message of a gRPC call: there is always one more byte. The node ends the call, not the connection.
    Call,
}

impl Kind {
    /// The time after which a node must close the connection.
    pub fn timeout(self) -> Duration {
        Duration::from_secs(match self {
            Self::Head | Self::Command | Self::Call => 10,
            Self::Body | Self::Response | Self::Replies => 30,
        })
    }

    fn address(self, node: &Node) -> SocketAddr {
        match self {
            Self::Head | Self::Body | Self::Response => node.address(),
            Self::Command | Self::Replies => node.address_of(FrontEnd::Resp),
            Self::Call => node.address_of(FrontEnd::Grpc),
        }
    }

    /// Whether the client reads what the node sends.
    fn reads(self) -> bool {
        !matches!(self, Self::Response | Self::Replies)
    }

    /// The first bytes.
    fn opening(self, number: usize) -> Vec<u8> {
        let body = |path, length| head(path, &[JSON, length]) + "{";
        let login = format!("AUTH {CHECK_TOKEN}\r\n");
        let text = match (self, number % 3) {
            (Self::Call, _) => return begin_call(),
            (Self::Command, _) => login + "*2\r\n$14\r\nTOLLGATE.CHECK\r\n$1000\r\nclient=",
            (Self::Replies, _) => {
                let echo = format!("*2\r\n$4\r\nECHO\r\n$50000\r\n{}\r\n", "x".repeat(50_000));
                login + &echo.repeat(400)
            }
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
    fn drip(self, number: usize) -> Vec<u8> {
        let bytes: &[u8] = match (self, number % 3) {
            (Self::Call, _) => return frame(DATA, 0, 1, b"x"),
            (Self::Head, _) => b"x: y\r\n",
            (Self::Body, 2) => b"1\r\n \r\n",
            (Self::Body, _) => b" ",
            (Self::Command, _) => b"x",
            (Self::Replies, _) => b"P",
            // The beginning of another request: the write fails if the node has closed the connection.
            (Self::Response, _) => b"G",
        };
        bytes.to_vec()
    }
}

/// The begin of a call whose message has a thousand bytes.
fn begin_call() -> Vec<u8> {
    let mut headers = call_headers();
    headers.push(("authorization".to_owned(), format!("Bearer {CHECK_TOKEN}").into()));
    let head = frame(HEADERS, END_HEADERS, 1, &block(&headers));
    [hello(), head, frame(DATA, 0, 1, &[0, 0, 0, 3, 232])].concat()
}

/// Returns whether the frames that a node sent contain the response to a call.
fn has_response(mut frames: &[u8]) -> bool {
    while let Some((head, rest)) = frames.split_first_chunk::<9>() {
        let length = usize::from(head[0]) << 16 | usize::from(head[1]) << 8 | usize::from(head[2]);
        if head[3] == HEADERS {
            return true;
        }
        frames = rest.get(length..).unwrap_or_default();
    }
    false
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
        let mut stream =
            TcpStream::connect(kind.address(node)).expect("the node accepts connections");
        // More than the buffers hold, if the client reads nothing.
        stream.set_write_timeout(Some(OPENING_TIMEOUT)).expect("the time-out is not zero");
        let written = stream.write_all(&kind.opening(number));
        assert!(written.is_ok() || !kind.reads(), "the node reads: {written:?}");
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
        let written = self.stream.write(&self.kind.drip(self.number));
        self.note_result(written.map(|_| ()));
    }

    fn read_more(&mut self) {
        if !self.kind.reads() {
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
            Ok(_) if self.kind == Kind::Call && has_response(&self.received) => {
                Err(io::ErrorKind::TimedOut.into())
            }
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
