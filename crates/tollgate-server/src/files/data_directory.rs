//! The data directory, locked by this process.

use std::fs::{File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};

const LOCK_FILE: &str = "lock";

/// A data directory. Two processes in one directory would overwrite each other's files, so it is locked.
#[derive(Debug)]
pub(crate) struct DataDirectory {
    path: PathBuf,
    _lock: File,
}

impl DataDirectory {
    /// Creates the directory if necessary and locks it. An error names the setting and the path.
    pub(crate) fn open(path: PathBuf) -> Result<Self, String> {
        let locked = std::fs::create_dir_all(&path)
            .map_err(|error| error.to_string())
            .and_then(|()| lock(&path));
        match locked {
            Ok(lock) => Ok(Self { path, _lock: lock }),
            Err(reason) => Err(in_directory(&path, &reason)),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the message of an error in this directory: the setting, the path and the reason.
    pub(crate) fn error(&self, reason: &str) -> String {
        in_directory(&self.path, reason)
    }
}

fn in_directory(path: &Path, reason: &str) -> String {
    format!("--data-dir: {}: {reason}", path.display())
}

fn lock(directory: &Path) -> Result<File, String> {
    let path = directory.join(LOCK_FILE);
    let file = OpenOptions::new().create(true).truncate(false).write(true).open(path);
    let file = file.map_err(|error| error.to_string())?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err("already in use by another process".to_owned()),
        Err(TryLockError::Error(error)) => Err(error.to_string()),
    }
}
