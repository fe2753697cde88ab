//! Reads and compiles the policy file.

use std::fmt;
use std::path::{Path, PathBuf};

use tollgate::Limit;
use tollgate::policy::{Policy, PolicyError};

use crate::files::bounded_read;

/// Maximum file size in bytes.
const MAX_BYTES: u64 = 4 << 20;

/// The path of the policy file, if there is one, and the default limit for policies without one.
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
    /// The policy is invalid.
    Invalid(PolicyError),
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable(reason) => f.write_str(reason),
            Self::Invalid(error) => error.fmt(f),
        }
    }
}

impl LoadError {
    /// Returns every error of the policy, up to 100, one per line.
    pub(crate) fn list(&self) -> String {
        match self {
            Self::Unreadable(reason) => reason.clone(),
            Self::Invalid(error) => {
                let lines = error.errors().take(100).map(|line| format!("{}:{line}", error.file()));
                lines.collect::<Vec<_>>().join("\n")
            }
        }
    }
}

impl PolicyFile {
    pub(crate) fn new(path: Option<PathBuf>, default_limit: Limit) -> Self {
        Self { path, default_limit }
    }

    /// Returns the path, if there is a policy file.
    pub(crate) fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// Reads the file; `None` without a policy file.
    pub(crate) fn read(&self) -> Result<Option<String>, LoadError> {
        self.path().map(read).transpose()
    }

    /// Reads and compiles the policy.
    pub(crate) fn load(&self) -> Result<Policy, LoadError> {
        self.compile(self.read()?.as_deref())
    }

    /// Compiles the text of the file; without text, a policy with only the default limit.
    pub(crate) fn compile(&self, text: Option<&str>) -> Result<Policy, LoadError> {
        match (&self.path, text) {
            (Some(path), Some(text)) => {
                let file = path.display().to_string();
                Policy::from_yaml(&file, text, self.default_limit.clone())
                    .map_err(LoadError::Invalid)
            }
            _ => Ok(Policy::with_default(self.default_limit.clone())),
        }
    }
}

/// Reads a policy file, or a configuration to import.
pub(crate) fn read(path: &Path) -> Result<String, LoadError> {
    let unreadable = |reason: &str| LoadError::Unreadable(format!("{}: {reason}", path.display()));
    let bytes = bounded_read::read(path, MAX_BYTES).map_err(|reason| unreadable(&reason))?;
    String::from_utf8(bytes).map_err(|_| unreadable("is not UTF-8 text"))
}
