//! What the system tells of another process: its state, its time, its memory.

use std::fs;
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

/// The processor time it took so far, all threads together, in steps of some milliseconds.
///
/// # Panics
/// If there is no such process.
pub fn cpu(id: u32) -> Duration {
    let stat = stat(id).expect("it runs");
    // Fields 14 and 15 of proc(5); the state, which is the third, comes first here.
    let ticks = stat.iter().skip(11).take(2);
    let ticks: u64 = ticks.map(|field| field.parse::<u64>().expect("a number")).sum();
    Duration::from_millis(ticks * 1000 / ticks_per_second())
}

/// The bytes of memory it holds.
///
/// # Panics
/// If there is no such process.
pub fn rss(id: u32) -> u64 {
    memory(id, "VmRSS:")
}

/// The most bytes of memory it ever held.
///
/// # Panics
/// If there is no such process.
pub fn peak(id: u32) -> u64 {
    memory(id, "VmHWM:")
}

/// How many files it has open, connections too.
///
/// # Panics
/// If there is no such process.
pub fn files(id: u32) -> usize {
    fs::read_dir(format!("/proc/{id}/fd")).expect("it runs").count()
}

/// Whether it runs, sleeps, is stopped: a letter of proc(5). Nothing if there is no such process.
pub(crate) fn state(id: u32) -> Option<char> {
    stat(id)?.first()?.chars().next()
}

/// What the system tells of it, from its state on.
fn stat(id: u32) -> Option<Vec<String>> {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    // The name before may hold anything, but nothing after it holds a parenthesis.
    let (_, fields) = stat.rsplit_once(')')?;
    Some(fields.split_whitespace().map(str::to_owned).collect())
}

fn memory(id: u32, field: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{id}/status")).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix(field)).expect("it runs");
    let kibibytes = line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number");
    kibibytes * 1024
}

fn ticks_per_second() -> u64 {
    static TICKS: OnceLock<u64> = OnceLock::new();
    *TICKS.get_or_init(|| {
        let output = Command::new("getconf").arg("CLK_TCK").output().expect("there is getconf");
        let text = String::from_utf8(output.stdout).expect("getconf tells text");
        text.trim().parse().expect("getconf tells a number")
    })
}

#[cfg(test)]
mod tests {
    use std::process;

    use super::{cpu, files, peak, rss, state};

    #[test]
    fn a_process_that_runs_has_vitals() {
        let own = process::id();
        assert!(rss(own) > 0 && rss(own) <= peak(own));
        assert!(files(own) >= 3, "at least what every process has");
        let before = cpu(own);
        assert!(cpu(own) >= before);
        assert!(state(own).is_some_and(|state| "RS".contains(state)));
    }
}
