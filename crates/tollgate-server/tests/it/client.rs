//! A minimal blocking HTTP client that sends and reads raw bytes.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::Value;

/// A plain or TLS stream.
pub(crate) trait Stream: Read + Write + Send {}

impl<T: Read + Write + Send> Stream for T {}

/// One HTTP connection.
pub(crate) struct Client {
    stream: Box<dyn Stream>,
    unread: Vec<u8>,
}

/// One HTTP response.
#[derive(Debug, Clone)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Client {
    pub(crate) fn connect(address: SocketAddr) -> Self {
        Self::try_connect(address).expect("the server accepts connections")
    }

    pub(crate) fn try_connect(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(address)?;
        // Longer than any timeout of the server, so that a hanging test fails.
        stream.set_read_timeout(Some(Duration::from_secs(60)))?;
        stream.set_nodelay(true)?;
        Ok(Self::over(stream))
    }

    pub(crate) fn over(stream: impl Stream + 'static) -> Self {
        Self { stream: Box::new(stream), unread: Vec::new() }
    }

    /// Posts JSON and reads the response.
    pub(crate) fn post(&mut self, path: &str, json: impl AsRef<[u8]>) -> Reply {
        self.try_post(path, json.as_ref()).expect("the server responds")
    }

    pub(crate) fn try_post(&mut self, path: &str, json: &[u8]) -> io::Result<Reply> {
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: tollgate\r\ncontent-type: application/json\r\n\
             content-length: {}\r\n\r\n",
            json.len()
        );
        self.send(&[head.as_bytes(), json].concat())?;
        self.reply()
    }

    pub(crate) fn get(&mut self, path: &str) -> Reply {
        self.send(format!("GET {path} HTTP/1.1\r\nhost: tollgate\r\n\r\n").as_bytes())
            .and_then(|()| self.reply())
            .expect("the server responds")
    }

    /// Sends a request with these headers, and with a JSON body unless it is empty.
    pub(crate) fn request(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Reply {
        let mut head = format!("{method} {path} HTTP/1.1\r\nhost: tollgate\r\n");
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        if !body.is_empty() {
            head.push_str("content-type: application/json\r\n");
        }
        head.push_str(&format!("content-length: {}\r\n\r\n{body}", body.len()));
        self.send(head.as_bytes()).and_then(|()| self.reply()).expect("the server responds")
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)
    }

    /// Reads one response.
    pub(crate) fn reply(&mut self) -> io::Result<Reply> {
        let end = loop {
            if let Some(end) = self.unread.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
                break end + 4;
            }
            self.read_more()?;
        };
        let head: Vec<u8> = self.unread.drain(..end).collect();
        let head = String::from_utf8(head).expect("a head is text");
        let mut lines = head.split("\r\n").filter(|line| !line.is_empty());
        let status = lines.next().and_then(|line| line.split(' ').nth(1)).expect("a status line");
        let headers: Vec<(String, String)> = lines
            .filter_map(|line| line.split_once(':'))
            .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
            .collect();
        let length = headers.iter().find(|(name, _)| name == "content-length");
        let length: usize = length.map_or(0, |(_, length)| length.parse().expect("a length"));
        while self.unread.len() < length {
            self.read_more()?;
        }
        let body: Vec<u8> = self.unread.drain(..length).collect();
        let status = status.parse().expect("a status");
        Ok(Reply { status, headers, body: String::from_utf8(body).expect("a body is text") })
    }

    /// Sends a line and returns the line that answers it; for line protocols.
    pub(crate) fn exchange(&mut self, line: &str) -> String {
        self.send(format!("{line}\n").as_bytes()).and_then(|()| self.line()).expect("a reply")
    }

    /// Reads one line; an error of kind `UnexpectedEof` at the end of the stream.
    pub(crate) fn line(&mut self) -> io::Result<String> {
        let end = loop {
            if let Some(end) = self.unread.iter().position(|byte| *byte == b'\n') {
                break end;
            }
            self.read_more()?;
        };
        let mut line: Vec<u8> = self.unread.drain(..=end).collect();
        line.pop();
        Ok(String::from_utf8(line).expect("a line is text"))
    }

    /// Asserts that the stream ends here. Over TLS, this needs a proper end and not only a closed connection.
    pub(crate) fn expect_end(&mut self) {
        assert_eq!(self.unread, b"");
        assert_eq!(self.read(&mut [0; 1]).expect("a proper end"), 0);
    }

    fn read_more(&mut self) -> io::Result<()> {
        let mut bytes = [0; 4096];
        match self.read(&mut bytes)? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            read => {
                self.unread.extend_from_slice(&bytes[..read]);
                Ok(())
            }
        }
    }

    /// Reads once. A read with a time-out that a signal interrupts is repeated.
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.stream.read(bytes) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                result => return result,
            }
        }
    }
}

impl Reply {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body)
            .unwrap_or_else(|error| panic!("{error}: {} {:?}", self.status, self.body))
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

#[test]
fn interrupted_read_is_repeated() {
    /// Interrupts every second read, and returns one byte otherwise.
    struct Interrupted {
        response: &'static [u8],
        is_next: bool,
    }
    impl Read for Interrupted {
        fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
            self.is_next = !self.is_next;
            if self.is_next {
                return Err(io::ErrorKind::Interrupted.into());
            }
            let length = bytes.len().min(1);
            self.response.read(&mut bytes[..length])
        }
    }
    impl Write for Interrupted {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let response = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
    let mut client = Client::over(Interrupted { response, is_next: false });
    let reply = client.reply().unwrap();
    assert_eq!((reply.status, &*reply.body), (200, "ok"));
    client.expect_end();
}
