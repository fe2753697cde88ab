//! A server process that can be started, hung, killed and restarted.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::process_stats;
use crate::wait::eventually;
use crate::watchdog::Watchdog;

#[derive(Debug)]
pub(super) struct Process {
    watchdog: Watchdog,
    /// The process id; `None` while it does not run.
    id: Option<u32>,
}

impl Process {
    /// Prepares a command (program and leading arguments) in a directory, which is deleted when this is dropped.
    pub(super) fn new(dir: PathBuf, program: Vec<OsString>, args: &[OsString]) -> Self {
        let mut command = program;
        command.extend_from_slice(args);
        command.extend(["--dir".into(), dir.clone().into_os_string()]);
        Self { watchdog: Watchdog::new(dir, &command), id: None }
    }

    /// Starts the process; kills it first if it still runs.
    pub(super) fn run(&mut self) {
        self.id = Some(self.watchdog.run());
    }

    /// Kills the process immediately. Its directory stays.
    pub(super) fn kill(&mut self) {
        self.id = None;
        self.watchdog.kill();
    }

    pub(super) fn dir(&self) -> &Path {
        self.watchdog.dir()
    }

    pub(super) fn id(&self) -> u32 {
        self.id.expect("the server runs")
    }

    /// Returns the output so far.
    pub(super) fn log(&self) -> String {
        fs::read_to_string(self.dir().join("log")).unwrap_or_default()
    }

    pub(super) fn is_running(&self) -> bool {
        self.state().is_some_and(|state| state != 'Z' && state != 'X')
    }

    /// Returns whether it runs and is not stopped.
    pub(super) fn is_up(&self) -> bool {
        self.is_running() && self.state() != Some('T')
    }

    /// Stops it with SIGSTOP.
    pub(super) fn hang(&self) {
        self.signal("STOP");
        eventually("a stopped process", || self.state() == Some('T'));
    }

    pub(super) fn resume(&self) {
        self.signal("CONT");
        eventually("a running process", || self.state() != Some('T'));
    }

    /// Returns the CPU time of all threads.
    pub(super) fn cpu(&self) -> Duration {
        process_stats::cpu(self.id())
    }

    /// Returns the resident memory, in bytes.
    pub(super) fn rss(&self) -> u64 {
        process_stats::rss(self.id())
    }

    fn signal(&self, name: &str) {
        let script = format!("kill -{name} {}", self.id());
        let sent = Command::new("sh").args(["-c", &script]).status().expect("run sh");
        assert!(sent.success(), "{script}");
    }

    fn state(&self) -> Option<char> {
        process_stats::state(self.id?)
    }
}
