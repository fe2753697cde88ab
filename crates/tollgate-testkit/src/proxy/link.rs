//! One connection through a proxy: two sockets, and the number of pending requests.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use socket2::SockRef;

use super::hub::lock;

/// The time after which a blocked write checks for a cut.
const WRITE_TIMEOUT: Duration = Duration::from_millis(100);

/// The connect time-out: a hung server accepts connections only until its backlog is full.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// One proxied connection. Its sockets close with the last reference.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) id: u64,
    pub(super) client: TcpStream,
    /// The connection to the server, made when there is something to forward.
    server: OnceLock<TcpStream>,
    is_cut: AtomicBool,
    has_gap: AtomicBool,
    /// The number of requests without a reply of the server.
    pending: Mutex<u64>,
    replied: Condvar,
}

impl Link {
    pub(super) fn new(id: u64, client: TcpStream) -> io::Result<Self> {
        prepare(&client)?;
        let (is_cut, has_gap) = (AtomicBool::new(false), AtomicBool::new(false));
        let (pending, replied) = (Mutex::new(0), Condvar::new());
        Ok(Self { id, client, server: OnceLock::new(), is_cut, has_gap, pending, replied })
    }

    pub(super) fn server(&self) -> Option<&TcpStream> {
        self.server.get()
    }

    /// Connects to the server, once.
    pub(super) fn connect(&self, port: u16) -> io::Result<&TcpStream> {
        let address = (Ipv4Addr::LOCALHOST, port).into();
        let stream = TcpStream::connect_timeout(&address, CONNECT_TIMEOUT)?;
        prepare(&stream)?;
        let stream = self.server.get_or_init(|| stream);
        if self.is_cut() {
            abort(stream);
        }
        Ok(stream)
    }

    /// Resets both sides. Returns false if that was done already.
    pub(super) fn cut(&self) -> bool {
        let is_first = !self.is_cut.swap(true, Ordering::SeqCst);
        abort(&self.client);
        self.server().into_iter().for_each(abort);
        drop(lock(&self.pending));
        self.replied.notify_all();
        is_first
    }

    pub(super) fn is_cut(&self) -> bool {
        self.is_cut.load(Ordering::SeqCst)
    }

    /// Records that bytes were dropped.
    pub(super) fn leave_gap(&self) {
        self.has_gap.store(true, Ordering::SeqCst);
    }

    pub(super) fn has_gap(&self) -> bool {
        self.has_gap.load(Ordering::SeqCst)
    }

    pub(super) fn add_pending(&self, requests: u64) {
        *lock(&self.pending) += requests;
    }

    pub(super) fn complete(&self, replies: u64) {
        let mut pending = lock(&self.pending);
        *pending = pending.saturating_sub(replies);
        self.replied.notify_all();
    }

    /// Waits until the server has replied to all requests.
    pub(super) fn wait_until_replied(&self) {
        let is_pending = |pending: &mut u64| *pending > 0 && !self.is_cut();
        drop(
            self.replied
                .wait_while(lock(&self.pending), is_pending)
                .unwrap_or_else(PoisonError::into_inner),
        );
    }

    /// Reads some bytes; 0 at the end of the stream.
    pub(super) fn read(&self, mut from: &TcpStream, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match from.read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // Bytes that arrived before a cut are readable, and must not be forwarded.
                Ok(_) if self.is_cut() => return Err(io::ErrorKind::ConnectionAborted.into()),
                result => return result,
            }
        }
    }

    /// Writes all bytes, unless the link is cut meanwhile.
    pub(super) fn write(&self, mut to: &TcpStream, mut bytes: &[u8]) -> io::Result<()> {
        use io::ErrorKind::{ConnectionAborted, Interrupted, TimedOut, WouldBlock};
        while !bytes.is_empty() {
            if self.is_cut() {
                return Err(ConnectionAborted.into());
            }
            match to.write(bytes) {
                Ok(written) => bytes = &bytes[written..],
                Err(error) if matches!(error.kind(), Interrupted | TimedOut | WouldBlock) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

fn prepare(stream: &TcpStream) -> io::Result<()> {
    // Forwarded bytes must be sent before a cut discards the unsent ones.
    stream.set_nodelay(true)?;
    stream.set_write_timeout(Some(WRITE_TIMEOUT))
}

/// Makes the close a reset, and wakes the reader so that it closes. Errors mean that the socket is already closed.
fn abort(stream: &TcpStream) {
    let _ = SockRef::from(stream).set_linger(Some(Duration::ZERO));
    let _ = stream.shutdown(Shutdown::Read);
}
