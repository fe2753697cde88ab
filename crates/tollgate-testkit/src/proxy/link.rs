//! One connection through a proxy: two sockets, and what is owed between them.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use socket2::SockRef;

use super::hub::lock;

/// How soon a cut is noticed by who waits for a peer that does not read.
const GLANCE: Duration = Duration::from_millis(100);

/// A server that hangs connects, until too many wait.
const CONNECTING: Duration = Duration::from_secs(10);

/// Its sockets close when the last who knows of it is gone.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) id: u64,
    pub(super) client: TcpStream,
    /// There once something is to be carried.
    server: OnceLock<TcpStream>,
    is_cut: AtomicBool,
    has_gap: AtomicBool,
    /// Requests that the server has and did not answer.
    owed: Mutex<u64>,
    paid: Condvar,
}

impl Link {
    pub(super) fn new(id: u64, client: TcpStream) -> io::Result<Self> {
        prepare(&client)?;
        let (is_cut, has_gap) = (AtomicBool::new(false), AtomicBool::new(false));
        let (owed, paid) = (Mutex::new(0), Condvar::new());
        Ok(Self { id, client, server: OnceLock::new(), is_cut, has_gap, owed, paid })
    }

    pub(super) fn server(&self) -> Option<&TcpStream> {
        self.server.get()
    }

    /// Connects to the server, once.
    pub(super) fn connect(&self, port: u16) -> io::Result<&TcpStream> {
        let address = (Ipv4Addr::LOCALHOST, port).into();
        let stream = TcpStream::connect_timeout(&address, CONNECTING)?;
        prepare(&stream)?;
        let stream = self.server.get_or_init(|| stream);
        if self.is_cut() {
            abort(stream);
        }
        Ok(stream)
    }

    /// Ends both sides without a goodbye. False if that was done already.
    pub(super) fn cut(&self) -> bool {
        let is_first = !self.is_cut.swap(true, Ordering::SeqCst);
        abort(&self.client);
        self.server().into_iter().for_each(abort);
        drop(lock(&self.owed));
        self.paid.notify_all();
        is_first
    }

    pub(super) fn is_cut(&self) -> bool {
        self.is_cut.load(Ordering::SeqCst)
    }

    /// Something was not carried.
    pub(super) fn leave_gap(&self) {
        self.has_gap.store(true, Ordering::SeqCst);
    }

    pub(super) fn has_gap(&self) -> bool {
        self.has_gap.load(Ordering::SeqCst)
    }

    pub(super) fn owe(&self, requests: u64) {
        *lock(&self.owed) += requests;
    }

    pub(super) fn pay(&self, answers: u64) {
        let mut owed = lock(&self.owed);
        *owed = owed.saturating_sub(answers);
        self.paid.notify_all();
    }

    /// Waits until the server has answered everything.
    pub(super) fn wait_until_paid(&self) {
        let owes = |owed: &mut u64| *owed > 0 && !self.is_cut();
        drop(self.paid.wait_while(lock(&self.owed), owes).unwrap_or_else(PoisonError::into_inner));
    }

    /// Some bytes, or none if there will be no more.
    pub(super) fn read(&self, mut from: &TcpStream, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match from.read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // What came before a cut can still be read, and is not to be carried.
                Ok(_) if self.is_cut() => return Err(io::ErrorKind::ConnectionAborted.into()),
                result => return result,
            }
        }
    }

    /// All of the bytes, unless it is cut meanwhile.
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
    // What is carried must be on its way before a cut forgets what is not.
    stream.set_nodelay(true)?;
    stream.set_write_timeout(Some(GLANCE))
}

/// Makes the close a reset, and wakes who reads so that it comes to that. A socket that is in no state
/// for it is closed already.
fn abort(stream: &TcpStream) {
    let _ = SockRef::from(stream).set_linger(Some(Duration::ZERO));
    let _ = stream.shutdown(Shutdown::Read);
}
