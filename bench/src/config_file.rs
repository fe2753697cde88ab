//! Temporary configuration files of servers.

use std::io::Write;

use tempfile::NamedTempFile;

use crate::Outcome;

/// Writes a YAML file, deleted on drop.
///
/// # Errors
/// The file cannot be written.
pub fn create(text: &str) -> Outcome<NamedTempFile> {
    let mut file = tempfile::Builder::new().suffix(".yaml").tempfile()?;
    file.write_all(text.as_bytes())?;
    file.flush()?;
    Ok(file)
}
