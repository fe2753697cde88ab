//! Names of limits and rules: validation, defaults and uniqueness.

use crate::error::{QuotaError, QuotaErrorKind};
use crate::limit::Limit;
use crate::time::SECOND;

/// Gives each unnamed limit a unique name (`60s`, `60s#2`).
///
/// # Errors
/// Two limits of one rule were given the same name.
pub(crate) fn unique_names(limits: Vec<Limit>) -> Result<Vec<Limit>, QuotaError> {
    let mut used: Vec<(String, String)> = Vec::new();
    let full_name = |limit: &Limit| (limit.rule().to_owned(), limit.name().to_owned());
    for limit in limits.iter().filter(|limit| limit.is_named()) {
        if used.contains(&full_name(limit)) {
            return Err(QuotaError::built(QuotaErrorKind::Name, duplicate_name(limit.name())));
        }
        used.push(full_name(limit));
    }
    let with_unique_name = |limit: Limit| {
        if limit.is_named() {
            return limit;
        }
        let (mut renamed, mut number) = (limit.clone(), 1);
        while used.contains(&full_name(&renamed)) {
            number += 1;
            renamed = limit.clone().with_default_name(format!("{}#{number}", limit.name()));
        }
        used.push(full_name(&renamed));
        renamed
    };
    Ok(limits.into_iter().map(with_unique_name).collect())
}

/// The error message for two limits with the same name.
pub(crate) fn duplicate_name(name: &str) -> String {
    format!("duplicate limit name {name:?}; limit names must be unique")
}

/// Returns the default name of a limit with this window: `60s`, `250ms`, `10us`.
pub(crate) fn window_name(micros: u64) -> Box<str> {
    let name = if micros.is_multiple_of(SECOND) {
        format!("{}s", micros / SECOND)
    } else if micros.is_multiple_of(1000) {
        format!("{}ms", micros / 1000)
    } else {
        format!("{micros}us")
    };
    name.into()
}

/// Returns whether a name is valid in keys and metrics: `[A-Za-z0-9._-]{1,64}`.
pub(crate) fn is_name(name: &str) -> bool {
    let is_valid = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    (1..=64).contains(&name.len()) && name.bytes().all(is_valid)
}

/// Validates the name of a `kind` (`limit`, `rule`, `limiter`); see [`is_name`].
pub(crate) fn valid_name(kind: &str, name: &str) -> Result<Box<str>, QuotaError> {
    if is_name(name) {
        return Ok(name.into());
    }
    let start: String = name.chars().take(64).collect();
    Err(QuotaError::built(
        QuotaErrorKind::Name,
        format!("invalid {kind} name {start:?}; use 1 to 64 characters of A-Z a-z 0-9 . _ -"),
    ))
}
