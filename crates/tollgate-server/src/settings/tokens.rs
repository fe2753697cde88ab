//! Tokens of the service, from variables or from the files that they name; never from flags.

use super::{Environment, SettingsError};
use crate::access::Tokens;

/// Configured tokens. Without a check or read token, the endpoints are open; without an admin token, the admin
/// endpoints are absent.
#[derive(Debug, Clone, Default)]
pub(crate) struct TokenSettings {
    pub(crate) check: Option<Tokens>,
    pub(crate) read: Option<Tokens>,
    pub(crate) admin: Option<Tokens>,
}

impl TokenSettings {
    /// Returns whether a check or read token is also an admin token.
    pub(crate) fn is_shared(&self) -> bool {
        let pairs = [(&self.check, &self.admin), (&self.read, &self.admin)];
        let both =
            pairs.iter().filter_map(|(tokens, admin)| Some((tokens.as_ref()?, admin.as_ref()?)));
        both.into_iter().any(|(tokens, admin)| tokens.has_any_of(admin))
    }

    pub(super) fn of(environment: &Environment) -> Result<Self, SettingsError> {
        let read = |name, file| {
            let token = environment.token(name, file)?;
            let tokens = token.map(|(setting, text)| {
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
