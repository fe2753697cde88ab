//! Clients that take their time, many at once.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use crate::canary::is_shown;
use crate::client::{JSON, begin, head};
use crate::node::Node;
use crate::passage::pass;

/// How often clients are looked at.
const LOOK: Duration = Duration::from_millis(200);

/// What a client takes its time with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Its head: there is always one more line.
    Head,
    /// Its body: there is always one more byte.
    Body,
    /// The answers: it asks a lot and reads nothing.
    Answer,
}

impl Kind {
    /// How long a node may have patience with it.
    pub fn patience(self) -> Duration {
        Duration::from_secs(match self {
            Self::Head => 10,
            Self::Body | Self::Answer => 30,
        })
    }

    /// What it begins with.
    fn opening(self, number: usize) -> Vec<u8> {
        let body = |path, length| head(path, &[JSON, length]) + "{";
        let text = match (self, number % 3) {
            (Self::Head, _) => begin("POST", "/check"),
            (Self::Body, 0) => body("/check", "content-length: 60000\r\n"),
            (Self::Body, 1) => body("/release", "content-length: 2000000\r\n"),
            (Self::Body, _) => {
                head("/check/batch", &[JSON, "transfer-encoding: chunked\r\n"]) + "1\r\n{\r\n"
            }
            (Self::Answer, _) => "GET /openapi.json HTTP/1.1\r\nhost: tollgate\r\n\r\n".repeat(100),
        };
        text.into_bytes()
    }

    /// What it adds once a second.
    fn drip(self, number: usize) -> &'static [u8] {
        match (self, number % 3) {
            (Self::Head, _) => b"x: y\r\n",
            (Self::Body, 2) => b"1\r\n \r\n",
            (Self::Body, _) => b" ",
            // The beginning of one more question: who has closed the connection tells by it.
            (Self::Answer, _) => b"G",
        }
    }
}

/// One of them.
#[derive(Debug)]
pub struct Slow {
    kind: Kind,
    number: usize,
    stream: TcpStream,
    opened: Instant,
    heard: Vec<u8>,
    /// How long it was borne with.
    borne: Option<Duration>,
}

impl Slow {
    /// So many of a kind.
    pub fn open(node: &Node, kind: Kind, count: usize) -> Vec<Self> {
        (0..count).map(|number| Self::new(node, kind, number)).collect()
    }

    fn new(node: &Node, kind: Kind, number: usize) -> Self {
        let mut stream = TcpStream::connect(node.address()).expect("a node accepts connections");
        stream.write_all(&kind.opening(number)).expect("a node reads");
        stream.set_nonblocking(true).expect("sockets can be set so");
        let (opened, heard, borne) = (Instant::now(), Vec::new(), None);
        Self { kind, number, stream, opened, heard, borne }
    }

    /// What it takes its time with.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// What it was told before it was closed.
    pub fn heard(&self) -> String {
        String::from_utf8_lossy(&self.heard).into_owned()
    }

    /// How long it was borne with, if it is closed.
    pub fn borne(&self) -> Option<Duration> {
        self.borne
    }

    fn add(&mut self) {
        let added = self.stream.write(self.kind.drip(self.number));
        self.note(added.map(|_| ()));
    }

    fn look(&mut self) {
        if self.kind == Kind::Answer {
            return;
        }
        let mut bytes = [0; 4096];
        let read = self.stream.read(&mut bytes);
        if let Ok(read) = &read {
            self.heard.extend_from_slice(&bytes[..*read]);
            assert!(!is_shown(&self.heard()), "a secret: {}", self.heard());
        }
        self.note(match read {
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(_) => Ok(()),
            Err(error) => Err(error),
        });
    }

    fn note(&mut self, done: io::Result<()>) {
        match done {
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => {
                self.borne = self.borne.or(Some(self.opened.elapsed()));
            }
            _ => {}
        }
    }
}

/// Lets them go on until all are closed, or this much time has passed.
pub fn go_on(all: &mut [Slow], at_most: Duration) {
    let (began, mut added) = (Instant::now(), 0);
    while began.elapsed() < at_most && all.iter().any(|slow| slow.borne.is_none()) {
        pass(LOOK);
        let seconds = began.elapsed().as_secs();
        for slow in all.iter_mut().filter(|slow| slow.borne.is_none()) {
            slow.look();
            if seconds > added && slow.borne.is_none() {
                slow.add();
            }
        }
        added = seconds;
    }
}
