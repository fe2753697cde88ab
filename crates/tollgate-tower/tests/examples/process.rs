//! An example as a process of its own.

use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};

/// The program of an example, which `cargo test` builds beside the tests.
pub(crate) fn program(name: &str) -> PathBuf {
    let mut path = std::env::current_exe().expect("tests are programs");
    path.pop();
    path.pop();
    path.push("examples");
    path.push(name);
    assert!(path.exists(), "{name} is not built: cargo build -p tollgate-tower --examples");
    path
}

/// Runs an example to its end, in an environment that has nothing of ours but this.
pub(crate) fn run(name: &str, environment: &[(&str, &str)]) -> Output {
    command(name, environment).output().expect("the example runs")
}

fn command(name: &str, environment: &[(&str, &str)]) -> Command {
    let mut command = Command::new(program(name));
    command.env_remove("REDIS_URL").env_remove("PORT").envs(environment.iter().copied());
    command.stdin(Stdio::null());
    command
}

/// An example that serves until this is dropped.
pub(crate) struct Serving {
    child: Child,
    url: String,
}

impl Serving {
    /// Starts it and waits until it says where it listens.
    pub(crate) fn start(name: &str, environment: &[(&str, &str)]) -> Self {
        let mut command = command(name, environment);
        let mut child =
            command.env("PORT", "0").stderr(Stdio::piped()).spawn().expect("the example starts");
        let mut errors = BufReader::new(child.stderr.take().expect("it was piped"));
        let mut line = String::new();
        errors.read_line(&mut line).expect("stderr is text");
        let url = line.trim().strip_prefix("listening on ").map(str::to_owned);
        // What it says later must not fill the pipe.
        std::thread::spawn(move || drop(errors.read_to_end(&mut Vec::new())));
        Self { child, url: url.unwrap_or_else(|| panic!("{name} said {line:?}")) }
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    pub(crate) fn is_running(&mut self) -> bool {
        self.child.try_wait().expect("it is our child").is_none()
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
