//! The progress bar, on a terminal only.

use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

const INTERVAL: Duration = Duration::from_millis(200);
const WIDTH: u64 = 30;

/// Shows how much of the logs has been read on standard error.
#[derive(Debug)]
pub(super) struct Progress {
    title: String,
    /// Size of all files in bytes; 0 if unknown.
    total: u64,
    read: Arc<AtomicU64>,
    requests: u64,
    started: Instant,
    shown: Option<Instant>,
    is_enabled: bool,
}

impl Progress {
    pub(super) fn new(title: &str, paths: &[PathBuf], read: &Arc<AtomicU64>) -> Self {
        let size = |path: &PathBuf| {
            std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file).map(|file| file.len())
        };
        Self {
            title: title.to_owned(),
            total: paths.iter().map(size).sum::<Option<u64>>().unwrap_or_default(),
            read: Arc::clone(read),
            requests: 0,
            started: Instant::now(),
            shown: None,
            is_enabled: io::stderr().is_terminal(),
        }
    }

    pub(super) fn add(&mut self, requests: u64) {
        self.requests += requests;
        let is_due = self.shown.is_none_or(|shown| shown.elapsed() >= INTERVAL);
        if self.is_enabled && is_due {
            self.shown = Some(Instant::now());
            let line = line(
                &self.title,
                self.read.load(Ordering::Relaxed),
                self.total,
                self.requests,
                self.started.elapsed(),
            );
            let _ = write!(io::stderr(), "\r{line}\x1b[K");
        }
    }

    /// Removes the bar.
    pub(super) fn end(&self) {
        if self.shown.is_some() {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}

fn line(title: &str, read: u64, total: u64, requests: u64, elapsed: Duration) -> String {
    let rate = u128::from(requests) * 1000 / elapsed.as_millis().max(1);
    let figures = format!("{requests} requests, {rate}/s");
    if total == 0 {
        return format!("{title}: {figures}");
    }
    let read = read.min(total);
    let (percent, filled) = (read * 100 / total, read * WIDTH / total);
    let cells: String = (0..WIDTH).map(|cell| if cell < filled { '█' } else { '░' }).collect();
    format!("{title}: {cells} {percent:3} %  {figures}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bar_shows_the_part_that_was_read() {
        let half = line("replay", 50, 100, 3000, Duration::from_secs(2));
        assert_eq!(
            half,
            format!("replay: {}{}  50 %  3000 requests, 1500/s", "█".repeat(15), "░".repeat(15))
        );
        assert_eq!(line("replay", 9, 0, 10, Duration::from_secs(1)), "replay: 10 requests, 10/s");
    }
}
