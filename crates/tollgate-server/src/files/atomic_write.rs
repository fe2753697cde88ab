//! Atomic replacement of files.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use tracing::warn;

/// Writes a temporary file and renames it over the old one. A crash leaves the old or the new file, an error the old
/// one.
pub(crate) fn replace<T>(
    directory: &Path,
    name: &str,
    write: impl FnOnce(&mut BufWriter<File>) -> io::Result<T>,
) -> io::Result<T> {
    let new = directory.join(format!("{name}.new"));
    let replaced = write_new(&new, write).and_then(|written| {
        std::fs::rename(&new, directory.join(name))?;
        Ok(written)
    });
    if replaced.is_ok() {
        // Not an error: the new file is in place. Without the sync, a power failure could restore the old one.
        let synced = File::open(directory).and_then(|directory| directory.sync_all());
        if let Err(error) = synced {
            let path = directory.display();
            warn!(%error, %path, "directory not synced; a power failure may restore the old {name}");
        }
    } else {
        // Frees the space of the incomplete file, for example when the disk is full.
        let _ = std::fs::remove_file(&new);
    }
    replaced
}

fn write_new<T>(
    new: &Path,
    write: impl FnOnce(&mut BufWriter<File>) -> io::Result<T>,
) -> io::Result<T> {
    // Readable by the owner only: keys may be personal data.
    let file = OpenOptions::new().create(true).truncate(true).write(true).mode(0o600).open(new)?;
    let mut out = BufWriter::new(file);
    let written = write(&mut out)?;
    out.flush()?;
    out.get_ref().sync_all()?;
    Ok(written)
}
