//! Runs an example as a separate process.

use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};

/// Returns the path of an example, which `cargo test` builds next to the tests.
pub(crate) fn program(name: &str) -> PathBuf {
    let mut path = std::env::current_exe().expect("the path of the test binary");
    path.pop();
    path.pop();
    path.push("examples");
    path.push(name);
    assert!(path.exists(), "{name} is not built: cargo build -p tollgate-tower --examples");
    path
}

/// Runs an example until it exits, with only these of our environment variables.
pub(crate) fn run(name: &str, environment: &[(&str, &str)]) -> Output {
    command(name, environment).output().expect("the example runs")
}

fn command(name: &str, environment: &[(&str, &str)]) -> Command {
    let mut command = Command::new(program(name));
    command
        .env_remove("REDIS_URL")
        .env_remove("PORT")
        .env_remove("UPSTREAM_URL")
        .env_remove("ADMIN_TOKEN")
        .envs(environment.iter().copied());
    command.stdin(Stdio::null());
    command
}

/// An example that serves until this is dropped.
pub(crate) struct Serving {
    child: Child,
    url: String,
}

impl Serving {
    /// Starts the example and waits until it prints its address.
    pub(crate) fn start(name: &str, environment: &[(&str, &str)]) -> Self {
        let mut command = command(name, environment);
        let mut child =
            command.env("PORT", "0").stderr(Stdio::piped()).spawn().expect("the example starts");
        let mut errors = BufReader::new(child.stderr.take().expect("stderr is piped"));
        let mut line = String::new();
        errors.read_line(&mut line).expect("stderr is text");
        let url = line.trim().strip_prefix("listening on ").map(str::to_owned);
        // Drain stderr so that the pipe does not fill up.
        std::thread::spawn(move || drop(errors.read_to_end(&mut Vec::new())));
        Self { child, url: url.unwrap_or_else(|| panic!("{name} printed {line:?}")) }
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    #[cfg(feature = "metrics")]
    pub(crate) fn is_running(&mut self) -> bool {
        self.child.try_wait().expect("the child process exists").is_none()
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
