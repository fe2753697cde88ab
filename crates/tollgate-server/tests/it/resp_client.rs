//! A RESP client that shows the exact bytes of replies, and services with a RESP listener.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use crate::client::Stream;
use crate::service::{Service, eventually};

/// Starts `tollgate serve` with a RESP listener on a free port.
pub(crate) fn start(args: &[&str]) -> (Service, SocketAddr) {
    start_with(args, &[])
}

/// Starts `tollgate serve` with a RESP listener and these environment variables.
pub(crate) fn start_with(args: &[&str], environment: &[(&str, &str)]) -> (Service, SocketAddr) {
    let service = Service::start_with(&[&["--resp", "127.0.0.1:0"], args].concat(), environment);
    let address = resp_address(&service, "resp");
    (service, address)
}

/// Returns the address of the RESP listener from the log.
pub(crate) fn resp_address(service: &Service, scheme: &str) -> SocketAddr {
    let start = format!("listening on {scheme}://");
    let find = || {
        let log = service.log();
        let lines = log.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n'));
        lines.filter_map(|line| line.strip_prefix(&start)?.parse().ok()).next()
    };
    eventually("the RESP listener", || find().is_some());
    find().expect("just seen")
}

/// Encodes a command as an array of bulk strings.
pub(crate) fn encode<A: AsRef<[u8]>>(arguments: &[A]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", arguments.len()).into_bytes();
    for argument in arguments.iter().map(AsRef::as_ref) {
        bytes.extend_from_slice(format!("${}\r\n", argument.len()).as_bytes());
        bytes.extend_from_slice(argument);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes
}

/// One connection.
pub(crate) struct RespClient {
    stream: Box<dyn Stream>,
    unread: Vec<u8>,
}

impl RespClient {
    pub(crate) fn connect(address: SocketAddr) -> Self {
        Self::over(Self::tcp(address))
    }

    /// Opens a TCP connection with a time-out that only a failing test reaches.
    pub(crate) fn tcp(address: SocketAddr) -> TcpStream {
        let stream = TcpStream::connect(address).expect("the server accepts connections");
        stream.set_read_timeout(Some(Duration::from_secs(60))).expect("it is not zero");
        stream.set_write_timeout(Some(Duration::from_secs(60))).expect("it is not zero");
        stream.set_nodelay(true).expect("TCP has it");
        stream
    }

    pub(crate) fn over(stream: impl Stream + 'static) -> Self {
        Self { stream: Box::new(stream), unread: Vec::new() }
    }

    /// Sends a command, given as words, and returns the reply in readable form.
    pub(crate) fn call(&mut self, command: &str) -> String {
        self.call_with(&command.split(' ').collect::<Vec<_>>())
    }

    /// Sends a command and returns the reply in readable form; see [`readable`].
    pub(crate) fn call_with<A: AsRef<[u8]>>(&mut self, arguments: &[A]) -> String {
        readable(&self.raw(arguments))
    }

    /// Sends a command and returns the bytes of the reply.
    pub(crate) fn raw<A: AsRef<[u8]>>(&mut self, arguments: &[A]) -> Vec<u8> {
        self.send(&encode(arguments)).expect("it is sent");
        self.reply().expect("a reply")
    }

    /// Returns the integers of a reply that is an array of integers.
    pub(crate) fn integers(&mut self, command: &str) -> Vec<i64> {
        let reply = self.call(command);
        let numbers = reply.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
        let numbers = numbers.unwrap_or_else(|| panic!("{command}: {reply}"));
        numbers.split(' ').map(|number| number.parse().expect("an integer")).collect()
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)
    }

    /// Reads the bytes of one reply.
    pub(crate) fn reply(&mut self) -> io::Result<Vec<u8>> {
        loop {
            if let Some(length) = reply_length(&self.unread) {
                return Ok(self.unread.drain(..length).collect());
            }
            let mut bytes = [0; 4096];
            match self.stream.read(&mut bytes) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(read) => self.unread.extend_from_slice(&bytes[..read]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Reads until the server closes the connection, and returns all bytes.
    pub(crate) fn rest(&mut self) -> io::Result<Vec<u8>> {
        let mut rest = std::mem::take(&mut self.unread);
        self.stream.read_to_end(&mut rest)?;
        Ok(rest)
    }

    /// Asserts that the server has closed the connection without a further reply.
    pub(crate) fn expect_end(&mut self) {
        assert_eq!(self.rest().expect("a proper end"), b"");
    }
}

/// Returns the length of the first reply; `None` if it is incomplete.
fn reply_length(bytes: &[u8]) -> Option<usize> {
    let end = bytes.iter().position(|byte| *byte == b'\n')? + 1;
    let line = std::str::from_utf8(&bytes[1..end - 2]).expect("a line is text");
    let items = match bytes[0] {
        b'+' | b'-' | b':' | b'_' => 0,
        b'$' | b'*' if line == "-1" => 0,
        b'$' | b'=' => {
            let length = end + line.parse::<usize>().expect("a length") + 2;
            return (bytes.len() >= length).then_some(length);
        }
        b'*' | b'~' => line.parse().expect("a length"),
        b'%' => 2 * line.parse::<usize>().expect("a length"),
        other => panic!("not a reply: {:?} in {:?}", char::from(other), bytes.escape_ascii()),
    };
    let mut length = end;
    for _ in 0..items {
        length += reply_length(&bytes[length..])?;
    }
    Some(length)
}

/// Returns a reply in readable form: `OK`, `-ERR text`, `[0 16 15 -1 2]`, `{server redis}`, `(nil)`.
pub(crate) fn readable(reply: &[u8]) -> String {
    let (text, rest) = read(reply);
    assert!(rest.is_empty(), "more than one reply: {:?}", reply.escape_ascii());
    text
}

fn read(reply: &[u8]) -> (String, &[u8]) {
    let end = reply.iter().position(|byte| *byte == b'\n').expect("a line") + 1;
    let (line, rest) = (String::from_utf8_lossy(&reply[1..end - 2]).into_owned(), &reply[end..]);
    match reply[0] {
        b'+' | b':' => (line, rest),
        b'-' => (format!("-{line}"), rest),
        b'_' => ("(nil)".to_owned(), rest),
        b'$' | b'*' if line == "-1" => ("(nil)".to_owned(), rest),
        b'$' | b'=' => {
            let length: usize = line.parse().expect("a length");
            (rest[..length].escape_ascii().to_string(), &rest[length + 2..])
        }
        kind => {
            let (open, close, each) = match kind {
                b'*' => ("[", "]", 1),
                b'~' => ("<", ">", 1),
                _ => ("{", "}", 2),
            };
            let (mut items, mut rest) = (Vec::new(), rest);
            for _ in 0..each * line.parse::<usize>().expect("a length") {
                let item;
                (item, rest) = read(rest);
                items.push(item);
            }
            (format!("{open}{}{close}", items.join(" ")), rest)
        }
    }
}
