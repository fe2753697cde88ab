//! A server program that runs, hangs, ends and runs again.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

use super::keeper::Keeper;
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
        let stat = self.stat().expect("it runs");
        // Fields 14 and 15 of proc(5); the state, which is the third, comes first here.
        let ticks = stat.iter().skip(11).take(2);
        let ticks: u64 = ticks.map(|field| field.parse::<u64>().expect("a number")).sum();
        Duration::from_millis(ticks * 1000 / ticks_per_second())
    }

    /// The bytes of memory it holds.
    pub(super) fn rss(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.id())).expect("it runs");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("it runs");
        let kibibytes = line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number");
        kibibytes * 1024
    }

    fn signal(&self, name: &str) {
        let script = format!("kill -{name} {}", self.id());
        let sent = Command::new("sh").args(["-c", &script]).status().expect("there is a shell");
        assert!(sent.success(), "{script}");
    }

    fn state(&self) -> Option<char> {
        self.stat()?.first()?.chars().next()
    }

    /// What the system tells of it, from its state on.
    fn stat(&self) -> Option<Vec<String>> {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.id?)).ok()?;
        // The name before may hold anything, but nothing after it holds a parenthesis.
        let (_, fields) = stat.rsplit_once(')')?;
        Some(fields.split_whitespace().map(str::to_owned).collect())
    }
}

fn ticks_per_second() -> u64 {
    static TICKS: OnceLock<u64> = OnceLock::new();
    *TICKS.get_or_init(|| {
        let output = Command::new("getconf").arg("CLK_TCK").output().expect("there is getconf");
        let text = String::from_utf8(output.stdout).expect("getconf tells text");
        text.trim().parse().expect("getconf tells a number")
    })
}
