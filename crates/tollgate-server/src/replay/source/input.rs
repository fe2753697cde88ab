//! Opens log files: plain, compressed, or standard input.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use flate2::bufread::MultiGzDecoder;

use super::super::error::ReplayError;

const BUFFER: usize = 256 * 1024;
/// First bytes of a gzip file.
const GZIP: &[u8] = &[0x1f, 0x8b];

/// An open log and its name for messages.
pub(crate) struct Input {
    pub(crate) name: String,
    pub(crate) lines: Box<dyn BufRead + Send>,
    pub(crate) is_compressed: bool,
}

/// Returns whether a path is `-`, which is standard input.
pub(crate) fn is_stdin(path: &Path) -> bool {
    path == Path::new("-")
}

impl Input {
    /// Opens a log. Adds the bytes that are read from it to `read`, for the progress bar.
    pub(crate) fn open(path: &Path, read: &Arc<AtomicU64>) -> Result<Self, ReplayError> {
        if is_stdin(path) {
            return Self::of("standard input".to_owned(), io::stdin(), read);
        }
        let name = path.display().to_string();
        let file = File::open(path).map_err(|error| ReplayError::of_file(&name, &error))?;
        Self::of(name, file, read)
    }

    fn of(
        name: String,
        from: impl Read + Send + 'static,
        read: &Arc<AtomicU64>,
    ) -> Result<Self, ReplayError> {
        let counted = Counted { from, read: Arc::clone(read) };
        let mut lines = BufReader::with_capacity(BUFFER, counted);
        let start = lines.fill_buf().map_err(|error| ReplayError::of_file(&name, &error))?;
        let is_compressed = start.starts_with(GZIP);
        let lines: Box<dyn BufRead + Send> = if is_compressed {
            Box::new(BufReader::with_capacity(BUFFER, MultiGzDecoder::new(lines)))
        } else {
            Box::new(lines)
        };
        Ok(Self { name, lines, is_compressed })
    }
}

/// Counts the bytes that are read.
struct Counted<R> {
    from: R,
    read: Arc<AtomicU64>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.from.read(buffer)?;
        self.read.fetch_add(u64::try_from(length).unwrap_or(0), Ordering::Relaxed);
        Ok(length)
    }
}
