//! Parses `tiers`.

use crate::policy::error::{FieldError, FieldErrors, PolicyErrorKind};
use crate::policy::node_ref::NodeRef;
use crate::policy::tiers::Tiers;

use super::condition::{digest, fact_text};

/// Parses the tier names, each with the digests of its API keys. `None` if one of them is invalid.
pub(super) fn parse(map: NodeRef<'_>, errors: &mut FieldErrors) -> Option<Tiers> {
    let (mut tiers, before) = (Tiers::default(), errors.count());
    for entry in errors.record(map.entries())? {
        errors.record(add_tier(&mut tiers, entry));
        for key in errors.record(entry.list()).unwrap_or_default() {
            errors.record(add_key(&mut tiers, key));
        }
    }
    (errors.count() == before).then_some(tiers)
}

fn add_tier(tiers: &mut Tiers, entry: NodeRef<'_>) -> Result<(), FieldError> {
    if entry.name().is_empty() || entry.name().contains('*') {
        let reason = "a tier name must not be empty or contain *";
        return Err(entry.name_error(PolicyErrorKind::Value, reason));
    }
    tiers.add_tier(entry.name());
    Ok(())
}

/// Adds a key to the tier that was added last.
fn add_key(tiers: &mut Tiers, key: NodeRef<'_>) -> Result<(), FieldError> {
    fact_text(key)?;
    tiers.add_key(digest(key)?).map_err(|earlier| {
        let reason =
            format!("this key is already in tier {earlier:?}; a key can be in one tier only");
        key.error(PolicyErrorKind::Duplicate, reason)
    })
}
