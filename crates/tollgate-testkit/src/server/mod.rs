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

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

mod flavor;
pub(crate) mod port;
mod process;
mod raw;
mod value;

pub use flavor::Flavor;
pub use raw::Raw;
pub use value::Value;

use crate::wait::{PATIENCE, pause};
use process::Process;

/// A server without persistence, killed when it is dropped, and when the test is killed.
#[derive(Debug)]
pub struct Server {
    flavor: Flavor,
    args: Vec<String>,
    port: u16,
    /// Nothing while it is killed.
    process: Mutex<Option<Process>>,
}

/// A server with settings of its own.
#[derive(Debug)]
pub struct Builder {
    flavor: Flavor,
    args: Vec<String>,
}

/// Why a server did not start, by its own words.
enum Refusal {
    PortTaken,
    Other(String),
}

impl Builder {
    /// One more word of the command line.
    #[must_use]
    pub fn arg(mut self, arg: impl Into<String>) -> Self {
        self.args.push(arg.into());
        self
    }

    /// Starts it, and waits until it answers.
    ///
    /// # Panics
    /// If the program is not installed, or does not start.
    pub fn start(self) -> Server {
        let began = Instant::now();
        loop {
            let port = port::free();
            match run(self.flavor, port, &self.args) {
                Ok(process) => {
                    let process = Mutex::new(Some(process));
                    return Server { flavor: self.flavor, args: self.args, port, process };
                }
                Err(Refusal::PortTaken) if began.elapsed() < PATIENCE => {}
                Err(refusal) => refusal.panic(self.flavor),
            }
        }
    }
}

impl Server {
    /// One as the program is by itself.
    pub fn start(flavor: Flavor) -> Self {
        Self::builder(flavor).start()
    }

    /// One with settings: `Server::builder(flavor).arg("--requirepass").arg("secret").start()`.
    pub fn builder(flavor: Flavor) -> Builder {
        Builder { flavor, args: Vec::new() }
    }

    /// What it is.
    pub fn flavor(&self) -> Flavor {
        self.flavor
    }

    /// Where it listens, on 127.0.0.1. A restart does not change it.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Its address for clients.
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// Its address for one user, who is `"name:password@"` or empty, and one database.
    pub fn url_with(&self, user: &str, database: u32) -> String {
        format!("redis://{user}127.0.0.1:{}/{database}", self.port)
    }

    /// A connection of its own.
    pub fn raw(&self) -> Raw {
        Raw::connect(self.port)
    }

    /// The process.
    pub fn pid(&self) -> u32 {
        self.with(Process::id)
    }

    /// The processor time of the process so far, in steps of some milliseconds.
    pub fn cpu(&self) -> Duration {
        self.with(Process::cpu)
    }

    /// The bytes of memory that the process holds.
    pub fn rss(&self) -> u64 {
        self.with(Process::rss)
    }

    /// What the process has told so far.
    pub fn log(&self) -> String {
        self.with(Process::log)
    }

    /// Stops it where it is: connections stay, new ones are made, nothing is answered.
    pub fn hang(&self) {
        self.with(Process::hang);
    }

    /// Lets it go on, with all that was asked meanwhile.
    pub fn resume(&self) {
        self.with(Process::resume);
    }

    /// Ends it at once. Nobody listens on its port until it is restarted.
    pub fn kill(&self) {
        self.lock().take();
    }

    /// Starts it anew on the same port, and empty; kills it first if it still runs.
    ///
    /// # Panics
    /// If it does not start.
    pub fn restart(&self) {
        let mut process = self.lock();
        process.take();
        let began = Instant::now();
        *process = loop {
            match run(self.flavor, self.port, &self.args) {
                Ok(process) => break Some(process),
                Err(Refusal::PortTaken) if began.elapsed() < PATIENCE => pause(),
                Err(refusal) => refusal.panic(self.flavor),
            }
        };
    }

    fn with<T>(&self, look: impl FnOnce(&Process) -> T) -> T {
        look(self.lock().as_ref().expect("the server is not killed"))
    }

    fn lock(&self) -> MutexGuard<'_, Option<Process>> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Refusal {
    fn panic(self, flavor: Flavor) -> ! {
        match self {
            Self::PortTaken => panic!("{flavor} did not start: its port is taken"),
            Self::Other(log) => panic!("{flavor} did not start:\n{log}"),
        }
    }
}

fn run(flavor: Flavor, port: u16, args: &[String]) -> Result<Process, Refusal> {
    let port_text = port.to_string();
    let own = ["--port", &port_text, "--bind", "127.0.0.1", "--daemonize", "no"];
    let empty = ["--save", "", "--appendonly", "no"];
    let own = own.into_iter().chain(empty).map(str::to_owned);
    let process =
        Process::start(&flavor.program(), &own.chain(args.iter().cloned()).collect::<Vec<_>>());
    let began = Instant::now();
    loop {
        // Not by an answer alone: it could be that of another on this port.
        if process.log().contains("Ready to accept connections") && answers(port) {
            return Ok(process);
        }
        if !process.is_running() || began.elapsed() > PATIENCE {
            let log = process.log();
            let is_taken = log.contains("Address already in use");
            return Err(if is_taken { Refusal::PortTaken } else { Refusal::Other(log) });
        }
        pause();
    }
}

/// Whether there is an answer, be it that nobody may ask without a password.
fn answers(port: u16) -> bool {
    Raw::try_connect(port).and_then(|mut raw| raw.try_call(&["PING"])).is_ok()
}

#[cfg(test)]
mod tests {
    use super::{Flavor, Refusal, Server, port, run};

    #[test]
    fn a_taken_port_is_told_from_other_trouble() {
        for flavor in Flavor::ALL {
            let held = port::listen();
            let port = held.local_addr().expect("it listens").port();
            assert!(matches!(run(flavor, port, &[]), Err(Refusal::PortTaken)), "{flavor}");
            // Somebody answers here, but not who was started.
            let other = Server::start(flavor);
            assert!(matches!(run(flavor, other.port(), &[]), Err(Refusal::PortTaken)), "{flavor}");
        }
    }
}
