//! State, CPU time and memory of another process, from `/proc`.

use std::fs;
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

/// Returns the CPU time of all threads so far, in steps of some milliseconds.
///
/// # Panics
/// If the process does not exist.
pub fn cpu(id: u32) -> Duration {
    let stat = stat(id).expect("the process exists");
    // Fields 14 and 15 of proc(5). The list starts with field 3, the state.
    let ticks = stat.iter().skip(11).take(2);
    let ticks: u64 = ticks.map(|field| field.parse::<u64>().expect("a number")).sum();
    Duration::from_millis(ticks * 1000 / ticks_per_second())
}

/// Returns the resident memory, in bytes.
///
/// # Panics
/// If the process does not exist.
pub fn rss(id: u32) -> u64 {
    memory(id, "VmRSS:")
}

/// Returns the peak resident memory, in bytes.
///
/// # Panics
/// If the process does not exist.
pub fn peak(id: u32) -> u64 {
    memory(id, "VmHWM:")
}

/// Returns the number of open files, connections included.
///
/// # Panics
/// If the process does not exist.
pub fn files(id: u32) -> usize {
    fs::read_dir(format!("/proc/{id}/fd")).expect("the process exists").count()
}

/// Returns the state letter of proc(5); `None` if the process does not exist.
pub(crate) fn state(id: u32) -> Option<char> {
    stat(id)?.first()?.chars().next()
}

/// Returns the fields of `/proc/<id>/stat` from the state on.
fn stat(id: u32) -> Option<Vec<String>> {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    // The name before may contain parentheses; the fields after it do not.
    let (_, fields) = stat.rsplit_once(')')?;
    Some(fields.split_whitespace().map(str::to_owned).collect())
}

fn memory(id: u32, field: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{id}/status")).expect("the process exists");
    let line =
        status.lines().find_map(|line| line.strip_prefix(field)).expect("the process exists");
    let kibibytes = line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number");
    kibibytes * 1024
}

fn ticks_per_second() -> u64 {
    static TICKS: OnceLock<u64> = OnceLock::new();
    *TICKS.get_or_init(|| {
        let output = Command::new("getconf").arg("CLK_TCK").output().expect("getconf is installed");
        let text = String::from_utf8(output.stdout).expect("getconf prints text");
        text.trim().parse().expect("getconf prints a number")
    })
}

#[cfg(test)]
mod tests {
    use std::process;

    use super::{cpu, files, peak, rss, state};

    #[test]
    fn reads_stats_of_a_running_process() {
        let id = process::id();
        assert!(rss(id) > 0 && rss(id) <= peak(id));
        assert!(files(id) >= 3, "stdin, stdout and stderr");
        let before = cpu(id);
        assert!(cpu(id) >= before);
        assert!(state(id).is_some_and(|state| "RS".contains(state)));
    }
}
