//! The log of a worker: for each millisecond its admissions and other counts.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use tollgate::{Decision, Source};

/// Counts of one worker or of several.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Totals {
    pub(super) admitted: u64,
    pub(super) decisions: u64,
    pub(super) leased: u64,
    /// Admissions at times that are not known well enough.
    pub(super) uncounted: u64,
    pub(super) failed: u64,
}

impl Totals {
    /// Reads logs. An incomplete last line is ignored.
    pub(super) fn read(logs: &[PathBuf]) -> Self {
        let mut totals = Self::default();
        for log in logs {
            let text = fs::read_to_string(log).unwrap_or_default();
            let complete = text.rfind('\n').map_or("", |end| &text[..end]);
            complete.lines().for_each(|line| totals.add_line(line));
        }
        totals
    }

    fn add_line(&mut self, line: &str) {
        let counts: Vec<u64> = line.split(' ').skip(1).map(|word| word.parse().unwrap()).collect();
        let [admitted, decisions, leased, uncounted, failed] = counts.try_into().unwrap();
        self.admitted += admitted;
        self.decisions += decisions;
        self.leased += leased;
        self.uncounted += uncounted;
        self.failed += failed;
    }
}

/// Writes the log of a worker.
#[derive(Debug)]
pub(super) struct WorkerLog {
    file: File,
    millisecond: u64,
    counts: Totals,
    max_latency: Duration,
}

impl WorkerLog {
    /// A decision that took longer than `max_latency` is not counted as an admission.
    pub(super) fn create(path: &Path, max_latency: Duration) -> Self {
        let file = File::create(path).unwrap();
        Self { file, millisecond: 0, counts: Totals::default(), max_latency }
    }

    /// Records a decision; `None` if the store failed.
    pub(super) fn record(&mut self, started: SystemTime, decision: Option<&Decision<'_>>) {
        let now = SystemTime::now();
        self.begin_millisecond(now);
        let Some(decision) = decision else {
            self.counts.failed += 1;
            return;
        };
        self.counts.decisions += 1;
        self.counts.leased += u64::from(decision.source() == Source::Lease);
        if !decision.is_allowed() {
            return;
        }
        // A clock that was set back gives no latency.
        let is_late =
            now.duration_since(started).map_or(true, |latency| latency > self.max_latency);
        let count = if is_late { &mut self.counts.uncounted } else { &mut self.counts.admitted };
        *count += 1;
    }

    fn begin_millisecond(&mut self, now: SystemTime) {
        let since_epoch = now.duration_since(SystemTime::UNIX_EPOCH).unwrap();
        let millisecond = u64::try_from(since_epoch.as_millis()).unwrap();
        if millisecond != self.millisecond {
            self.write();
            self.millisecond = millisecond;
        }
    }

    /// Writes the counts of the last millisecond.
    pub(super) fn write(&mut self) {
        let Totals { admitted, decisions, leased, uncounted, failed } = self.counts;
        if self.counts != Totals::default() {
            let counts = format!("{admitted} {decisions} {leased} {uncounted} {failed}");
            writeln!(self.file, "{} {counts}", self.millisecond).unwrap();
            self.counts = Totals::default();
        }
    }
}
