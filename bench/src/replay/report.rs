//! The report on `tollgate replay`.

use std::fmt;
use std::path::Path;

use super::{Figures, measure};
use crate::Outcome;
use crate::document::{Document, Section};
use crate::machine::RunInfo;
use crate::markdown::{Table, Target};
use crate::scale::short_count;

/// Number of lines of the full and the quick run.
const LINES: u64 = 10_000_000;
const QUICK_LINES: u64 = 500_000;

/// Targets for ten million lines: seconds and megabytes.
const SECONDS: Target = Target::AtMost(60.0);
const MEGABYTES: Target = Target::AtMost(512.0);

/// All results.
#[derive(Debug)]
pub struct Report {
    run_info: RunInfo,
    lines: u64,
    figures: Figures,
}

impl Report {
    /// Generates a log and replays it; takes minutes, or seconds if `is_quick`.
    ///
    /// # Errors
    /// See [`measure`].
    pub fn measure(tollgate: &Path, is_quick: bool, run_info: RunInfo) -> Outcome<Self> {
        let lines = if is_quick { QUICK_LINES } else { LINES };
        Ok(Self { run_info, lines, figures: measure(tollgate, lines)? })
    }

    #[expect(clippy::cast_precision_loss, reason = "figures for people")]
    fn section(&self) -> Section {
        let Figures { took, peak_bytes, log_bytes } = self.figures;
        let seconds = took.as_secs_f64();
        let megabytes = peak_bytes as f64 / 1e6;
        let note = format!(
            "Targets for 10 M lines: {SECONDS} s: {}; {MEGABYTES} MB: {}. Five limits, each tried at 24 counts in the first \
             pass and at up to 24 between them in the second.",
            SECONDS.verdict(seconds),
            MEGABYTES.verdict(megabytes),
        );
        let mut table = Table::new(["lines", "log", "seconds", "lines/s", "peak memory"]);
        table.push([
            short_count(u32::try_from(self.lines).unwrap_or(u32::MAX)),
            format!("{:.0} MB", log_bytes as f64 / 1e6),
            format!("{seconds:.1}"),
            format!("{:.0}", self.lines as f64 / seconds),
            format!("{megabytes:.0} MB"),
        ]);
        Section { title: "Access log of one day, 100 000 clients", note, tables: vec![table] }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let document = Document {
            title: "Replay",
            run_info: &self.run_info,
            peers: Vec::new(),
            figures: "one run of `tollgate replay` from start to exit, both passes".to_owned(),
            sections: vec![self.section()],
        };
        write!(f, "{document}")
    }
}
