//! Real servers on ports of their own, gone when a test is done with them.
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
mod watchdog;

pub use builder::Builder;
pub use certificates::{Certificates, Identity};
pub use cluster::{Cluster, Migration, slot_of};
pub use flavor::Flavor;
pub use port::free as free_port;
pub use raw::Raw;
pub use sentinels::Sentinels;
pub use value::Value;

use crate::wait::{MAX_WAIT, pause};
use builder::{Ready, Refusal, run};
use process::Process;
pub(crate) use watchdog::{Keeper, scratch};

/// How long a server is waited for that may hang or die meanwhile.
const PROMPT: Duration = Duration::from_secs(5);

/// A server without persistence, killed when it is dropped, and when the test is killed.
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
    /// One as the program is by itself.
    pub fn start(flavor: Flavor) -> Self {
        Self::builder(flavor).start()
    }

    /// One with settings: `Server::builder(flavor).arg("--requirepass").arg("secret").start()`.
    pub fn builder(flavor: Flavor) -> Builder {
        Builder::new(flavor)
    }

    /// What it is.
    pub fn flavor(&self) -> Flavor {
        self.flavor
    }

    /// Where it listens, on 127.0.0.1. A restart does not change it.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Where it listens for TLS, on 127.0.0.1.
    ///
    /// # Panics
    /// If it does not.
    pub fn tls_port(&self) -> u16 {
        self.tls_port.expect("the server was built with tls")
    }

    /// Its Unix socket.
    ///
    /// # Panics
    /// If it has none.
    pub fn unix_path(&self) -> &Path {
        self.unix.as_deref().expect("the server was built with unix")
    }

    /// Its address for clients: for TLS if it speaks that.
    pub fn url(&self) -> String {
        self.address("")
    }

    /// Its address for one user, who is `"name:password@"` or empty, and one database.
    pub fn url_with(&self, user: &str, database: u32) -> String {
        format!("{}/{database}", self.address(user))
    }

    fn address(&self, user: &str) -> String {
        match self.tls_port {
            Some(port) => format!("rediss://{user}127.0.0.1:{port}"),
            None => format!("redis://{user}127.0.0.1:{}", self.port),
        }
    }

    /// A connection of its own.
    pub fn raw(&self) -> Raw {
        Raw::connect(self.port)
    }

    /// The answer to a question, if it is up and answers.
    fn try_call(&self, command: &[&str]) -> Option<Value> {
        let raw = self.is_up().then(|| Raw::try_connect(self.port).ok())??;
        raw.patient(PROMPT).try_call(command).ok().filter(|answer| !answer.is_error())
    }

    /// The process.
    pub fn pid(&self) -> u32 {
        self.lock().id()
    }

    /// The processor time of the process so far, in steps of some milliseconds.
    pub fn cpu(&self) -> Duration {
        self.lock().cpu()
    }

    /// The bytes of memory that the process holds.
    pub fn rss(&self) -> u64 {
        self.lock().rss()
    }

    /// What the process has told so far.
    pub fn log(&self) -> String {
        self.lock().log()
    }

    /// Stops it where it is: connections stay, new ones are made, nothing is answered.
    pub fn hang(&self) {
        self.lock().hang();
    }

    /// Lets it go on, with all that was asked meanwhile.
    pub fn resume(&self) {
        self.lock().resume();
    }

    /// Whether it is neither killed nor hanging.
    pub fn is_up(&self) -> bool {
        self.lock().is_up()
    }

    /// Ends it at once. Nobody listens on its port until it is restarted.
    pub fn kill(&self) {
        self.lock().end();
    }

    /// Starts it anew on the same port, and empty; kills it first if it still runs.
    ///
    /// # Panics
    /// If it does not start.
    pub fn restart(&self) {
        let mut process = self.lock();
        let began = Instant::now();
        loop {
            match run(&mut process, self.port, self.ready) {
                Ok(()) => break,
                Err(Refusal::PortTaken) if began.elapsed() < MAX_WAIT => pause(),
                Err(refusal) => refusal.panic(self.flavor),
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Process> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
