//! A server process under measurement, optionally pinned to a core.

use std::env;
use std::error::Error;
use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use crate::Outcome;

/// Maximum time until a server listens, including the time to load a large policy.
const START_TIMEOUT: Duration = Duration::from_secs(30);

/// The text before the scheme and the server's address on its standard error.
const LISTENING_PREFIX: &str = "listening on ";

/// CPU placement of processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cores {
    /// The server and the load generator each have their own core. Used for published figures.
    Pinned,
    /// No pinning. Used in tests.
    Any,
}

/// The role of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The server, on core 0.
    Server,
    /// The load generator, on core 1.
    Load,
}

impl Cores {
    /// Creates a command for a program on its core, with an environment that contains only `PATH`.
    #[must_use]
    pub fn command(self, role: Role, program: &PathBuf) -> Command {
        let core = match role {
            Role::Server => "0",
            Role::Load => "1",
        };
        let mut command = match self {
            Self::Any => Command::new(program),
            Self::Pinned => Command::new("taskset"),
        };
        if self == Self::Pinned {
            // `taskset` execs the program, so the process id stays the same.
            command.args(["--cpu-list", core]).arg(program);
        }
        command.env_clear().envs(env::var_os("PATH").map(|path| ("PATH", path)));
        command
    }
}

/// How to find the listening address of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Address {
    /// The server logs it to standard error, with this scheme.
    Logged(&'static str),
    /// The address is configured; the server is ready when it accepts connections.
    Fixed(SocketAddr),
}

impl Address {
    /// Returns a local address with a currently free port, for servers that cannot choose and log
    /// one.
    ///
    /// # Errors
    /// No port is free.
    pub fn free() -> Outcome<SocketAddr> {
        Ok(TcpListener::bind(("127.0.0.1", 0))?.local_addr()?)
    }
}

/// A running server process. Killed on drop.
#[derive(Debug)]
pub struct Server {
    child: Child,
    address: SocketAddr,
}

impl Server {
    /// Starts the server and waits until it listens.
    ///
    /// # Errors
    /// The server exits or does not listen in time. The error contains its standard error output.
    pub fn start(mut command: Command, address: Address) -> Outcome<Self> {
        let line = command_line(&command);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|error| format!("{line}: {error}"))?;
        let stderr = child.stderr.take().map(read_lines).ok_or("no standard error")?;
        // From here on the child is killed on every return path, also if it never listens.
        let mut server = Self { child, address: SocketAddr::from(([127, 0, 0, 1], 0)) };
        let listening = match address {
            Address::Logged(scheme) => logged_address(&stderr, scheme),
            Address::Fixed(address) => server.wait_for_connection(address, &stderr),
        };
        server.address = listening.map_err(|message| format!("{line}: {message}"))?;
        Ok(server)
    }

    /// Returns the listening address.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the process id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Asks the server to stop, and waits until it has exited.
    ///
    /// # Errors
    /// The server fails.
    pub fn stop(mut self) -> Outcome<()> {
        let sent = Command::new("kill").arg(self.id().to_string()).status()?;
        let status = self.child.wait()?;
        if sent.success() && status.success() {
            return Ok(());
        }
        Err(format!("the server did not stop: {status}").into())
    }

    /// Waits until the address accepts connections.
    fn wait_for_connection(
        &mut self,
        at: SocketAddr,
        stderr: &Receiver<String>,
    ) -> Outcome<SocketAddr> {
        let deadline = Instant::now() + START_TIMEOUT;
        while TcpStream::connect(at).is_err() {
            if self.child.try_wait()?.is_some() {
                return Err(exited(&stderr.iter().collect::<Vec<_>>()));
            }
            if Instant::now() > deadline {
                return Err(format!("not listening on {at}").into());
            }
            thread::park_timeout(Duration::from_millis(5));
        }
        Ok(at)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Both fail only if the process has already exited.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns the name and version that a program prints with `--version`.
///
/// # Errors
/// The program is missing.
pub fn printed_version(program: &PathBuf) -> Outcome<String> {
    let output = Command::new(program).arg("--version").output()?;
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}

/// Formats program and arguments, without the environment.
fn command_line(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(OsStr::to_string_lossy).collect::<Vec<_>>().join(" ")
}

fn exited(stderr: &[String]) -> Box<dyn Error + Send + Sync> {
    format!("exited before it listened\n{}", stderr.join("\n")).into()
}

/// Reads standard error until the process exits, so that the process never blocks on a full pipe.
fn read_lines(stderr: ChildStderr) -> Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        for line in BufReader::new(stderr).lines().map_while(Result::ok) {
            // The receiver is dropped once the server listens.
            let _ = sender.send(line);
        }
    });
    receiver
}

fn logged_address(stderr: &Receiver<String>, scheme: &str) -> Outcome<SocketAddr> {
    let deadline = Instant::now() + START_TIMEOUT;
    let mut before = Vec::new();
    loop {
        match stderr.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(line) => match address_in(&line, scheme) {
                Some(address) => return Ok(address),
                None => before.push(line),
            },
            Err(RecvTimeoutError::Disconnected) => return Err(exited(&before)),
            Err(RecvTimeoutError::Timeout) => {
                return Err(
                    format!("did not log its listening address\n{}", before.join("\n")).into()
                );
            }
        }
    }
}

/// Extracts the address. A time stamp may precede it, and any text may follow.
fn address_in(line: &str, scheme: &str) -> Option<SocketAddr> {
    let (_, url) = line.split_once(LISTENING_PREFIX)?;
    let address = url.strip_prefix(scheme)?.strip_prefix("://")?;
    address.split_whitespace().next()?.trim_end_matches('/').parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Cores::Any.command(Role::Server, &PathBuf::from("sh"));
        command.args(["-c", script]);
        command
    }

    #[test]
    fn finds_the_address_anywhere_in_a_line() {
        let address = Some(SocketAddr::from(([127, 0, 0, 1], 4711)));
        for (line, expected) in [
            ("listening on http://127.0.0.1:4711", address),
            ("12:00 INFO listening on http://127.0.0.1:4711/ (memory)", address),
            ("listening on redis://127.0.0.1:4711", None),
            ("listening on http://nowhere", None),
            ("store: memory", None),
        ] {
            assert_eq!(address_in(line, "http"), expected, "{line}");
        }
    }

    #[test]
    fn server_is_killed_on_drop() {
        let script =
            "echo store: memory >&2; echo listening on http://127.0.0.1:4711 >&2; exec cat <&2";
        let server = Server::start(shell(script), Address::Logged("http")).unwrap();
        assert_eq!(server.address().port(), 4711);
        let process = PathBuf::from(format!("/proc/{}", server.id()));
        assert!(process.exists());
        drop(server);
        assert!(!process.exists());
    }

    #[test]
    fn server_that_exits_cleanly_is_stopped() {
        for (exit, is_clean) in [(0, true), (3, false)] {
            let script = format!(
                "sleep 60 & trap 'kill $!; exit {exit}' TERM; echo listening on http://127.0.0.1:4711 >&2; wait"
            );
            let command = shell(&script);
            let server = Server::start(command, Address::Logged("http")).unwrap();
            assert_eq!(server.stop().is_ok(), is_clean);
        }
    }

    #[test]
    fn error_contains_output_of_a_server_that_exits() {
        for address in [Address::Logged("http"), Address::Fixed(Address::free().unwrap())] {
            let error = Server::start(shell("echo no such flag >&2; exit 2"), address).unwrap_err();
            let error = error.to_string();
            assert!(error.starts_with("sh -c echo no such flag"), "{error}");
            assert!(error.ends_with(": exited before it listened\nno such flag"), "{error}");
        }
    }

    #[test]
    fn server_does_not_inherit_the_environment() {
        let script =
            r#"test -z "$CARGO" && echo listening on http://127.0.0.1:1 >&2 && exec sleep 60"#;
        assert!(env::var_os("CARGO").is_some(), "cargo sets it for tests");
        assert!(Server::start(shell(script), Address::Logged("http")).is_ok());
    }
}
