//! A client that does one thing at a time, and nothing by itself.

use std::io::{self, BufReader, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::time::Duration;

use super::value::Value;
use crate::wait::MAX_WAIT;

/// A connection to a server, for what a test plants and looks at.
#[derive(Debug)]
pub struct Raw {
    stream: BufReader<TcpStream>,
}

impl Raw {
    /// Connects to a port of 127.0.0.1.
    ///
    /// # Panics
    /// If nobody listens there.
    pub fn connect(port: u16) -> Self {
        Self::try_connect(port).unwrap_or_else(|error| panic!("connecting to {port}: {error}"))
    }

    /// Connects if somebody listens there.
    ///
    /// # Errors
    /// If nobody does.
    pub fn try_connect(port: u16) -> io::Result<Self> {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
        stream.set_nodelay(true)?;
        let raw = Self { stream: BufReader::new(stream) };
        raw.set_patience(MAX_WAIT)?;
        Ok(raw)
    }

    /// With another bound than [`MAX_WAIT`] for each answer.
    ///
    /// # Panics
    /// If the bound is zero.
    #[must_use]
    pub fn patient(self, bound: Duration) -> Self {
        self.set_patience(bound).expect("a bound that is not zero");
        self
    }

    /// Asks, and waits for the answer, which may be an error.
    ///
    /// # Panics
    /// If there is none.
    pub fn call<A: AsRef<[u8]>>(&mut self, args: &[A]) -> Value {
        self.try_call(args).unwrap_or_else(|error| panic!("calling {}: {error}", shown(args)))
    }

    /// Asks, and waits for the answer, if there is one.
    ///
    /// # Errors
    /// If the connection is lost, or no answer comes in time.
    pub fn try_call<A: AsRef<[u8]>>(&mut self, args: &[A]) -> io::Result<Value> {
        self.send(args)?;
        self.receive()
    }

    /// Asks and does not wait, so that more can be asked.
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

    /// Sends bytes as they are.
    ///
    /// # Errors
    /// If the connection is lost.
    pub fn send_bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.get_mut().write_all(bytes)
    }

    /// Waits for one answer.
    ///
    /// # Errors
    /// If the connection is lost, or no answer comes in time.
    pub fn receive(&mut self) -> io::Result<Value> {
        Value::read(&mut self.stream)
    }

    fn set_patience(&self, bound: Duration) -> io::Result<()> {
        self.stream.get_ref().set_read_timeout(Some(bound))?;
        self.stream.get_ref().set_write_timeout(Some(bound))
    }
}

fn shown<A: AsRef<[u8]>>(args: &[A]) -> String {
    let words = args.iter().map(|arg| String::from_utf8_lossy(arg.as_ref()).into_owned());
    words.collect::<Vec<_>>().join(" ")
}
