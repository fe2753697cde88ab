//! A server program that runs, hangs, ends and runs again.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::watchdog::Keeper;
use crate::process_stats;
use crate::wait::eventually;

#[derive(Debug)]
pub(super) struct Process {
    keeper: Keeper,
    /// Nothing while it is ended.
    id: Option<u32>,
}

impl Process {
    /// Will run a program, which may be several words, in a directory, which is gone when this is dropped.
    pub(super) fn new(dir: PathBuf, program: Vec<OsString>, args: &[OsString]) -> Self {
        let mut command = program;
        command.extend_from_slice(args);
        command.extend(["--dir".into(), dir.clone().into_os_string()]);
        Self { keeper: Keeper::new(dir, &command), id: None }
    }

    /// Runs it, and ends it first if it still runs.
    pub(super) fn run(&mut self) {
        self.id = Some(self.keeper.run());
    }

    /// Ends it at once. Its directory stays.
    pub(super) fn end(&mut self) {
        self.id = None;
        self.keeper.end();
    }

    pub(super) fn dir(&self) -> &Path {
        self.keeper.dir()
    }

    pub(super) fn id(&self) -> u32 {
        self.id.expect("the server is not killed")
    }

    /// What it has said so far.
    pub(super) fn log(&self) -> String {
        fs::read_to_string(self.dir().join("log")).unwrap_or_default()
    }

    pub(super) fn is_running(&self) -> bool {
        self.state().is_some_and(|state| state != 'Z' && state != 'X')
    }

    /// Whether it runs and does not hang.
    pub(super) fn is_up(&self) -> bool {
        self.is_running() && self.state() != Some('T')
    }

    /// Stops it where it is, without its knowing.
    pub(super) fn hang(&self) {
        self.signal("STOP");
        eventually("a stopped process", || self.state() == Some('T'));
    }

    pub(super) fn resume(&self) {
        self.signal("CONT");
        eventually("a running process", || self.state() != Some('T'));
    }

    /// The processor time it took, all threads together.
    pub(super) fn cpu(&self) -> Duration {
        process_stats::cpu(self.id())
    }

    /// The bytes of memory it holds.
    pub(super) fn rss(&self) -> u64 {
        process_stats::rss(self.id())
    }

    fn signal(&self, name: &str) {
        let script = format!("kill -{name} {}", self.id());
        let sent = Command::new("sh").args(["-c", &script]).status().expect("there is a shell");
        assert!(sent.success(), "{script}");
    }

    fn state(&self) -> Option<char> {
        process_stats::state(self.id?)
    }
}
