//! One who watches: server-sent events as they come over the wire.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::Value;

use crate::service::Service;

/// A stream of events.
pub(crate) struct Watching {
    stream: BufReader<TcpStream>,
    pub(crate) head: String,
    unread: String,
}

impl Watching {
    /// Begins to watch a node, with these headers.
    pub(crate) fn begin(service: &Service, headers: &str) -> Self {
        let mut stream = TcpStream::connect(service.address()).expect("it accepts connections");
        // Longer than anything a test waits for.
        stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a timeout");
        let head = format!("GET /api/live HTTP/1.1\r\nhost: tollgate\r\n{headers}\r\n");
        stream.write_all(head.as_bytes()).expect("it listens");
        let mut stream = BufReader::new(stream);
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            assert_ne!(stream.read_line(&mut head).expect("a head"), 0, "{head}");
        }
        Self { stream, head, unread: String::new() }
    }

    /// The next event: its name and what it says. None when there are no more.
    pub(crate) fn next(&mut self) -> Option<(String, Value)> {
        loop {
            if let Some((event, rest)) = self.unread.split_once("\n\n") {
                let (event, rest) = (event.to_owned(), rest.to_owned());
                self.unread = rest;
                // How soon to ask again is no event.
                if event.starts_with("retry: ") {
                    continue;
                }
                let lines = event.strip_prefix("event: ").expect("an event has a name");
                let (name, data) = lines.split_once("\ndata: ").expect("and data, in one line");
                return Some((name.to_owned(), serde_json::from_str(data).expect("which is JSON")));
            }
            let chunk = self.chunk();
            if chunk.is_empty() {
                return None;
            }
            self.unread += &chunk;
        }
    }

    /// The next event of this name.
    pub(crate) fn next_of(&mut self, wanted: &str) -> Value {
        loop {
            let (name, told) = self.next().expect("the stream goes on");
            if name == wanted {
                return told;
            }
        }
    }

    /// The first frame of which this is true.
    pub(crate) fn until(&mut self, what: &str, is_so: impl Fn(&Value) -> bool) -> Value {
        let mut last = Value::Null;
        for _ in 0..60 {
            last = self.next_of("frame");
            if is_so(&last) {
                return last;
            }
        }
        panic!("{what}: {last}");
    }

    fn chunk(&mut self) -> String {
        let mut size = String::new();
        self.stream.read_line(&mut size).expect("a size");
        let size = usize::from_str_radix(size.trim(), 16).expect("in hexadecimal");
        let mut bytes = vec![0; size + 2];
        self.stream.read_exact(&mut bytes).expect("a chunk");
        bytes.truncate(size);
        String::from_utf8(bytes).expect("text")
    }
}
