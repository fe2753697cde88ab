//! Lines that a replay does not decide.

use super::super::line::LineError;

/// Number of skipped lines that are shown.
const SHOWN: usize = 3;
/// Maximum length of the text that is shown of a line, in characters.
const EXCERPT: usize = 120;

/// Number of skipped lines, with the first of them.
#[derive(Debug, Default, Clone)]
pub(crate) struct SkippedLines {
    /// Lines that cannot be parsed.
    pub(crate) malformed: u64,
    /// Lines whose time is too far before that of an earlier line.
    pub(crate) late: u64,
    /// The first malformed lines.
    pub(crate) first: Vec<SkippedLine>,
    /// The first late line.
    pub(crate) first_late: Option<SkippedLine>,
}

/// A line that is not decided, for messages.
#[derive(Debug, Clone)]
pub(crate) struct SkippedLine {
    pub(crate) file: String,
    pub(crate) number: u64,
    pub(crate) reason: LineError,
    pub(crate) text: String,
}

impl SkippedLine {
    pub(super) fn new(file: &str, number: u64, reason: LineError, line: &[u8]) -> Self {
        let start = line.get(..EXCERPT * 4).unwrap_or(line);
        let text: String =
            String::from_utf8_lossy(start).trim_end().chars().take(EXCERPT).collect();
        // Control characters could change what a terminal shows.
        let text = text.escape_debug().to_string().replace("\\\"", "\"").replace("\\'", "'");
        let cut = if line.trim_ascii_end().len() > text.len() { "…" } else { "" };
        Self { file: file.to_owned(), number, reason, text: format!("{text}{cut}") }
    }
}

impl SkippedLines {
    pub(crate) const fn count(&self) -> u64 {
        self.malformed + self.late
    }

    pub(super) fn add_malformed(&mut self, line: impl FnOnce() -> SkippedLine) {
        self.malformed += 1;
        if self.first.len() < SHOWN {
            self.first.push(line());
        }
    }

    pub(super) fn add_late(&mut self, line: impl FnOnce() -> SkippedLine) {
        self.late += 1;
        if self.first_late.is_none() {
            self.first_late = Some(line());
        }
    }
}
