//! System calls of a server per request, counted by `perf stat`.

use std::process::Command;

use tempfile::NamedTempFile;

use super::candidate::Candidate;
use super::runner::Runner;
use super::sample::Sample;
use crate::Outcome;

/// The counted events: all system calls, and waits for events. tokio waits with `epoll_wait`.
const EVENTS: [&str; 2] = ["raw_syscalls:sys_enter", "syscalls:sys_enter_epoll_wait"];

/// System calls per request.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SystemCalls {
    /// All system calls.
    pub all: f64,
    /// Calls of `epoll_wait`.
    pub epoll_wait: f64,
}

/// Runs a timed load and counts the system calls of the server meanwhile. Returns `None` if `perf` is missing or may not
/// count them.
///
/// # Errors
/// A response is not the expected one.
pub fn measure(runner: &Runner, candidate: &Candidate) -> Outcome<Option<SystemCalls>> {
    let counts = NamedTempFile::new()?;
    let mut perf = perf_stat(candidate.server.id());
    perf.arg("--output").arg(counts.path());
    if !is_permitted(candidate.server.id()) {
        return Ok(None);
    }
    let load = runner.load_command(candidate, 1, runner.timed);
    // Counts the server while the load generator runs.
    perf.arg("--").arg(load.get_program()).args(load.get_args());
    let output = perf.output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).trim().into());
    }
    let sample: Sample = String::from_utf8(output.stdout)?.parse()?;
    let counted = parse(&std::fs::read_to_string(counts.path())?);
    Ok(counted.map(|[all, epoll_wait]| SystemCalls {
        all: all / sample.answered,
        epoll_wait: epoll_wait / sample.answered,
    }))
}

fn perf_stat(process: u32) -> Command {
    let mut perf = Command::new("perf");
    perf.args(["stat", "--field-separator", ",", "--event", &EVENTS.join(",")]);
    perf.args(["--pid", &process.to_string()]);
    perf
}

/// Returns whether `perf` can count the events of a process.
fn is_permitted(process: u32) -> bool {
    let counted = perf_stat(process).args(["--", "true"]).output();
    counted.is_ok_and(|output| output.status.success())
}

/// Returns the counts of all events.
fn parse(text: &str) -> Option<[f64; EVENTS.len()]> {
    let mut counts = [0.0; EVENTS.len()];
    for (count, event) in counts.iter_mut().zip(EVENTS) {
        let line = text.lines().find(|line| line.contains(event))?;
        *count = line.split(',').next()?.parse().ok()?;
    }
    Some(counts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_found_by_event() {
        let text = "# started on Wed\n\n2048,,raw_syscalls:sys_enter,148,100.00,,\n\
                    12,,syscalls:sys_enter_epoll_wait,148,100.00,,\n";
        assert_eq!(parse(text), Some([2048.0, 12.0]));
        assert_eq!(parse(&text.replace("12,", "<not counted>,")), None);
        assert_eq!(parse(""), None);
    }
}
