//! Names of limits and rules: validation and defaults.

use crate::quota::{QuotaError, QuotaErrorKind};
use crate::time::SECOND;

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
