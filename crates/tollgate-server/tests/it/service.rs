//! Runs the real binary on a free port and stops it at the end of the test.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

use serde_json::Value;
pub(crate) use tollgate_testkit::wait::eventually;

use crate::client::{Client, Reply};

/// Variable for tests that measure the memory of a new process. By default the allocator uses transparent huge pages: the
/// first use of each 2 MiB region counts with its whole size. A fresh process then grows by 9 to 15 MB whatever its first
/// requests are, valid or not, and by 3 MB without huge pages.
pub(crate) const WITHOUT_HUGE_PAGES: (&str, &str) = ("MIMALLOC_ALLOW_THP", "0");

/// A running `tollgate serve`.
pub(crate) struct Service {
    process: Child,
    scheme: &'static str,
    address: SocketAddr,
    log: Arc<Mutex<String>>,
    reader: Option<JoinHandle<()>>,
}

impl Service {
    /// Starts `tollgate serve` on a free port, without settings from the environment.
    pub(crate) fn start(args: &[&str]) -> Self {
        Self::start_as(&mut tollgate(&[&["serve", "--http", "127.0.0.1:0"], args].concat()))
    }

    /// Starts `tollgate serve` on a free port with these environment variables.
    pub(crate) fn start_with(args: &[&str], environment: &[(&str, &str)]) -> Self {
        let mut command = tollgate(&[&["serve", "--http", "127.0.0.1:0"], args].concat());
        Self::start_as(command.envs(environment.iter().copied()))
    }

    /// Starts a `serve` command and waits until it listens.
    pub(crate) fn start_as(command: &mut Command) -> Self {
        let mut process =
            command.stderr(Stdio::piped()).stdin(Stdio::null()).spawn().expect("the binary starts");
        let mut stderr = BufReader::new(process.stderr.take().expect("stderr is piped"));
        let (mut log, mut found) = (String::new(), None);
        while found.is_none() {
            let mut line = String::new();
            let read = stderr.read_line(&mut line).expect("stderr is text");
            log.push_str(&line);
            assert_ne!(read, 0, "the server did not start: {log}");
            found = listening(line.trim());
        }
        let log = Arc::new(Mutex::new(log));
        let (reader, (scheme, address)) =
            (follow(stderr, Arc::clone(&log)), found.expect("just found"));
        Self { process, scheme, address, log, reader: Some(reader) }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the address of `--admin`: the second one in the log.
    pub(crate) fn admin_address(&self) -> SocketAddr {
        let second = || {
            let log = self.log();
            let lines = log.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n'));
            lines.filter_map(listening).nth(1).map(|(_, address)| address)
        };
        eventually("a second listener", || second().is_some());
        second().expect("just seen")
    }

    pub(crate) fn url(&self) -> String {
        format!("{}://{}", self.scheme, self.address)
    }

    pub(crate) fn client(&self) -> Client {
        Client::connect(self.address)
    }

    /// Sends one request on a new connection.
    pub(crate) fn post(&self, path: &str, json: impl AsRef<[u8]>) -> Reply {
        self.client().post(path, json)
    }

    pub(crate) fn get(&self, path: &str) -> Reply {
        self.client().get(path)
    }

    /// Checks a key with cost 1 and returns the decision.
    pub(crate) fn check(&self, key: &str) -> Value {
        let reply = self.post("/check", format!(r#"{{"key":"{key}"}}"#));
        assert_eq!(reply.status, 200, "{}", reply.body);
        reply.json()
    }

    /// Returns the process id.
    pub(crate) fn id(&self) -> u32 {
        self.process.id()
    }

    pub(crate) fn signal(&self, name: &str) {
        signal(self.process.id(), name);
    }

    /// Waits until the log contains these words.
    pub(crate) fn wait_for_log(&self, words: &str) {
        eventually(words, || self.log().contains(words));
    }

    pub(crate) fn log(&self) -> String {
        self.log.lock().expect("not poisoned").clone()
    }

    /// Sends SIGTERM and waits for the exit.
    pub(crate) fn stop(mut self) -> (ExitStatus, String) {
        self.signal("TERM");
        self.wait()
    }

    /// Waits for the exit; returns the status and the log.
    pub(crate) fn wait(&mut self) -> (ExitStatus, String) {
        let status = self.process.wait().expect("it can be waited for");
        if let Some(reader) = self.reader.take() {
            reader.join().expect("the reader stops with the process");
        }
        (status, self.log())
    }

    /// Reads the whole standard output, which must be piped.
    pub(crate) fn take_stdout(&mut self) -> String {
        let mut text = String::new();
        let mut stdout = self.process.stdout.take().expect("stdout is piped");
        stdout.read_to_string(&mut text).expect("stdout is text");
        text
    }

    /// Kills the process with SIGKILL.
    pub(crate) fn kill(mut self) {
        self.process.kill().expect("it can be killed");
        let _ = self.wait();
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Returns the scheme and address of a `listening on` line.
fn listening(line: &str) -> Option<(&'static str, SocketAddr)> {
    ["http", "https"].into_iter().find_map(|scheme| {
        let address = line.strip_prefix(&format!("listening on {scheme}://"))?;
        Some((scheme, address.parse().expect("an address")))
    })
}

fn follow(mut stderr: impl Read + Send + 'static, log: Arc<Mutex<String>>) -> JoinHandle<()> {
    thread::spawn(move || {
        let mut bytes = [0; 4096];
        while let Ok(read @ 1..) = stderr.read(&mut bytes) {
            let text = String::from_utf8_lossy(&bytes[..read]).into_owned();
            log.lock().expect("not poisoned").push_str(&text);
        }
    })
}

/// Returns a command of the binary with these arguments and no settings in the environment.
pub(crate) fn tollgate(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tollgate"));
    for (name, _) in std::env::vars() {
        let is_setting = ["TOLLGATE_", "RATE_LIMIT_", "OTEL_", "NOTIFY_", "WATCHDOG_"]
            .iter()
            .any(|prefix| name.starts_with(prefix));
        if is_setting || name == "REDIS_URL" || name == "ENABLE_DISTRIBUTED_RATE_LIMITING" {
            command.env_remove(name);
        }
    }
    command.args(args);
    command
}

/// Runs a command until it exits.
pub(crate) fn run(args: &[&str]) -> Ended {
    Ended::from(tollgate(args).stdin(Stdio::null()).output().expect("the binary runs"))
}

/// Runs a command with this standard input until it exits.
pub(crate) fn run_with_input(args: &[&str], input: &str) -> Ended {
    let mut command = tollgate(args);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut process = command.spawn().expect("the binary runs");
    let mut stdin = process.stdin.take().expect("it is piped");
    let input = input.to_owned();
    // The command may close its input early.
    let writer = thread::spawn(move || drop(stdin.write_all(input.as_bytes())));
    let output = process.wait_with_output().expect("the binary runs");
    writer.join().expect("the writer stops with the process");
    Ended::from(output)
}

/// Exit code and output of a command.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl From<Output> for Ended {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code().expect("it was not killed"),
            stdout: String::from_utf8(output.stdout).expect("output is text"),
            stderr: String::from_utf8(output.stderr).expect("output is text"),
        }
    }
}

pub(crate) fn signal(process: u32, name: &str) {
    let script = format!("kill -{name} {process}");
    let sent = Command::new("sh").args(["-c", &script]).status().expect("there is a shell");
    assert!(sent.success(), "{script}");
}

/// A temporary directory, deleted on drop.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("tollgate-test-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).expect("temporary directories can be made");
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Replaces a file atomically, as editors do: writes a new file, then renames it.
    pub(crate) fn write(&self, name: &str, text: &str) -> String {
        let (path, new) = (self.0.join(name), self.0.join(format!("{name}.new")));
        fs::write(&new, text).expect("the directory can be written to");
        fs::rename(&new, &path).expect("the directory can be written to");
        path.to_str().expect("the path is UTF-8").to_owned()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
