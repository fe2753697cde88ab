//! Environment variables.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs::File;
use std::io::Read as _;
use std::path::PathBuf;

use crate::error::SettingsError;

/// Maximum length of a file with a secret in bytes.
const MAX_SECRET: u64 = 64 * 1024;

/// Snapshot of the environment variables.
#[derive(Clone, Default)]
pub(crate) struct Environment {
    variables: BTreeMap<String, String>,
    /// Names of variables whose values are not UTF-8.
    not_utf8: BTreeSet<String>,
}

/// Omits the values, because some are secrets.
impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Environment").field("variables", &self.variables.len()).finish()
    }
}

impl Environment {
    /// Reads the variables of this process.
    pub(crate) fn of_process() -> Self {
        let mut environment = Self::default();
        for (name, value) in std::env::vars_os() {
            let Ok(name) = name.into_string() else { continue };
            match value.into_string() {
                Ok(value) => drop(environment.variables.insert(name, value)),
                Err(_) => drop(environment.not_utf8.insert(name)),
            }
        }
        environment
    }

    /// Returns a variable that is set and not empty.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// Returns a variable as a path.
    pub(crate) fn path(&self, name: &str) -> Option<PathBuf> {
        self.get(name).map(PathBuf::from)
    }

    /// Returns a secret and the variable that it comes from: the variable `name`, or the file that `file_name` names.
    pub(crate) fn secret(
        &self,
        name: &'static str,
        file_name: &'static str,
    ) -> Result<Option<(&'static str, String)>, SettingsError> {
        match (self.get(name), self.get(file_name)) {
            (None, None) => Ok(None),
            (Some(secret), None) => Ok(Some((name, secret.to_owned()))),
            (None, Some(path)) => Ok(Some((file_name, read_secret(file_name, path)?))),
            (Some(_), Some(_)) => {
                let reason = format!("conflicts with {name}; set only one of them");
                Err(SettingsError::new(file_name, reason))
            }
        }
    }

    /// Returns a token like [`secret`](Self::secret). An empty or unreadable variable is an error, because treating it
    /// as unset would remove the protection.
    pub(crate) fn token(
        &self,
        name: &'static str,
        file_name: &'static str,
    ) -> Result<Option<(&'static str, String)>, SettingsError> {
        for setting in [name, file_name] {
            if self.variables.get(setting).is_some_and(String::is_empty) {
                return Err(SettingsError::new(
                    setting,
                    "is empty; set a token, or unset the variable",
                ));
            }
            if self.not_utf8.contains(setting) {
                return Err(SettingsError::new(setting, "is not valid UTF-8"));
            }
        }
        self.secret(name, file_name)
    }

    /// Returns a boolean.
    pub(crate) fn flag(&self, name: &str) -> Result<Option<bool>, SettingsError> {
        match self.get(name).map(str::to_ascii_lowercase).as_deref() {
            None => Ok(None),
            Some("true" | "1" | "yes" | "on") => Ok(Some(true)),
            Some("false" | "0" | "no" | "off") => Ok(Some(false)),
            Some(value) => {
                let reason = format!("{value:?} is not a boolean; use true or false");
                Err(SettingsError::new(name, reason))
            }
        }
    }
}

/// Reads a secret from a file and trims whitespace.
fn read_secret(setting: &str, path: &str) -> Result<String, SettingsError> {
    let invalid =
        |reason: &dyn fmt::Display| SettingsError::new(setting, format!("{path}: {reason}"));
    let mut bytes = Vec::new();
    // Pipes and devices have no length.
    let read = File::open(path).and_then(|file| file.take(MAX_SECRET + 1).read_to_end(&mut bytes));
    if read.map_err(|error| invalid(&error))? as u64 > MAX_SECRET {
        return Err(invalid(&format_args!("is longer than the maximum of {MAX_SECRET} bytes")));
    }
    let text = String::from_utf8(bytes).map_err(|_| invalid(&"is not valid UTF-8"))?;
    match text.trim() {
        "" => Err(invalid(&"the file is empty")),
        secret => Ok(secret.to_owned()),
    }
}

#[cfg(test)]
impl<const N: usize> From<[(&str, &str); N]> for Environment {
    fn from(pairs: [(&str, &str); N]) -> Self {
        let variables = pairs.into_iter().map(|(n, v)| (n.to_owned(), v.to_owned())).collect();
        Self { variables, not_utf8: BTreeSet::new() }
    }
}
