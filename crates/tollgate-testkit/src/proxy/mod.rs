//! A faulty network: a proxy between clients and a real server.
//!
//! ```no_run
//! use tollgate_testkit::proxy::{Fault, Proxy, Direction};
//! use tollgate_testkit::server::{Flavor, Server};
//!
//! let server = Server::start(Flavor::Redis);
//! let proxy = Proxy::start(server.port());
//! // The server executes the command, and half of its reply arrives.
//! proxy.set(Fault::CutAfter { towards: Direction::Client, bytes: 1..4 });
//! assert!(proxy.raw().try_call(&["INCR", "n"]).is_err());
//! assert_eq!(server.raw().call(&["GET", "n"]).text(), "1");
//! ```

use std::io;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::{self, JoinHandle};

mod fault;
mod forward;
mod frames;
mod hub;
mod link;

pub use fault::{Direction, Fault};

use crate::random::Random;
use crate::server::{Raw, port};
use crate::wait::pause;
use forward::Forwarder;
use hub::Hub;
use link::Link;

/// A proxy from one port on 127.0.0.1 to another. The fault can change at any time, and applies to open connections
/// from their next request or reply on.
#[derive(Debug)]
pub struct Proxy {
    hub: Arc<Hub>,
    port: u16,
    accepting: Option<JoinHandle<()>>,
}

impl Proxy {
    /// Starts a proxy without a fault.
    pub fn start(upstream: u16) -> Self {
        Self::seeded(upstream, 0)
    }

    /// Starts a proxy with a seed. The random numbers of a connection depend on its number and on the number of fault
    /// changes, not on other connections.
    pub fn seeded(upstream: u16, seed: u64) -> Self {
        let listener = port::listen();
        let port = listener.local_addr().expect("listeners have an address").port();
        let hub = Arc::new(Hub::new());
        let accepting = thread::spawn({
            let hub = Arc::clone(&hub);
            move || accept(&hub, &listener, upstream, seed)
        });
        Self { hub, port, accepting: Some(accepting) }
    }

    /// Returns the port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Returns the URL for clients.
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// Opens a connection through the proxy.
    pub fn raw(&self) -> Raw {
        Raw::connect(self.port)
    }

    /// Sets the fault.
    pub fn set(&self, fault: Fault) {
        self.hub.set(fault);
    }

    /// Cuts all open connections, and waits until they are closed.
    pub fn cut_all(&self) {
        self.hub.cut_where(|_| true);
    }

    /// Returns the number of accepted connections so far. It may lag behind the clients by a moment.
    pub fn connections(&self) -> u64 {
        self.hub.accepted.load(Ordering::SeqCst)
    }

    /// Returns the number of cut connections so far: by a fault, by its end, by [`cut_all`](Self::cut_all).
    pub fn cuts(&self) -> u64 {
        self.hub.cuts.load(Ordering::SeqCst)
    }

    /// Returns the number of requests that [`Fault::Answer`] replied to so far.
    pub fn answered(&self) -> u64 {
        self.hub.answered.load(Ordering::SeqCst)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.hub.is_closing.store(true, Ordering::SeqCst);
        // Wakes the accept loop.
        drop(TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)));
        let _ = self.accepting.take().map(JoinHandle::join);
        self.cut_all();
    }
}

fn accept(hub: &Arc<Hub>, listener: &TcpListener, upstream: u16, seed: u64) {
    let mut seeds = Random::new(seed);
    loop {
        let accepted = listener.accept();
        if hub.is_closing.load(Ordering::SeqCst) {
            return;
        }
        match accepted {
            Ok((client, _)) => {
                let id = hub.accepted.fetch_add(1, Ordering::SeqCst);
                // The client may have disconnected already.
                let _ = open(hub, id, client, upstream, seeds.draw());
            }
            // Possibly too many open files; retry when some are closed.
            Err(_) => pause(),
        }
    }
}

fn open(hub: &Arc<Hub>, id: u64, client: TcpStream, upstream: u16, seed: u64) -> io::Result<()> {
    let link = Arc::new(Link::new(id, client)?);
    hub.add(&link);
    let (thread_hub, made) = (Arc::clone(hub), hub.current().change);
    let spawned = thread::Builder::new().spawn(move || {
        Forwarder { hub: &thread_hub, link: &link, upstream, seed, made }.run();
        // Before the hub removes it, so that a removed link is closed.
        drop(link);
        thread_hub.remove(id);
    });
    spawned.map(drop).inspect_err(|_| hub.remove(id))
}
