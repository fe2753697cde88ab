//! Process metrics from `/proc`, under the standard Prometheus client names. A metric is omitted when its source is
//! not available.

use std::fs;

use tollgate::Timestamp;

use super::text::Exposition;

/// Clock ticks per second in `/proc/self/stat` (`USER_HZ` on Linux).
const TICKS_PER_SECOND: u64 = 100;

pub(super) fn render(out: &mut Exposition, started: Timestamp) {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    if let Some(ticks) = cpu_ticks(&stat) {
        let help = "User and system CPU time in seconds.";
        out.counter("process_cpu_seconds_total", help).hundredths(ticks * 100 / TICKS_PER_SECOND);
    }
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    if let Some(kilobytes) = number_after(&status, "VmRSS:") {
        let help = "Resident memory in bytes.";
        out.gauge("process_resident_memory_bytes", help).sample(&[], kilobytes * 1024);
    }
    if let Ok(open) = fs::read_dir("/proc/self/fd") {
        // Not counted: the descriptor that lists this directory.
        let open = (open.count() as u64).saturating_sub(1);
        out.gauge("process_open_fds", "Open file descriptors.").sample(&[], open);
    }
    let limits = fs::read_to_string("/proc/self/limits").unwrap_or_default();
    if let Some(max) = number_after(&limits, "Max open files") {
        out.gauge("process_max_fds", "Maximum number of open file descriptors.").sample(&[], max);
    }
    let help = "Start time of the process in seconds since the Unix epoch.";
    let seconds = started.as_micros() / 1_000_000;
    out.gauge("process_start_time_seconds", help).sample(&[], seconds);
}

/// Returns user plus system time in clock ticks. The process name, in parentheses, may contain any character.
fn cpu_ticks(stat: &str) -> Option<u64> {
    let (_, after_name) = stat.rsplit_once(')')?;
    let mut fields = after_name.split_ascii_whitespace().skip(11);
    let mut next = || fields.next()?.parse::<u64>().ok();
    Some(next()? + next()?)
}

/// Returns the number after a label at the start of a line.
fn number_after(text: &str, label: &str) -> Option<u64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(label))?;
    rest.split_ascii_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_ticks_accepts_any_process_name() {
        let stat = "7 (a) b 1 2 (c) S 1 7 7 0 -1 4194560 9 0 0 0 12 30 0 0 20 0 4 0 99 0 0";
        assert_eq!(cpu_ticks(stat), Some(42));
        assert_eq!(cpu_ticks("7 (a"), None);
    }

    #[test]
    fn number_after_matches_only_at_line_start() {
        let text = "VmPeak:\t 9 kB\nVmRSS:\t     1234 kB\n";
        assert_eq!(number_after(text, "VmRSS:"), Some(1234));
        let unlimited = "Max open files            unlimited  files";
        assert_eq!(number_after(unlimited, "Max open files"), None);
    }
}
