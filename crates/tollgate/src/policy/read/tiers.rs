//! The tiers of a file.

use crate::policy::cursor::Cursor;
use crate::policy::error::{Flaw, PolicyErrorKind};
use crate::policy::tiers::Tiers;

use super::condition::{digest, short_text};

/// Reads names of tiers, each with the digests of its API keys.
pub(super) fn read(map: Cursor<'_>) -> Result<Tiers, Flaw> {
    let mut tiers = Tiers::default();
    for entry in map.entries()? {
        if entry.name().is_empty() || entry.name().contains('*') {
            let reason = "a tier needs a name, without *";
            return Err(entry.misnamed(PolicyErrorKind::Value, reason));
        }
        tiers.add_tier(entry.name());
        for key in entry.list()? {
            short_text(key)?;
            tiers.add_key(digest(key)?).map_err(|earlier| {
                key.flaw(
                    PolicyErrorKind::Duplicate,
                    format!("this key is in tier {earlier:?} already"),
                )
            })?;
        }
    }
    Ok(tiers)
}
