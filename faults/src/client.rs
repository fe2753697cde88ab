//! One connection to a node, and what it answers.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::{Value, json};

use crate::canary::{is_shown, token_for};

/// Longer than anything a node may take, and than any node of ours is stopped.
const PATIENCE: Duration = Duration::from_secs(120);

/// A connection that is kept.
#[derive(Debug)]
pub struct Client {
    stream: TcpStream,
    unread: Vec<u8>,
}

/// One answer.
#[derive(Debug, Clone)]
pub struct Reply {
    /// Of HTTP.
    pub status: u16,
    /// Everything before the body, in small letters.
    pub head: String,
    /// The body.
    pub body: String,
}

impl Client {
    /// Connects.
    ///
    /// # Errors
    /// If nobody listens.
    pub fn connect(address: SocketAddr) -> io::Result<Self> {
        let stream = loop {
            match TcpStream::connect(address) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                connected => break connected?,
            }
        };
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, unread: Vec::new() })
    }

    /// Posts JSON and reads the answer.
    ///
    /// # Errors
    /// If there is none.
    pub fn post(&mut self, path: &str, json: impl AsRef<[u8]>) -> io::Result<Reply> {
        self.send(path, json)?;
        self.receive()
    }

    /// Posts JSON, and does not wait for the answer.
    ///
    /// # Errors
    /// If the connection is lost.
    pub fn send(&mut self, path: &str, json: impl AsRef<[u8]>) -> io::Result<()> {
        self.request("POST", path, json)
    }

    /// Asks by any method, with JSON if there is any, and does not wait for the answer.
    ///
    /// # Errors
    /// If the connection is lost.
    pub fn request(&mut self, method: &str, path: &str, json: impl AsRef<[u8]>) -> io::Result<()> {
        let json = json.as_ref();
        let about = match method {
            "GET" | "DELETE" => String::new(),
            _ => format!("{JSON}content-length: {}\r\n", json.len()),
        };
        let mut request = format!("{}{about}\r\n", begin(method, path)).into_bytes();
        request.extend_from_slice(json);
        self.write(&request)
    }

    /// Sends these bytes, whatever they are.
    ///
    /// # Errors
    /// If the connection is lost.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)
    }

    /// Gets a page.
    ///
    /// # Errors
    /// If there is none.
    pub fn get(&mut self, path: &str) -> io::Result<Reply> {
        self.request("GET", path, "")?;
        self.receive()
    }

    /// Gets a page, by another token than the right one.
    ///
    /// # Errors
    /// If there is no answer.
    pub fn get_by(&mut self, token: &str, path: &str) -> io::Result<Reply> {
        let request = begin("GET", path).replace(token_for(path), token) + "\r\n";
        self.write(request.as_bytes())?;
        self.receive()
    }

    /// Reads the answer to what was sent.
    ///
    /// # Errors
    /// If there is none.
    pub fn receive(&mut self) -> io::Result<Reply> {
        let head = loop {
            if let Some(at) = self.unread.windows(4).position(|four| four == b"\r\n\r\n") {
                break text(self.unread.drain(..at + 4).collect())?.to_ascii_lowercase();
            }
            self.read_more()?;
        };
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
        let length = field(&head, "content-length").and_then(|length| length.parse().ok());
        let length: usize = length.unwrap_or(0);
        while self.unread.len() < length {
            self.read_more()?;
        }
        let body = text(self.unread.drain(..length).collect())?;
        assert!(!is_shown(&head) && !is_shown(&body), "a secret: {head}{body}");
        Ok(Reply { status: status.ok_or(io::ErrorKind::InvalidData)?, head, body })
    }

    /// Whether any of an answer has come, without waiting for it.
    ///
    /// # Errors
    /// If the connection is closed.
    pub fn has_answer(&self) -> io::Result<bool> {
        self.stream.set_nonblocking(true)?;
        let peeked = self.stream.peek(&mut [0]);
        self.stream.set_nonblocking(false)?;
        match peeked {
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(_) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn read_more(&mut self) -> io::Result<()> {
        let mut bytes = [0; 4096];
        match self.stream.read(&mut bytes) {
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(read) => {
                self.unread.extend_from_slice(&bytes[..read]);
                Ok(())
            }
            // The system may interrupt any wait.
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(()),
            Err(error) => Err(error),
        }
    }
}

impl Reply {
    /// The body as JSON.
    pub fn json(&self) -> Value {
        let read = serde_json::from_str(&self.body);
        read.unwrap_or_else(|error| panic!("{error}: {} {:?}", self.status, self.body))
    }

    /// A header.
    pub fn header(&self, name: &str) -> Option<&str> {
        field(&self.head, name)
    }

    /// Whether the request may pass.
    pub fn is_allowed(&self) -> bool {
        self.body.contains(r#""allowed":true"#)
            && serde_json::from_str::<Value>(&self.body).is_ok_and(|told| told["allowed"] == true)
    }

    /// Whether somebody else than the store has answered.
    pub fn is_degraded(&self) -> bool {
        self.body.contains(r#""degraded":true"#)
    }

    /// Whether the store itself has answered.
    pub fn is_exact(&self) -> bool {
        self.status == 200 && self.body.contains(r#""degraded":false"#)
    }
}

/// The line of a head that says what the body is.
pub const JSON: &str = "content-type: application/json\r\n";

/// The head of a post, with more lines of its own.
pub fn head(path: &str, lines: &[&str]) -> String {
    format!("{}{}\r\n", begin("POST", path), lines.concat())
}

/// How a head begins: its first line, whom it is for, and what lets in there.
pub fn begin(method: &str, path: &str) -> String {
    let token = token_for(path);
    format!("{method} {path} HTTP/1.1\r\nhost: tollgate\r\nauthorization: Bearer {token}\r\n")
}

/// A question for one client, by the default limit.
pub fn key(key: &str) -> String {
    json!({ "key": key }).to_string()
}

/// A question for one client on one path, by the rule for it.
pub fn on_path(client: &str, path: &str) -> String {
    json!({ "facts": { "client": client, "path": path } }).to_string()
}

/// A question with a limit of its own, of a window that outlasts any row.
pub fn inline(client: &str, cost: u64, algorithm: &str, limit: u64) -> String {
    inline_within(client, cost, (algorithm, limit, Duration::from_secs(3600)))
}

/// A question with a limit of its own: its algorithm, its count and its window.
pub fn inline_within(client: &str, cost: u64, limit: (&str, u64, Duration)) -> String {
    let (algorithm, limit, window) = limit;
    let window = u64::try_from(window.as_millis()).expect("a window of some time");
    let limit = json!({ "algorithm": algorithm, "limit": limit, "window_ms": window });
    json!({ "key": client, "cost": cost, "limits": [limit] }).to_string()
}

fn field<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    let fields = head.lines().filter_map(|line| line.split_once(':'));
    fields.filter(|(own, _)| *own == name).map(|(_, value)| value.trim()).next()
}

fn text(bytes: Vec<u8>) -> io::Result<String> {
    String::from_utf8(bytes).map_err(|_| io::ErrorKind::InvalidData.into())
}
