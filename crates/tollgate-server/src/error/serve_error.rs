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
pub(crate) struct SettingsError {
    setting: String,
    reason: String,
}

impl SettingsError {
    pub(crate) fn new(setting: &str, reason: impl fmt::Display) -> Self {
        Self { setting: setting.to_owned(), reason: reason.to_string() }
    }

    /// Returns the name of the flag or variable.
    pub(crate) fn setting(&self) -> &str {
        &self.setting
    }

    /// Replaces the name of the flag, for a value that comes from its variable.
    pub(crate) fn renamed(self, setting: String) -> Self {
        Self { setting, ..self }
    }
}

impl fmt::Display for SettingsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.setting, self.reason)
    }
}

impl std::error::Error for SettingsError {}
