//! The process as the system sees it, under the names that Prometheus's own clients use. What the system does not
//! tell is left out.

use std::fs;

use tollgate::Timestamp;

use super::text::Exposition;

/// In so many parts of a second Linux tells processor time.
const TICKS: u64 = 100;

pub(super) fn render(out: &mut Exposition, started: Timestamp) {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    if let Some(ticks) = cpu_ticks(&stat) {
        let help = "Processor time used, in seconds.";
        out.counter("process_cpu_seconds_total", help).hundredths(ticks * 100 / TICKS);
    }
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    if let Some(kilobytes) = labelled(&status, "VmRSS:") {
        let help = "Memory that is resident, in bytes.";
        out.gauge("process_resident_memory_bytes", help).sample(&[], kilobytes * 1024);
    }
    if let Ok(open) = fs::read_dir("/proc/self/fd") {
        // One of them is for looking.
        let open = (open.count() as u64).saturating_sub(1);
        out.gauge("process_open_fds", "Open files and connections.").sample(&[], open);
    }
    let limits = fs::read_to_string("/proc/self/limits").unwrap_or_default();
    if let Some(most) = labelled(&limits, "Max open files") {
        out.gauge("process_max_fds", "The most of them.").sample(&[], most);
    }
    let help = "When it was started, in seconds since the epoch.";
    let seconds = started.as_micros() / 1_000_000;
    out.gauge("process_start_time_seconds", help).sample(&[], seconds);
}

/// The time of the process itself and of the system for it. Its name, in parentheses, may hold anything.
fn cpu_ticks(stat: &str) -> Option<u64> {
    let (_, after) = stat.rsplit_once(')')?;
    let mut fields = after.split_ascii_whitespace().skip(11);
    let mut next = || fields.next()?.parse::<u64>().ok();
    Some(next()? + next()?)
}

/// The number that follows a label at the beginning of a line.
fn labelled(text: &str, label: &str) -> Option<u64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(label))?;
    rest.split_ascii_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_hold_anything() {
        let stat = "7 (a) b 1 2 (c) S 1 7 7 0 -1 4194560 9 0 0 0 12 30 0 0 20 0 4 0 99 0 0";
        assert_eq!(cpu_ticks(stat), Some(42));
        assert_eq!(cpu_ticks("7 (a"), None);
    }

    #[test]
    fn a_label_is_at_the_beginning() {
        let text = "VmPeak:\t 9 kB\nVmRSS:\t     1234 kB\n";
        assert_eq!(labelled(text, "VmRSS:"), Some(1234));
        assert_eq!(labelled("Max open files            unlimited  files", "Max open files"), None);
    }
}
