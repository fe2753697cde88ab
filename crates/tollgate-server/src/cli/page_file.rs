//! The file to which `tollgate replay --html` writes its page.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::Path;

/// Returns an error if the page cannot be written to `page`, or if that would overwrite an input. Does not change the
/// file.
pub(super) fn check<'p>(page: &Path, inputs: impl Iterator<Item = &'p Path>) -> Result<(), String> {
    if page == Path::new("-") {
        return Err("--html does not write to standard output; name a file".to_owned());
    }
    for input in inputs {
        let is_stdin = input == Path::new("-");
        if is_same_file(page, if is_stdin { Path::new("/dev/stdin") } else { input }) {
            let input =
                if is_stdin { "standard input".to_owned() } else { input.display().to_string() };
            return Err(format!(
                "{}: the page would overwrite the input {input}; name another file with --html",
                page.display()
            ));
        }
    }
    check_writable(page).map_err(|error| write_error(page, &error))
}

/// Returns the message about a page that cannot be written.
pub(super) fn write_error(page: &Path, error: &io::Error) -> String {
    format!("{}: cannot write the page: {error}", page.display())
}

/// Returns whether two paths name one file, also through links.
fn is_same_file(one: &Path, other: &Path) -> bool {
    let canonical = |path: &Path| fs::canonicalize(path).ok();
    let is_same_path = canonical(one).is_some_and(|path| Some(path) == canonical(other));
    is_same_path || is_hard_link(one, other)
}

#[cfg(unix)]
fn is_hard_link(one: &Path, other: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let (Ok(one), Ok(other)) = (fs::metadata(one), fs::metadata(other)) else { return false };
    one.is_file() && (one.dev(), one.ino()) == (other.dev(), other.ino())
}

#[cfg(not(unix))]
const fn is_hard_link(_: &Path, _: &Path) -> bool {
    false
}

/// Opens the file without truncating it. A file that does not exist is created and removed again.
fn check_writable(page: &Path) -> io::Result<()> {
    match fs::metadata(page) {
        Ok(found) if found.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
        Ok(found) if found.is_file() => OpenOptions::new().write(true).open(page).map(drop),
        // Opening a pipe or device could block or have an effect.
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => match File::create_new(page) {
            Ok(_) => fs::remove_file(page),
            // A link to a file that does not exist yet.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            Err(error) => Err(error),
        },
        Err(error) => Err(error),
    }
}
