//! Variables that other programs of a fleet already set.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use super::SettingsError;

/// The variables of the environment, read once.
#[derive(Debug, Clone, Default)]
pub(crate) struct Environment(BTreeMap<String, String>);

impl Environment {
    /// Those of this process. What is not UTF-8 is none of ours.
    pub(crate) fn of_process() -> Self {
        let pairs = std::env::vars_os();
        Self(
            pairs
                .filter_map(|(n, v)| Some((n.into_string().ok()?, v.into_string().ok()?)))
                .collect(),
        )
    }

    /// A variable that is set and not empty.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str).filter(|value| !value.is_empty())
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
        Self(pairs.into_iter().map(|(n, v)| (n.to_owned(), v.to_owned())).collect())
    }
}
