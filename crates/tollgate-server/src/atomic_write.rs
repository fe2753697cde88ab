//! Files that are replaced whole or not at all, whatever happens meanwhile.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use tracing::warn;

/// Writes beside the old file, then puts the new one in its place: a crash leaves one or the other, and a failure
/// the old one.
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
        // The new file is there, whatever comes of this; only a loss of power might bring the old one back.
        if let Err(reason) = File::open(directory).and_then(|directory| directory.sync_all()) {
            warn!(%reason, "a directory could not be synced");
        }
    } else {
        // What there is of it helps nobody, and takes room that is perhaps wanting.
        let _ = std::fs::remove_file(&new);
    }
    replaced
}

fn write_new<T>(
    new: &Path,
    write: impl FnOnce(&mut BufWriter<File>) -> io::Result<T>,
) -> io::Result<T> {
    // Keys may be people's names: the file is its owner's.
    let file = OpenOptions::new().create(true).truncate(true).write(true).mode(0o600).open(new)?;
    let mut out = BufWriter::new(file);
    let written = write(&mut out)?;
    out.flush()?;
    out.get_ref().sync_all()?;
    Ok(written)
}
