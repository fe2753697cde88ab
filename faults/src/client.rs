//! An HTTP connection to a node.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::{Value, json};

use crate::canary::{contains_secret, token_for};

/// Time-out of reads and writes: longer than any node may take, and longer than any pause of a node.
const TIMEOUT: Duration = Duration::from_secs(120);

/// A persistent connection.
#[derive(Debug)]
pub struct Client {
    stream: TcpStream,
    unread: Vec<u8>,
}

/// A response.
#[derive(Debug, Clone)]
pub struct Reply {
    /// The HTTP status.
    pub status: u16,
    /// Status line and headers, in lower case.
    pub head: String,
    /// The body.
    pub body: String,
}

impl Client {
    /// Connects to a node.
    ///
    /// # Errors
    /// The connection is refused.
    pub fn connect(address: SocketAddr) -> io::Result<Self> {
        let stream = loop {
            match TcpStream::connect(address) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                connected => break connected?,
            }
        };
        stream.set_read_timeout(Some(TIMEOUT))?;
        stream.set_write_timeout(Some(TIMEOUT))?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, unread: Vec::new() })
    }

    /// Posts JSON and reads the response.
    ///
    /// # Errors
    /// There is no response.
    pub fn post(&mut self, path: &str, json: impl AsRef<[u8]>) -> io::Result<Reply> {
        self.send(path, json)?;
        self.receive()
    }

    /// Posts JSON without waiting for the response.
    ///
    /// # Errors
    /// The connection is lost.
    pub fn send(&mut self, path: &str, json: impl AsRef<[u8]>) -> io::Result<()> {
        self.request("POST", path, json)
    }

    /// Sends a request with any method, with a JSON body where the method has one, without waiting for the response.
    ///
    /// # Errors
    /// The connection is lost.
    pub fn request(&mut self, method: &str, path: &str, json: impl AsRef<[u8]>) -> io::Result<()> {
        let json = json.as_ref();
        let headers = match method {
            "GET" | "DELETE" => String::new(),
            _ => format!("{JSON}content-length: {}\r\n", json.len()),
        };
        let mut request = format!("{}{headers}\r\n", begin(method, path)).into_bytes();
        request.extend_from_slice(json);
        self.write(&request)
    }

    /// Sends raw bytes.
    ///
    /// # Errors
    /// The connection is lost.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)
    }

    /// Gets a path.
    ///
    /// # Errors
    /// There is no response.
    pub fn get(&mut self, path: &str) -> io::Result<Reply> {
        self.request("GET", path, "")?;
        self.receive()
    }

    /// Gets a path with another token than the right one.
    ///
    /// # Errors
    /// There is no response.
    pub fn get_with_token(&mut self, token: &str, path: &str) -> io::Result<Reply> {
        let request = begin("GET", path).replace(token_for(path), token) + "\r\n";
        self.write(request.as_bytes())?;
        self.receive()
    }

    /// Reads the response to the oldest request.
    ///
    /// # Errors
    /// There is no response.
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
        assert!(
            !contains_secret(&head) && !contains_secret(&body),
            "the response contains a secret: {head}{body}"
        );
        Ok(Reply { status: status.ok_or(io::ErrorKind::InvalidData)?, head, body })
    }

    /// Returns whether a response has begun to arrive, without waiting.
    ///
    /// # Errors
    /// The connection is closed.
    pub fn has_response(&self) -> io::Result<bool> {
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
            // Any wait can be interrupted.
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(()),
            Err(error) => Err(error),
        }
    }
}

impl Reply {
    /// The body as JSON.
    pub fn json(&self) -> Value {
        let parsed = serde_json::from_str(&self.body);
        parsed.unwrap_or_else(|error| panic!("{error}: {} {:?}", self.status, self.body))
    }

    /// A header.
    pub fn header(&self, name: &str) -> Option<&str> {
        field(&self.head, name)
    }

    /// Returns whether the request is allowed.
    pub fn is_allowed(&self) -> bool {
        self.body.contains(r#""allowed":true"#)
            && serde_json::from_str::<Value>(&self.body).is_ok_and(|json| json["allowed"] == true)
    }

    /// Returns whether the decision is degraded.
    pub fn is_degraded(&self) -> bool {
        self.body.contains(r#""degraded":true"#)
    }

    /// Returns whether the request was shed, and marked so.
    pub fn is_shed(&self) -> bool {
        self.status == 503
            && self.header("retry-after") == Some("1")
            && self.body.contains(r#""reason":"overloaded""#)
    }

    /// Returns whether the store decided.
    pub fn is_exact(&self) -> bool {
        self.status == 200 && self.body.contains(r#""degraded":false"#)
    }
}

/// The content-type header of JSON bodies.
pub const JSON: &str = "content-type: application/json\r\n";

/// The head of a POST with additional header lines.
pub fn head(path: &str, lines: &[&str]) -> String {
    format!("{}{}\r\n", begin("POST", path), lines.concat())
}

/// The request line, the host and the token of a request.
pub fn begin(method: &str, path: &str) -> String {
    let token = token_for(path);
    format!("{method} {path} HTTP/1.1\r\nhost: tollgate\r\nauthorization: Bearer {token}\r\n")
}

/// A check body for one client, under the default limit.
pub fn key(key: &str) -> String {
    json!({ "key": key }).to_string()
}

/// A check body for one client and path, under the matching rule.
pub fn on_path(client: &str, path: &str) -> String {
    json!({ "facts": { "client": client, "path": path } }).to_string()
}

/// A check body with an inline limit, whose window is longer than any row.
pub fn inline(client: &str, cost: u64, algorithm: &str, limit: u64) -> String {
    inline_within(client, cost, (algorithm, limit, Duration::from_secs(3600)))
}

/// A check body with an inline limit of (algorithm, count, window).
pub fn inline_within(client: &str, cost: u64, limit: (&str, u64, Duration)) -> String {
    let (algorithm, limit, window) = limit;
    let window = u64::try_from(window.as_millis()).expect("the window fits u64 milliseconds");
    let limit = json!({ "algorithm": algorithm, "limit": limit, "window_ms": window });
    json!({ "key": client, "cost": cost, "limits": [limit] }).to_string()
}

fn field<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    let fields = head.lines().filter_map(|line| line.split_once(':'));
    fields.filter(|(header, _)| *header == name).map(|(_, value)| value.trim()).next()
}

fn text(bytes: Vec<u8>) -> io::Result<String> {
    String::from_utf8(bytes).map_err(|_| io::ErrorKind::InvalidData.into())
}
