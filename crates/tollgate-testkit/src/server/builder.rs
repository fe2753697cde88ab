//! Builder of a server: settings and start.

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::sync::Mutex;
use std::time::Instant;

use super::process::Process;
use super::tls::Tls;
use super::{Flavor, Raw, Server, port};
use crate::clock::Clock;
use crate::wait::{MAX_WAIT, pause};
use crate::watchdog::scratch;

/// Settings of a server to be started.
#[derive(Debug)]
pub struct Builder {
    flavor: Flavor,
    args: Vec<OsString>,
    /// The content of the config file, which the server may rewrite; `None` for no file.
    config: Option<String>,
    ready: Ready,
    pub(super) tls: Option<Tls>,
    unix: bool,
    environment: Vec<OsString>,
}

/// How the readiness of a server is detected.
#[derive(Debug, Clone, Copy)]
pub(super) enum Ready {
    /// The server logs that it is ready, and the port replies.
    Logged,
    /// The port replies with the process id of the server. A sentinel does not log that it is ready.
    ProcessId,
}

/// Why a server did not start, from its log.
#[derive(Debug)]
pub(super) enum StartError {
    PortInUse,
    NoTls,
    Other(String),
}

impl Builder {
    pub(super) fn new(flavor: Flavor) -> Self {
        let (args, environment) = (Vec::new(), Vec::new());
        Self {
            flavor,
            args,
            config: None,
            ready: Ready::Logged,
            tls: None,
            unix: false,
            environment,
        }
    }

    /// Adds a command line argument.
    #[must_use]
    pub fn arg(mut self, arg: impl Into<OsString>) -> Self {
        self.args.push(arg.into());
        self
    }

    /// Adds command line arguments.
    #[must_use]
    pub fn args<A: Into<OsString>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// Also listens on a Unix socket; see [`Server::unix_path`].
    #[must_use]
    pub fn unix(mut self) -> Self {
        self.unix = true;
        self
    }

    /// Uses this clock as wall clock. The server may notice a step some milliseconds later.
    #[must_use]
    pub fn clock(mut self, clock: &Clock) -> Self {
        let assignment = |(name, value): (&str, OsString)| {
            let mut assignment = OsString::from(format!("{name}="));
            assignment.push(value);
            assignment
        };
        self.environment = clock.environment().map(assignment).into();
        self
    }

    /// Uses a config file, which the server can rewrite and which stays over restarts.
    #[must_use]
    pub(super) fn config(mut self, lines: &str) -> Self {
        self.config = Some(lines.to_owned());
        self
    }

    /// Runs as a sentinel, which needs a config file.
    #[must_use]
    pub(super) fn sentinel(mut self) -> Self {
        self.ready = Ready::ProcessId;
        self.arg("--sentinel")
    }

    /// Starts the server, and waits until it is ready.
    ///
    /// # Panics
    /// If the program is not installed, or does not start.
    pub fn start(self) -> Server {
        let began = Instant::now();
        loop {
            match self.start_on(port::free()) {
                Ok(server) => return server,
                Err(StartError::PortInUse) if began.elapsed() < MAX_WAIT => {}
                Err(error) => error.panic(self.flavor),
            }
        }
    }

    pub(super) fn start_on(&self, port: u16) -> Result<Server, StartError> {
        let dir = scratch();
        let tls_port = self.tls.as_ref().map(|_| port::free());
        let unix = self.unix.then(|| dir.join("socket"));
        let mut args = self.command_line(port, &dir);
        args.extend(self.tls.iter().zip(tls_port).flat_map(|(tls, port)| tls.args(port)));
        args.extend(unix.iter().flat_map(|path| ["--unixsocket".into(), path.clone().into()]));
        let mut process = Process::new(dir, self.program(), &args);
        run(&mut process, port, self.ready)?;
        let (flavor, ready) = (self.flavor, self.ready);
        Ok(Server { flavor, port, tls_port, unix, ready, process: Mutex::new(process) })
    }

    /// Returns the program with its environment. `env` executes the program in its own process, so the id stays.
    fn program(&self) -> Vec<OsString> {
        let program = self.flavor.program().into_os_string();
        match self.environment.as_slice() {
            [] => vec![program],
            assignments => ["env".into()]
                .into_iter()
                .chain(assignments.iter().cloned())
                .chain([program])
                .collect(),
        }
    }

    /// Writes the config file, and returns the arguments without those of TLS and the Unix socket.
    fn command_line(&self, port: u16, dir: &Path) -> Vec<OsString> {
        let mut words = Vec::new();
        if let Some(config) = &self.config {
            let path = dir.join("config");
            fs::write(&path, config).expect("write to the new directory");
            words.push(path.into_os_string());
        }
        let port = port.to_string();
        words.extend(["--port", &port, "--bind", "127.0.0.1", "--daemonize", "no"].map(Into::into));
        words.extend(["--save", "", "--appendonly", "no"].map(Into::into));
        words.extend_from_slice(&self.args);
        words
    }
}

impl StartError {
    fn of(log: String) -> Self {
        if log.contains("Address already in use") {
            Self::PortInUse
        } else if log.contains("Failed finding TLS support") {
            Self::NoTls
        } else {
            Self::Other(log)
        }
    }

    pub(super) fn panic(self, flavor: Flavor) -> ! {
        match self {
            Self::PortInUse => panic!("{flavor} did not start: its port is in use"),
            Self::NoTls => panic!("{flavor} did not start: its program was built without TLS"),
            Self::Other(log) => panic!("{flavor} did not start:\n{log}"),
        }
    }
}

/// Starts a server, and waits until it is ready.
pub(super) fn run(process: &mut Process, port: u16, ready: Ready) -> Result<(), StartError> {
    process.run();
    let began = Instant::now();
    loop {
        if ready.is_reached(process, port) {
            return Ok(());
        }
        if !process.is_running() || began.elapsed() > MAX_WAIT {
            return Err(StartError::of(process.log()));
        }
        pause();
    }
}

impl Ready {
    /// Returns whether the server is ready. A reply alone is not enough: another server could have this port.
    fn is_reached(self, process: &Process, port: u16) -> bool {
        match self {
            Self::Logged => {
                process.log().contains("Ready to accept connections")
                    // The reply may be an error, such as a missing password.
                    && call(port, &["PING"]).is_some()
            }
            Self::ProcessId => {
                let id = format!("process_id:{}\r\n", process.id());
                call(port, &["INFO", "server"]).is_some_and(|reply| reply.contains(&id))
            }
        }
    }
}

/// Returns the text of a reply; `None` without one.
fn call(port: u16, command: &[&str]) -> Option<String> {
    let reply = Raw::try_connect(port).and_then(|mut raw| raw.try_call(command)).ok()?;
    Some(if reply.is_error() { reply.error() } else { reply.text() }.to_owned())
}

#[cfg(test)]
mod tests {
    use super::super::{Flavor, Server, port};
    use super::{Builder, StartError};

    #[test]
    fn detects_a_port_in_use() {
        for flavor in Flavor::ALL {
            let start_on = |port| Builder::new(flavor).start_on(port);
            let listener = port::listen();
            let port = listener.local_addr().expect("listeners have an address").port();
            assert!(matches!(start_on(port), Err(StartError::PortInUse)), "{flavor}");
            // Another server replies on this port.
            let other = Server::start(flavor);
            assert!(matches!(start_on(other.port()), Err(StartError::PortInUse)), "{flavor}");
        }
    }
}
