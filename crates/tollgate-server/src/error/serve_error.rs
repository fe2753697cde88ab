//! Errors of `tollgate serve`: an invalid setting, or a reason why the server cannot start or continue.

use std::fmt;

/// The reason why the server could not start or continue.
#[derive(Debug)]
pub(crate) struct ServeError(String);

impl ServeError {
    pub(crate) fn new(reason: impl fmt::Display) -> Self {
        Self(reason.to_string())
    }
}

impl fmt::Display for ServeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// An invalid setting. The text starts with the name of the flag or variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SettingsError(String);

impl SettingsError {
    pub(crate) fn new(setting: &str, reason: impl fmt::Display) -> Self {
        Self(format!("{setting}: {reason}"))
    }
}

impl fmt::Display for SettingsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for SettingsError {}
