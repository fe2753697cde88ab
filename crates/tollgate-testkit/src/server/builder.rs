//! Settings of a server, and starting it.

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::sync::Mutex;
use std::time::Instant;

use super::process::Process;
use super::tls::Tls;
use super::watchdog::scratch;
use super::{Flavor, Raw, Server, port};
use crate::clock::Clock;
use crate::wait::{MAX_WAIT, pause};

/// A server with settings of its own.
#[derive(Debug)]
pub struct Builder {
    flavor: Flavor,
    args: Vec<OsString>,
    /// A file that the server may write to; without it, it can keep no settings.
    config: Option<String>,
    ready: Ready,
    pub(super) tls: Option<Tls>,
    unix: bool,
    environment: Vec<OsString>,
}

/// How a server shows that it listens.
#[derive(Debug, Clone, Copy)]
pub(super) enum Ready {
    /// It says so, and somebody answers.
    Says,
    /// Who answers is it. A sentinel does not say when it listens.
    IsAsked,
}

/// Why a server did not start, by its own words.
#[derive(Debug)]
pub(super) enum Refusal {
    PortTaken,
    NoTls,
    Other(String),
}

impl Builder {
    pub(super) fn new(flavor: Flavor) -> Self {
        let (args, environment) = (Vec::new(), Vec::new());
        Self { flavor, args, config: None, ready: Ready::Says, tls: None, unix: false, environment }
    }

    /// One more word of the command line.
    #[must_use]
    pub fn arg(mut self, arg: impl Into<OsString>) -> Self {
        self.args.push(arg.into());
        self
    }

    /// More words of the command line.
    #[must_use]
    pub fn args<A: Into<OsString>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// On a Unix socket too, which [`Server::unix_path`] tells.
    #[must_use]
    pub fn unix(mut self) -> Self {
        self.unix = true;
        self
    }

    /// By this clock instead of the machine's. A step of it may be noticed some milliseconds later.
    #[must_use]
    pub fn clock(mut self, clock: &Clock) -> Self {
        let set = |(name, value): (&str, OsString)| {
            let mut set = OsString::from(format!("{name}="));
            set.push(value);
            set
        };
        self.environment = clock.environment().map(set).into();
        self
    }

    /// With a file of settings that it keeps over restarts, and can change.
    #[must_use]
    pub(super) fn config(mut self, lines: &str) -> Self {
        self.config = Some(lines.to_owned());
        self
    }

    /// As a sentinel, which needs a file of settings.
    #[must_use]
    pub(super) fn sentinel(mut self) -> Self {
        self.ready = Ready::IsAsked;
        self.arg("--sentinel")
    }

    /// Starts it, and waits until it answers.
    ///
    /// # Panics
    /// If the program is not installed, or does not start.
    pub fn start(self) -> Server {
        let began = Instant::now();
        loop {
            match self.start_on(port::free()) {
                Ok(server) => return server,
                Err(Refusal::PortTaken) if began.elapsed() < MAX_WAIT => {}
                Err(refusal) => refusal.panic(self.flavor),
            }
        }
    }

    pub(super) fn start_on(&self, port: u16) -> Result<Server, Refusal> {
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

    /// The words that run the program. `env` becomes what it runs: their process is the same.
    fn program(&self) -> Vec<OsString> {
        let program = self.flavor.program().into_os_string();
        match self.environment.as_slice() {
            [] => vec![program],
            set => ["env".into()].into_iter().chain(set.iter().cloned()).chain([program]).collect(),
        }
    }

    /// Without what is on other ports, and with its file of settings written.
    fn command_line(&self, port: u16, dir: &Path) -> Vec<OsString> {
        let mut words = Vec::new();
        if let Some(config) = &self.config {
            let path = dir.join("config");
            fs::write(&path, config).expect("a new directory can be written to");
            words.push(path.into_os_string());
        }
        let port = port.to_string();
        words.extend(["--port", &port, "--bind", "127.0.0.1", "--daemonize", "no"].map(Into::into));
        words.extend(["--save", "", "--appendonly", "no"].map(Into::into));
        words.extend_from_slice(&self.args);
        words
    }
}

impl Refusal {
    fn of(log: String) -> Self {
        if log.contains("Address already in use") {
            Self::PortTaken
        } else if log.contains("Failed finding TLS support") {
            Self::NoTls
        } else {
            Self::Other(log)
        }
    }

    pub(super) fn panic(self, flavor: Flavor) -> ! {
        match self {
            Self::PortTaken => panic!("{flavor} did not start: its port is taken"),
            Self::NoTls => panic!("{flavor} did not start: its program was built without TLS"),
            Self::Other(log) => panic!("{flavor} did not start:\n{log}"),
        }
    }
}

/// Runs a server, and waits until it answers.
pub(super) fn run(process: &mut Process, port: u16, ready: Ready) -> Result<(), Refusal> {
    process.run();
    let began = Instant::now();
    loop {
        if ready.is_so(process, port) {
            return Ok(());
        }
        if !process.is_running() || began.elapsed() > MAX_WAIT {
            return Err(Refusal::of(process.log()));
        }
        pause();
    }
}

impl Ready {
    /// Not by an answer alone: it could be that of another on this port.
    fn is_so(self, process: &Process, port: u16) -> bool {
        match self {
            Self::Says => {
                process.log().contains("Ready to accept connections")
                    // Be it that nobody may ask without a password.
                    && asked(port, &["PING"]).is_some()
            }
            Self::IsAsked => {
                let id = format!("process_id:{}\r\n", process.id());
                asked(port, &["INFO", "server"]).is_some_and(|told| told.contains(&id))
            }
        }
    }
}

fn asked(port: u16, command: &[&str]) -> Option<String> {
    let answer = Raw::try_connect(port).and_then(|mut raw| raw.try_call(command)).ok()?;
    Some(if answer.is_error() { answer.error() } else { answer.text() }.to_owned())
}

#[cfg(test)]
mod tests {
    use super::super::{Flavor, Server, port};
    use super::{Builder, Refusal};

    #[test]
    fn a_taken_port_is_told_from_other_trouble() {
        for flavor in Flavor::ALL {
            let start_on = |port| Builder::new(flavor).start_on(port);
            let held = port::listen();
            let port = held.local_addr().expect("it listens").port();
            assert!(matches!(start_on(port), Err(Refusal::PortTaken)), "{flavor}");
            // Somebody answers here, but not who was started.
            let other = Server::start(flavor);
            assert!(matches!(start_on(other.port()), Err(Refusal::PortTaken)), "{flavor}");
        }
    }
}
