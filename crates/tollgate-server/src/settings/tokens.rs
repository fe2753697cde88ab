//! Tokens of the service, from variables or from the files that they name; never from flags.

use super::Environment;
use crate::access::{RoleTokens, Tokens};
use crate::error::SettingsError;

/// Reads the tokens of all roles.
pub(super) fn from_environment(environment: &Environment) -> Result<RoleTokens, SettingsError> {
    let read = |name, file| {
        let token = environment.token(name, file)?;
        let tokens = token.map(|(setting, text)| {
            Tokens::parse(&text).map_err(|reason| SettingsError::new(setting, reason))
        });
        tokens.transpose()
    };
    Ok(RoleTokens {
        check: read("TOLLGATE_CHECK_TOKEN", "TOLLGATE_CHECK_TOKEN_FILE")?,
        read: read("TOLLGATE_READ_TOKEN", "TOLLGATE_READ_TOKEN_FILE")?,
        admin: read("TOLLGATE_ADMIN_TOKEN", "TOLLGATE_ADMIN_TOKEN_FILE")?,
    })
}
