//! A server under measurement, in a process and on a core of its own.

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

/// A server is listening by then, whatever policy it has to read.
const PATIENCE: Duration = Duration::from_secs(30);

/// What comes before a server's address on its standard error.
const ANNOUNCED: &str = "listening on http://";

/// Where processes run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cores {
    /// The server and the load on a core each: how figures are taken.
    Apart,
    /// Wherever the system likes: how it is tried that all of this works.
    Any,
}

/// A process's part in the measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// On the first core.
    Server,
    /// On the second.
    Load,
}

impl Cores {
    /// Starts a program where it belongs, with nothing in its environment that could configure it.
    #[must_use]
    pub fn command(self, role: Role, program: &PathBuf) -> Command {
        let core = match role {
            Role::Server => "0",
            Role::Load => "1",
        };
        let mut command = match self {
            Self::Any => Command::new(program),
            Self::Apart => Command::new("taskset"),
        };
        if self == Self::Apart {
            // It becomes the program: their process numbers are the same.
            command.args(["--cpu-list", core]).arg(program);
        }
        command.env_clear().envs(env::var_os("PATH").map(|path| ("PATH", path)));
        command
    }
}

/// How to learn where a server listens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Address {
    /// It says so on its standard error.
    Announced,
    /// It was told, and says nothing when it is ready.
    Told(SocketAddr),
}

impl Address {
    /// A port that was free a moment ago, for servers that cannot pick one and say which.
    ///
    /// # Errors
    /// None is free.
    pub fn free() -> Outcome<SocketAddr> {
        Ok(TcpListener::bind(("127.0.0.1", 0))?.local_addr()?)
    }
}

/// A running server, killed when dropped.
#[derive(Debug)]
pub struct Server {
    child: Child,
    address: SocketAddr,
}

impl Server {
    /// Starts it and waits until it listens.
    ///
    /// # Errors
    /// It ends instead, and what it said.
    pub fn start(mut command: Command, address: Address) -> Outcome<Self> {
        let line = command_line(&command);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|error| format!("{line}: {error}"))?;
        let said = child.stderr.take().map(lines).ok_or("no standard error")?;
        // From here on it is killed, also when it does not get as far as listening.
        let mut server = Self { child, address: SocketAddr::from(([127, 0, 0, 1], 0)) };
        let listening = match address {
            Address::Announced => announced(&said),
            Address::Told(address) => server.connected(address, &said),
        };
        server.address = listening.map_err(|complaint| format!("{line}: {complaint}"))?;
        Ok(server)
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its process.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits until somebody takes connections there.
    fn connected(&mut self, at: SocketAddr, said: &Receiver<String>) -> Outcome<SocketAddr> {
        let deadline = Instant::now() + PATIENCE;
        while TcpStream::connect(at).is_err() {
            if self.child.try_wait()?.is_some() {
                return Err(ended(&said.iter().collect::<Vec<_>>()));
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
        // Neither can fail but for a process that is gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Without the environment, which is nobody's business.
fn command_line(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(OsStr::to_string_lossy).collect::<Vec<_>>().join(" ")
}

fn ended(said: &[String]) -> Box<dyn Error + Send + Sync> {
    format!("ended before it listened\n{}", said.join("\n")).into()
}

/// Reads on for as long as the process lives, lest it wait for room to write.
fn lines(stderr: ChildStderr) -> Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        for line in BufReader::new(stderr).lines().map_while(Result::ok) {
            // Nobody listens once the server does.
            let _ = sender.send(line);
        }
    });
    receiver
}

fn announced(said: &Receiver<String>) -> Outcome<SocketAddr> {
    let deadline = Instant::now() + PATIENCE;
    let mut before = Vec::new();
    loop {
        match said.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(line) => match address_in(&line) {
                Some(address) => return Ok(address),
                None => before.push(line),
            },
            Err(RecvTimeoutError::Disconnected) => return Err(ended(&before)),
            Err(RecvTimeoutError::Timeout) => {
                return Err(format!("does not say where it listens\n{}", before.join("\n")).into());
            }
        }
    }
}

/// The line may have a time before and anything after the address.
fn address_in(line: &str) -> Option<SocketAddr> {
    let (_, address) = line.split_once(ANNOUNCED)?;
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
    fn the_port_is_found_wherever_the_line_has_it() {
        let address = Some(SocketAddr::from(([127, 0, 0, 1], 4711)));
        assert_eq!(address_in("listening on http://127.0.0.1:4711"), address);
        assert_eq!(address_in("12:00 INFO listening on http://127.0.0.1:4711/ (memory)"), address);
        assert_eq!(address_in("listening on http://nowhere"), None);
        assert_eq!(address_in("store: memory"), None);
    }

    #[test]
    fn a_server_says_where_it_is_and_dies_with_its_handle() {
        let script =
            "echo store: memory >&2; echo listening on http://127.0.0.1:4711 >&2; exec cat <&2";
        let server = Server::start(shell(script), Address::Announced).unwrap();
        assert_eq!(server.address().port(), 4711);
        let process = PathBuf::from(format!("/proc/{}", server.id()));
        assert!(process.exists());
        drop(server);
        assert!(!process.exists());
    }

    #[test]
    fn a_server_that_ends_is_quoted() {
        for address in [Address::Announced, Address::Told(Address::free().unwrap())] {
            let error = Server::start(shell("echo no such flag >&2; exit 2"), address).unwrap_err();
            let error = error.to_string();
            assert!(error.starts_with("sh -c echo no such flag"), "{error}");
            assert!(error.ends_with(": ended before it listened\nno such flag"), "{error}");
        }
    }

    #[test]
    fn nothing_of_our_environment_reaches_a_server() {
        let script =
            r#"test -z "$CARGO" && echo listening on http://127.0.0.1:1 >&2 && exec sleep 60"#;
        assert!(env::var_os("CARGO").is_some(), "cargo sets it for tests");
        assert!(Server::start(shell(script), Address::Announced).is_ok());
    }
}
