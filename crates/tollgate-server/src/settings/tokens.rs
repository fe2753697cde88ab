//! The tokens of a service: from variables or the files they name, never from the command line.

use super::{Environment, SettingsError};
use crate::access::Tokens;

/// Which tokens there are. Where there is none, everyone may look and ask, and nobody may change.
#[derive(Debug, Clone, Default)]
pub(crate) struct TokenSettings {
    pub(crate) check: Option<Tokens>,
    pub(crate) read: Option<Tokens>,
    pub(crate) admin: Option<Tokens>,
}

impl TokenSettings {
    /// Whether somebody with the token for one thing has that for more.
    pub(crate) fn is_shared(&self) -> bool {
        let pairs = [(&self.check, &self.admin), (&self.read, &self.admin)];
        let both = pairs.iter().filter_map(|(one, other)| Some((one.as_ref()?, other.as_ref()?)));
        both.into_iter().any(|(one, other)| one.has_any_of(other))
    }

    pub(super) fn of(environment: &Environment) -> Result<Self, SettingsError> {
        let read = |name, file| {
            let given = environment.token(name, file)?;
            let tokens = given.map(|(setting, text)| {
                Tokens::parse(&text).map_err(|reason| SettingsError::new(setting, reason))
            });
            tokens.transpose()
        };
        Ok(Self {
            check: read("TOLLGATE_CHECK_TOKEN", "TOLLGATE_CHECK_TOKEN_FILE")?,
            read: read("TOLLGATE_READ_TOKEN", "TOLLGATE_READ_TOKEN_FILE")?,
            admin: read("TOLLGATE_ADMIN_TOKEN", "TOLLGATE_ADMIN_TOKEN_FILE")?,
        })
    }
}
