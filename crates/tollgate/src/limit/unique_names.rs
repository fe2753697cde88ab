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
