//! Measures `tollgate replay` on a generated access log.

pub mod access_log;
pub mod report;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use crate::Outcome;

/// Interval at which the peak memory is read.
const POLL: Duration = Duration::from_millis(20);

/// Policy of the measurement: four rules with five limits and all usual algorithms.
const POLICY: &str = "\
version: 1
rules:
  - { name: login, match: { path: /login }, per: [client], limits: [5/min, 30/h] }
  - { name: api, match: { path: /api/** }, per: [client], limits: [120/min] }
  - { name: search, match: { path: /search }, per: [client], limits: [{ rate: 60/min, burst: 20, algorithm: token_bucket }] }
defaults: { limit: 600/min, algorithm: sliding_counter }
";

/// Figures of one run.
#[derive(Debug, Clone, Copy)]
pub struct Figures {
    /// Time from start to exit.
    pub took: Duration,
    /// Peak resident memory in bytes.
    pub peak_bytes: u64,
    /// Size of the log in bytes.
    pub log_bytes: u64,
}

/// Generates a log of this many lines and replays it with the grid of limits and the second pass.
///
/// # Errors
/// The log cannot be written, or the program fails.
pub fn measure(tollgate: &Path, lines: u64) -> Outcome<Figures> {
    let directory = tempfile::tempdir()?;
    let (log, policy) = (directory.path().join("access.log"), directory.path().join("policy.yaml"));
    access_log::write(&log, lines)?;
    fs::write(&policy, POLICY)?;
    let log_bytes = fs::metadata(&log)?.len();
    let started = Instant::now();
    let child = start(tollgate, &policy, &log)?;
    let peak_bytes = wait(child)?;
    Ok(Figures { took: started.elapsed(), peak_bytes, log_bytes })
}

fn start(tollgate: &Path, policy: &Path, log: &PathBuf) -> Outcome<Child> {
    let mut command = Command::new(tollgate);
    command.args(["replay", "--json", "--policy"]).arg(policy).arg(log);
    Ok(command.stdin(Stdio::null()).stdout(Stdio::null()).spawn()?)
}

/// Waits for the program and returns its peak memory in bytes.
fn wait(mut child: Child) -> Outcome<u64> {
    let status = format!("/proc/{}/status", child.id());
    let (exit, exited) = channel();
    let waiting = thread::spawn(move || exit.send(child.wait()));
    let mut peak = 0;
    let result = loop {
        peak = peak.max(peak_bytes(&status).unwrap_or_default());
        match exited.recv_timeout(POLL) {
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Err("the waiting thread failed".into()),
            Ok(result) => break result?,
        }
    };
    let _ = waiting.join();
    if !result.success() {
        return Err(format!("tollgate replay failed: {result}").into());
    }
    Ok(peak)
}

fn peak_bytes(status: &str) -> Option<u64> {
    let text = fs::read_to_string(status).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix(" kB")?.parse::<u64>().ok().map(|kilobytes| kilobytes * 1024)
}
