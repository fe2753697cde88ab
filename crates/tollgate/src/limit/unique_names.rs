//! Unique names of the limits of one rule or request.

use super::Limit;
use crate::quota::{QuotaError, QuotaErrorKind};

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
        let renamed = numbered(&limit, |limit| used.contains(&full_name(limit)));
        used.push(full_name(&renamed));
        renamed
    };
    Ok(limits.into_iter().map(with_unique_name).collect())
}

/// Numbers an unnamed limit (`60s#2`) until its name is not used.
pub(crate) fn numbered(limit: &Limit, is_used: impl Fn(&Limit) -> bool) -> Limit {
    let (mut renamed, mut number) = (limit.clone(), 1);
    while is_used(&renamed) {
        number += 1;
        renamed = limit.clone().with_default_name(format!("{}#{number}", limit.name()));
    }
    renamed
}

/// The error message for two limits with the same name.
pub(crate) fn duplicate_name(name: &str) -> String {
    format!("duplicate limit name {name:?}; limit names must be unique")
}
