//! Real Redis and Valkey servers on their own ports, stopped when they are dropped.
//!
//! ```no_run
//! use tollgate_testkit::server::{Flavor, Server};
//!
//! for flavor in Flavor::ALL {
//!     let server = Server::start(flavor);
//!     server.raw().call(&["SET", "key", "1"]);
//!     server.restart();
//!     assert!(server.raw().call(&["GET", "key"]).is_nil());
//! }
//! ```

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

mod builder;
mod certificates;
mod cluster;
mod flavor;
pub(crate) mod port;
mod process;
mod raw;
mod sentinels;
mod tls;
mod value;

pub use builder::Builder;
pub use certificates::{Certificates, Identity};
pub use cluster::{Cluster, Migration, slot_of};
pub use flavor::Flavor;
pub use port::free as free_port;
pub use raw::Raw;
pub use sentinels::Sentinels;
pub use value::Value;

use crate::wait::{MAX_WAIT, pause};
use builder::{Ready, StartError, run};
use process::Process;

/// Time-out of calls to a server that may hang or exit meanwhile.
const CALL_TIMEOUT: Duration = Duration::from_secs(5);

/// A server without persistence. It is killed when this is dropped, and when the test is killed.
#[derive(Debug)]
pub struct Server {
    flavor: Flavor,
    port: u16,
    tls_port: Option<u16>,
    unix: Option<PathBuf>,
    ready: Ready,
    process: Mutex<Process>,
}

impl Server {
    /// Starts a server with default settings.
    pub fn start(flavor: Flavor) -> Self {
        Self::builder(flavor).start()
    }

    /// Builds a server with settings: `Server::builder(flavor).arg("--requirepass").arg("secret").start()`.
    pub fn builder(flavor: Flavor) -> Builder {
        Builder::new(flavor)
    }

    /// Returns the flavor.
    pub fn flavor(&self) -> Flavor {
        self.flavor
    }

    /// Returns the port on 127.0.0.1. A restart keeps it.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Returns the TLS port on 127.0.0.1.
    ///
    /// # Panics
    /// If the server has none.
    pub fn tls_port(&self) -> u16 {
        self.tls_port.expect("the server was built with tls")
    }

    /// Returns the path of the Unix socket.
    ///
    /// # Panics
    /// If the server has none.
    pub fn unix_path(&self) -> &Path {
        self.unix.as_deref().expect("the server was built with unix")
    }

    /// Returns the URL for clients: with TLS if the server has a TLS port.
    pub fn url(&self) -> String {
        self.address("")
    }

    /// Returns the URL for a user (`"name:password@"` or empty) and a database.
    pub fn url_with(&self, user: &str, database: u32) -> String {
        format!("{}/{database}", self.address(user))
    }

    fn address(&self, user: &str) -> String {
        match self.tls_port {
            Some(port) => format!("rediss://{user}127.0.0.1:{port}"),
            None => format!("redis://{user}127.0.0.1:{}", self.port),
        }
    }

    /// Opens a connection.
    pub fn raw(&self) -> Raw {
        Raw::connect(self.port)
    }

    /// Returns the reply to a command if the server is up and replies without an error.
    fn try_call(&self, command: &[&str]) -> Option<Value> {
        let raw = self.is_up().then(|| Raw::try_connect(self.port).ok())??;
        raw.patient(CALL_TIMEOUT).try_call(command).ok().filter(|reply| !reply.is_error())
    }

    /// Returns the process id.
    pub fn pid(&self) -> u32 {
        self.lock().id()
    }

    /// Returns the CPU time of the process so far, in steps of some milliseconds.
    pub fn cpu(&self) -> Duration {
        self.lock().cpu()
    }

    /// Returns the resident memory of the process, in bytes.
    pub fn rss(&self) -> u64 {
        self.lock().rss()
    }

    /// Returns the output of the process so far.
    pub fn log(&self) -> String {
        self.lock().log()
    }

    /// Stops the process with SIGSTOP: connections stay, new ones are accepted by the system, no reply is sent.
    pub fn hang(&self) {
        self.lock().hang();
    }

    /// Resumes the process, which then handles the requests received meanwhile.
    pub fn resume(&self) {
        self.lock().resume();
    }

    /// Returns whether the server runs and does not hang.
    pub fn is_up(&self) -> bool {
        self.lock().is_up()
    }

    /// Kills the server immediately. Its port is closed until a restart.
    pub fn kill(&self) {
        self.lock().kill();
    }

    /// Restarts the server, empty, on the same port; kills it first if it still runs.
    ///
    /// # Panics
    /// If the server does not start.
    pub fn restart(&self) {
        let mut process = self.lock();
        let began = Instant::now();
        loop {
            match run(&mut process, self.port, self.ready) {
                Ok(()) => break,
                Err(StartError::PortInUse) if began.elapsed() < MAX_WAIT => pause(),
                Err(error) => error.panic(self.flavor),
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Process> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
