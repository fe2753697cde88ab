//! Where the policy comes from.

use std::fmt;
use std::path::{Path, PathBuf};

use tollgate::Limit;
use tollgate::policy::{Policy, PolicyError};

/// More than this is not a policy.
const MAX_BYTES: u64 = 4 << 20;

/// A policy file, or none; and the default limit for a policy that names none.
#[derive(Debug, Clone)]
pub(crate) struct PolicyFile {
    path: Option<PathBuf>,
    default_limit: Limit,
}

/// Why a policy could not be loaded.
#[derive(Debug)]
pub(crate) enum LoadError {
    /// The file could not be read.
    Unreadable(String),
    /// What it says is wrong.
    Wrong(PolicyError),
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable(reason) => f.write_str(reason),
            Self::Wrong(error) => error.fmt(f),
        }
    }
}

impl PolicyFile {
    pub(crate) fn new(path: Option<PathBuf>, default_limit: Limit) -> Self {
        Self { path, default_limit }
    }

    /// The file, if there is one.
    pub(crate) fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// Reads and compiles the policy.
    pub(crate) fn load(&self) -> Result<Policy, LoadError> {
        match &self.path {
            None => Ok(Policy::with_default(self.default_limit.clone())),
            Some(path) => self.compile(path, &read(path)?),
        }
    }

    /// Compiles the text of the file.
    pub(crate) fn compile(&self, path: &Path, text: &str) -> Result<Policy, LoadError> {
        Policy::from_yaml(&path.display().to_string(), text, self.default_limit.clone())
            .map_err(LoadError::Wrong)
    }
}

/// The text of a policy file.
pub(crate) fn read(path: &Path) -> Result<String, LoadError> {
    let unreadable =
        |reason: &dyn fmt::Display| LoadError::Unreadable(format!("{}: {reason}", path.display()));
    let length = std::fs::metadata(path).map_err(|error| unreadable(&error))?.len();
    if length > MAX_BYTES {
        return Err(unreadable(&format!(
            "{length} bytes are more than the {MAX_BYTES} of a policy"
        )));
    }
    let bytes = std::fs::read(path).map_err(|error| unreadable(&error))?;
    String::from_utf8(bytes).map_err(|error| unreadable(&error))
}
