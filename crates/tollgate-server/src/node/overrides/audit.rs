//! Reading the audit log.

use tollgate::{Override, Timestamp};

use super::change::Change;
use super::override_store::{OverrideStore, Storage};
use crate::error::ApiError;

/// One entry of the audit log.
#[derive(Debug)]
pub(crate) struct AuditRecord {
    pub(crate) at: Timestamp,
    pub(crate) change: Change,
    /// The override before and after the change.
    pub(crate) old: Option<Override>,
    pub(crate) new: Option<Override>,
}

impl OverrideStore {
    /// Returns up to `max` audit entries, newest first, starting after the cursor of the previous page, and the cursor of
    /// the next page.
    pub(crate) async fn audit(
        &self,
        cursor: Option<&str>,
        max: usize,
    ) -> Result<(Vec<AuditRecord>, Option<String>), ApiError> {
        match self.storage() {
            Storage::Redis { directory, .. } => {
                self.ensure_available()?;
                let entries = directory.audit(cursor, max).await;
                let entries = entries.map_err(|error| self.store_failure(&error))?;
                let next =
                    entries.last().filter(|_| entries.len() >= max).map(|last| last.id.clone());
                // Skips entries that other programs have written.
                let records = entries.into_iter().filter_map(|entry| {
                    let change = serde_json::from_str(&entry.entry).ok()?;
                    Some(AuditRecord { at: entry.at, change, old: entry.old, new: entry.new })
                });
                Ok((records.collect(), next))
            }
            Storage::Local(local) => {
                let invalid =
                    |_| ApiError::invalid("is not a cursor of this endpoint").at("cursor");
                let before = cursor.map(str::parse).transpose().map_err(invalid)?;
                let parse = |text: Option<String>| Override::from_text(&text?).ok();
                let entries = local.audit(before, max).await;
                let next = entries.last().filter(|_| entries.len() >= max).map(|last| last.id);
                let records = entries.into_iter().map(|entry| AuditRecord {
                    at: Timestamp::from_micros(entry.at_us),
                    change: entry.change,
                    old: parse(entry.old),
                    new: parse(entry.new),
                });
                Ok((records.collect(), next.map(|id| id.to_string())))
            }
        }
    }
}
