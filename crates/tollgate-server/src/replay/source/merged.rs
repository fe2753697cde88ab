//! Several logs as one, ordered by time.

use super::super::batch::Batch;
use super::super::error::ReplayError;
use super::log_file::LogFile;
use super::skipped::SkippedLines;

/// Logs that are read together.
pub(crate) struct Merged<'f>(Vec<LogFile<'f>>);

impl<'f> Merged<'f> {
    pub(crate) const fn new(files: Vec<LogFile<'f>>) -> Self {
        Self(files)
    }

    /// Fills `batch` with the next requests. Returns false if there are none.
    pub(crate) fn fill(&mut self, batch: &mut Batch) -> Result<bool, ReplayError> {
        while !batch.is_full() {
            // Equal times: the file that is named first.
            let mut next: Option<(u64, &mut LogFile<'f>)> = None;
            for file in &mut self.0 {
                if let Some(at) = file.next_at()?
                    && next.as_ref().is_none_or(|(earliest, _)| at < *earliest)
                {
                    next = Some((at, file));
                }
            }
            let Some((at, file)) = next else { break };
            batch.add(at, |out| file.take_next(out));
        }
        Ok(!batch.is_empty())
    }

    /// Returns the lines that were skipped in all files.
    pub(crate) fn skipped(&mut self) -> SkippedLines {
        let mut all = SkippedLines::default();
        for skipped in self.0.iter_mut().map(LogFile::skipped) {
            all.malformed += skipped.malformed;
            all.late += skipped.late;
            all.first.extend(skipped.first);
            all.first_late = all.first_late.or(skipped.first_late);
        }
        all.first.truncate(3);
        all
    }
}
