//! Parses `tiers`.

use crate::policy::error::{FieldError, PolicyErrorKind};
use crate::policy::node_ref::NodeRef;
use crate::policy::tiers::Tiers;

use super::condition::{digest, fact_text};

/// Parses the tier names, each with the digests of its API keys.
pub(super) fn parse(map: NodeRef<'_>) -> Result<Tiers, FieldError> {
    let mut tiers = Tiers::default();
    for entry in map.entries()? {
        if entry.name().is_empty() || entry.name().contains('*') {
            let reason = "a tier name must not be empty or contain *";
            return Err(entry.name_error(PolicyErrorKind::Value, reason));
        }
        tiers.add_tier(entry.name());
        for key in entry.list()? {
            fact_text(key)?;
            tiers.add_key(digest(key)?).map_err(|earlier| {
                key.error(
                    PolicyErrorKind::Duplicate,
                    format!(
                        "this key is already in tier {earlier:?}; a key can be in one tier only"
                    ),
                )
            })?;
        }
    }
    Ok(tiers)
}
