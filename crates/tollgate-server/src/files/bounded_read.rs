//! Reads files of limited size whose path comes from a setting.

use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

/// Returns the content of a regular file of at most `max` bytes. Other files (pipes, devices) could block or be
/// endless.
pub(crate) fn read(path: &Path, max: u64) -> Result<Vec<u8>, String> {
    let metadata = fs::metadata(path).map_err(|error| error.to_string())?;
    if !metadata.is_file() {
        return Err("is not a regular file".to_owned());
    }
    let file = File::open(path).map_err(|error| error.to_string())?;
    let mut bytes = Vec::new();
    file.take(max.saturating_add(1)).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    if bytes.len() as u64 > max {
        return Err(format!("is longer than the maximum of {max} bytes"));
    }
    Ok(bytes)
}
