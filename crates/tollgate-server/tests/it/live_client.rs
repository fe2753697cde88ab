//! Client of `/api/live` that reads server-sent events from a socket.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::Value;

use crate::service::Service;

/// An open live stream.
pub(crate) struct LiveStream {
    stream: BufReader<TcpStream>,
    pub(crate) head: String,
    unread: String,
}

impl LiveStream {
    /// Opens a stream of a node with these request headers.
    pub(crate) fn open(service: &Service, headers: &str) -> Self {
        let mut stream = TcpStream::connect(service.address()).expect("the service accepts");
        // Longer than anything a test waits for.
        stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a timeout");
        let request = format!("GET /api/live HTTP/1.1\r\nhost: tollgate\r\n{headers}\r\n");
        stream.write_all(request.as_bytes()).expect("the service reads the request");
        let mut stream = BufReader::new(stream);
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            assert_ne!(stream.read_line(&mut head).expect("a response head"), 0, "{head}");
        }
        Self { stream, head, unread: String::new() }
    }

    /// Returns the name and the data of the next event; `None` at the end of the stream.
    pub(crate) fn next(&mut self) -> Option<(String, Value)> {
        loop {
            if let Some((event, rest)) = self.unread.split_once("\n\n") {
                let (event, rest) = (event.to_owned(), rest.to_owned());
                self.unread = rest;
                // The reconnection delay is not an event.
                if event.starts_with("retry: ") {
                    continue;
                }
                let lines = event.strip_prefix("event: ").expect("an event has a name");
                let (name, data) = lines.split_once("\ndata: ").expect("one line of data");
                return Some((name.to_owned(), serde_json::from_str(data).expect("JSON data")));
            }
            let chunk = self.chunk();
            if chunk.is_empty() {
                return None;
            }
            self.unread += &chunk;
        }
    }

    /// Returns the next event of this name.
    pub(crate) fn next_of(&mut self, wanted: &str) -> Value {
        loop {
            let (name, data) = self.next().expect("the stream continues");
            if name == wanted {
                return data;
            }
        }
    }

    /// Returns the first frame that matches.
    pub(crate) fn until(&mut self, what: &str, matches: impl Fn(&Value) -> bool) -> Value {
        let mut last = Value::Null;
        for _ in 0..60 {
            last = self.next_of("frame");
            if matches(&last) {
                return last;
            }
        }
        panic!("{what}: {last}");
    }

    fn chunk(&mut self) -> String {
        let mut size = String::new();
        self.stream.read_line(&mut size).expect("a chunk size");
        let size = usize::from_str_radix(size.trim(), 16).expect("a hexadecimal size");
        let mut bytes = vec![0; size + 2];
        self.stream.read_exact(&mut bytes).expect("a chunk");
        bytes.truncate(size);
        String::from_utf8(bytes).expect("UTF-8")
    }
}
