//! A faulty network: a proxy between clients and a real server.
//!
//! ```no_run
//! use tollgate_testkit::proxy::{Fault, Proxy, Direction};
//! use tollgate_testkit::server::{Flavor, Server};
//!
//! let server = Server::start(Flavor::Redis);
//! let proxy = Proxy::start(server.port());
//! // The server counts, and half of an answer arrives.
//! proxy.set(Fault::CutAfter { towards: Direction::Client, bytes: 1..4 });
//! assert!(proxy.raw().try_call(&["INCR", "n"]).is_err());
//! assert_eq!(server.raw().call(&["GET", "n"]).text(), "1");
//! ```

use std::io;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::{self, JoinHandle};

mod carry;
mod fault;
mod frames;
mod hub;
mod link;

pub use fault::{Direction, Fault};

use crate::random::Random;
use crate::server::{Raw, port};
use crate::wait::pause;
use carry::Carrier;
use hub::Hub;
use link::Link;

/// A port on 127.0.0.1 that leads to another. Faults can be changed at any time, and concern the
/// connections that there are: from their next request or answer on.
#[derive(Debug)]
pub struct Proxy {
    hub: Arc<Hub>,
    port: u16,
    accepting: Option<JoinHandle<()>>,
}

impl Proxy {
    /// One that passes everything on.
    pub fn start(upstream: u16) -> Self {
        Self::seeded(upstream, 0)
    }

    /// One that draws from this seed. The draws of a connection depend on its number and on how often
    /// the fault was changed, not on what other connections do.
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

    /// Where it listens.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Its address for clients.
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// A connection through it.
    pub fn raw(&self) -> Raw {
        Raw::connect(self.port)
    }

    /// Does this from now on.
    pub fn set(&self, fault: Fault) {
        self.hub.set(fault);
    }

    /// Cuts the connections that there are. They are closed when it returns.
    pub fn cut_all(&self) {
        self.hub.cut_where(|_| true);
    }

    /// How many connections it has taken so far, maybe a moment after their clients.
    pub fn connections(&self) -> u64 {
        self.hub.accepted.load(Ordering::SeqCst)
    }

    /// How many connections it has cut so far: by a fault, by the end of one, by [`cut_all`](Self::cut_all).
    pub fn cuts(&self) -> u64 {
        self.hub.cuts.load(Ordering::SeqCst)
    }

    /// How many requests it has answered itself so far, by [`Fault::Answer`].
    pub fn answered(&self) -> u64 {
        self.hub.answered.load(Ordering::SeqCst)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.hub.is_closing.store(true, Ordering::SeqCst);
        // So that it looks.
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
                // It may be gone already.
                let _ = open(hub, id, client, upstream, seeds.draw());
            }
            // Too many files, maybe: some will be closed.
            Err(_) => pause(),
        }
    }
}

fn open(hub: &Arc<Hub>, id: u64, client: TcpStream, upstream: u16, seed: u64) -> io::Result<()> {
    let link = Arc::new(Link::new(id, client)?);
    hub.add(&link);
    let (of_thread, made) = (Arc::clone(hub), hub.current().change);
    let spawned = thread::Builder::new().spawn(move || {
        Carrier { hub: &of_thread, link: &link, upstream, seed, made }.run();
        // Before the hub forgets it, so that it is closed when nobody finds it there.
        drop(link);
        of_thread.remove(id);
    });
    spawned.map(drop).inspect_err(|_| hub.remove(id))
}
