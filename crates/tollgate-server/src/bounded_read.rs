//! Reading a file whose path somebody has named.

use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

/// What a file holds, if it is no more than that many bytes. Only a regular file is read: anything else
/// might never end, or never begin.
pub(crate) fn read(path: &Path, most: u64) -> Result<Vec<u8>, String> {
    let found = fs::metadata(path).map_err(|error| error.to_string())?;
    if !found.is_file() {
        return Err("is not a regular file".to_owned());
    }
    let file = File::open(path).map_err(|error| error.to_string())?;
    let mut bytes = Vec::new();
    file.take(most.saturating_add(1)).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    if bytes.len() as u64 > most {
        return Err(format!("is longer than the {most} bytes that are read of it"));
    }
    Ok(bytes)
}
