//! Variables that other programs of a fleet already set.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::PathBuf;

use super::SettingsError;

/// The variables of the environment, read once.
#[derive(Clone, Default)]
pub(crate) struct Environment {
    variables: BTreeMap<String, String>,
    /// Those that are not UTF-8.
    unreadable: BTreeSet<String>,
}

/// Without the values, some of which are secrets.
impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Environment").field("variables", &self.variables.len()).finish()
    }
}

impl Environment {
    /// Those of this process.
    pub(crate) fn of_process() -> Self {
        let mut environment = Self::default();
        for (name, value) in std::env::vars_os() {
            let Ok(name) = name.into_string() else { continue };
            match value.into_string() {
                Ok(value) => drop(environment.variables.insert(name, value)),
                Err(_) => drop(environment.unreadable.insert(name)),
            }
        }
        environment
    }

    /// A variable that is set and not empty.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// A path.
    pub(crate) fn path(&self, name: &str) -> Option<PathBuf> {
        self.get(name).map(PathBuf::from)
    }

    /// A secret, from its own variable or from a file that another one names; with the variable it is from.
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
                let reason = format!("is set, and so is {name}; only one of them can be meant");
                Err(SettingsError::new(file_name, reason))
            }
        }
    }

    /// A token, which protects something: what is set and cannot be one is not taken for unset.
    pub(crate) fn token(
        &self,
        name: &'static str,
        file_name: &'static str,
    ) -> Result<Option<(&'static str, String)>, SettingsError> {
        for setting in [name, file_name] {
            if self.variables.get(setting).is_some_and(String::is_empty) {
                return Err(SettingsError::new(setting, "is set, but empty"));
            }
            if self.unreadable.contains(setting) {
                return Err(SettingsError::new(setting, "is not text in UTF-8"));
            }
        }
        self.secret(name, file_name)
    }

    /// A yes or no.
    pub(crate) fn flag(&self, name: &str) -> Result<Option<bool>, SettingsError> {
        match self.get(name).map(str::to_ascii_lowercase).as_deref() {
            None => Ok(None),
            Some("true" | "1" | "yes" | "on") => Ok(Some(true)),
            Some("false" | "0" | "no" | "off") => Ok(Some(false)),
            Some(other) => {
                Err(SettingsError::new(name, format!("{other:?} is neither true nor false")))
            }
        }
    }
}

/// What the file says, without the end of its line.
fn read_secret(setting: &str, path: &str) -> Result<String, SettingsError> {
    let wrong =
        |reason: &dyn fmt::Display| SettingsError::new(setting, format!("{path}: {reason}"));
    let text = std::fs::read_to_string(path).map_err(|error| wrong(&error))?;
    match text.trim() {
        "" => Err(wrong(&"is empty")),
        secret => Ok(secret.to_owned()),
    }
}

#[cfg(test)]
impl<const N: usize> From<[(&str, &str); N]> for Environment {
    fn from(pairs: [(&str, &str); N]) -> Self {
        let variables = pairs.into_iter().map(|(n, v)| (n.to_owned(), v.to_owned())).collect();
        Self { variables, unreadable: BTreeSet::new() }
    }
}
