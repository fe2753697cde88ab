//! What limits are called, and that no two of them are called the same.

use crate::error::{QuotaError, QuotaErrorKind};
use crate::limit::Limit;
use crate::time::SECOND;

/// Gives each limit that was not named a name of its own (`60s`, `60s#2`), and refuses two that were
/// given the same.
pub(crate) fn unique_names(limits: Vec<Limit>) -> Result<Vec<Limit>, QuotaError> {
    let mut taken: Vec<(String, String)> = Vec::new();
    let place = |limit: &Limit| (limit.rule().to_owned(), limit.name().to_owned());
    for limit in limits.iter().filter(|limit| limit.is_named()) {
        if taken.contains(&place(limit)) {
            return Err(QuotaError::built(
                QuotaErrorKind::Name,
                format!("limit name {:?} comes twice", limit.name()),
            ));
        }
        taken.push(place(limit));
    }
    let call = |limit: Limit| {
        if limit.is_named() {
            return limit;
        }
        let (mut called, mut nth) = (limit.clone(), 1);
        while taken.contains(&place(&called)) {
            nth += 1;
            called = limit.clone().with_default_name(format!("{}#{nth}", limit.name()));
        }
        taken.push(place(&called));
        called
    };
    Ok(limits.into_iter().map(call).collect())
}

/// What an unnamed limit is called by.
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

/// Whether keys and metrics can carry the name.
pub(crate) fn is_name(name: &str) -> bool {
    let is_valid = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    (1..=64).contains(&name.len()) && name.bytes().all(is_valid)
}

/// A name that keys and metrics can carry, or why it is none.
pub(crate) fn valid_name(what: &str, name: &str) -> Result<Box<str>, QuotaError> {
    if is_name(name) {
        return Ok(name.into());
    }
    let shown: String = name.chars().take(64).collect();
    Err(QuotaError::built(
        QuotaErrorKind::Name,
        format!("{what} name {shown:?} must be 1 to 64 characters of A-Z a-z 0-9 . _ -"),
    ))
}
