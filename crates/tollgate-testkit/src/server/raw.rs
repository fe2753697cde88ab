//! A minimal synchronous Redis client.

use std::io::{self, BufReader, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::time::Duration;

use super::value::Value;
use crate::wait::MAX_WAIT;

/// A connection to a server, for the commands of tests.
#[derive(Debug)]
pub struct Raw {
    stream: BufReader<TcpStream>,
}

impl Raw {
    /// Connects to a port of 127.0.0.1.
    ///
    /// # Panics
    /// If the port is closed.
    pub fn connect(port: u16) -> Self {
        Self::try_connect(port).unwrap_or_else(|error| panic!("connecting to {port}: {error}"))
    }

    /// Connects to a port of 127.0.0.1.
    ///
    /// # Errors
    /// If the port is closed.
    pub fn try_connect(port: u16) -> io::Result<Self> {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
        stream.set_nodelay(true)?;
        let raw = Self { stream: BufReader::new(stream) };
        raw.set_timeout(MAX_WAIT)?;
        Ok(raw)
    }

    /// Sets the time-out of each reply, [`MAX_WAIT`] by default.
    ///
    /// # Panics
    /// If the time-out is zero.
    #[must_use]
    pub fn patient(self, timeout: Duration) -> Self {
        self.set_timeout(timeout).expect("the time-out is not zero");
        self
    }

    /// Sends a command and returns the reply, which may be an error.
    ///
    /// # Panics
    /// If there is no reply.
    pub fn call<A: AsRef<[u8]>>(&mut self, args: &[A]) -> Value {
        self.try_call(args)
            .unwrap_or_else(|error| panic!("calling {}: {error}", command_text(args)))
    }

    /// Sends a command and returns the reply.
    ///
    /// # Errors
    /// If the connection is lost or the reply times out.
    pub fn try_call<A: AsRef<[u8]>>(&mut self, args: &[A]) -> io::Result<Value> {
        self.send(args)?;
        self.receive()
    }

    /// Sends a command without waiting for the reply.
    ///
    /// # Errors
    /// If the connection is lost.
    pub fn send<A: AsRef<[u8]>>(&mut self, args: &[A]) -> io::Result<()> {
        let mut request = format!("*{}\r\n", args.len()).into_bytes();
        for arg in args.iter().map(AsRef::as_ref) {
            request.extend_from_slice(format!("${}\r\n", arg.len()).as_bytes());
            request.extend_from_slice(arg);
            request.extend_from_slice(b"\r\n");
        }
        self.send_bytes(&request)
    }

    /// Sends raw bytes.
    ///
    /// # Errors
    /// If the connection is lost.
    pub fn send_bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.get_mut().write_all(bytes)
    }

    /// Waits for one reply.
    ///
    /// # Errors
    /// If the connection is lost or the reply times out.
    pub fn receive(&mut self) -> io::Result<Value> {
        Value::read(&mut self.stream)
    }

    fn set_timeout(&self, timeout: Duration) -> io::Result<()> {
        self.stream.get_ref().set_read_timeout(Some(timeout))?;
        self.stream.get_ref().set_write_timeout(Some(timeout))
    }
}

fn command_text<A: AsRef<[u8]>>(args: &[A]) -> String {
    let words = args.iter().map(|arg| String::from_utf8_lossy(arg.as_ref()).into_owned());
    words.collect::<Vec<_>>().join(" ")
}
