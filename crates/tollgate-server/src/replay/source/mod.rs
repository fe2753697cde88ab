//! Log files as one stream of requests in the order of their times.

mod arena;
mod input;
mod log_file;
mod merged;
mod reorder;
mod skipped;

pub(super) use input::{Input, is_stdin};
pub(super) use log_file::LogFile;
pub(super) use merged::Merged;
pub(super) use skipped::SkippedLines;
