//! The audit: a capped stream of administrative changes.

use std::time::Duration;

use tollgate::{Override, StoreError, StoreErrorKind, Timestamp};

use super::Directory;
use super::stream::{field, id_and_fields};
use crate::failure::Failure;
use crate::resp::{Command, Reply};

/// Number of entries per call, and the maximum reply in bytes. One entry may have about 10 kB.
const PAGE_SIZE: usize = 50;
const MAX_PAGE_BYTES: usize = 16 << 20;

/// An audit entry.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct AuditEntry {
    /// Position of the entry, for the next page of [`Directory::audit`].
    pub id: String,
    /// Time of the change, by the clock of Redis.
    pub at: Timestamp,
    /// Description of the change, as recorded.
    pub entry: String,
    /// The previous override, or `None` if there was none or it is unreadable.
    pub old: Option<Override>,
    /// The new override.
    pub new: Option<Override>,
}

impl Directory {
    /// Returns up to `max` entries, newest first: the newest of all, or those before the entry with the id
    /// `before`.
    ///
    /// # Errors
    /// The call to Redis failed, or `before` is not the id of an entry.
    pub async fn audit(
        &self,
        before: Option<&str>,
        max: usize,
    ) -> Result<Vec<AuditEntry>, StoreError> {
        let from = match before {
            None => "+".to_owned(),
            Some(id) if is_id(id) => format!("({id}"),
            Some(_) => {
                let message = "invalid audit cursor; use the cursor of the previous page";
                return Err(StoreError::new(StoreErrorKind::Cursor, message));
            }
        };
        let (mut entries, mut from): (Vec<AuditEntry>, String) = (Vec::new(), from);
        while entries.len() < max {
            let count = PAGE_SIZE.min(max - entries.len());
            let page = self.read_page(&from, count).await?;
            let is_last = page.len() < count;
            entries.extend(page);
            match entries.last() {
                Some(last) if !is_last => from = format!("({}", last.id),
                _ => break,
            }
        }
        Ok(entries)
    }

    /// Returns the id of the newest entry. It changes with every change.
    pub(super) async fn last_change(&self) -> Result<Option<String>, StoreError> {
        Ok(self.read_page("+", 1).await?.pop().map(|entry| entry.id))
    }

    async fn read_page(&self, from: &str, max: usize) -> Result<Vec<AuditEntry>, StoreError> {
        let key = self.keys.audit();
        let max = u64::try_from(max).unwrap_or(u64::MAX);
        let command = Command::new("XREVRANGE").arg(&key).arg(from).arg("-").arg("COUNT");
        let command = command.number(max).reply_up_to(MAX_PAGE_BYTES);
        match self.request(&key, command).await? {
            Reply::Array(entries) => Ok(entries.iter().filter_map(parse).collect()),
            _ => Err(Failure::unexpected().into_store_error()),
        }
    }
}

fn is_id(text: &str) -> bool {
    let is_number = |part: &str| part.parse::<u64>().is_ok();
    text.split_once('-').is_some_and(|(millis, nth)| is_number(millis) && is_number(nth))
}

fn parse(reply: &Reply) -> Option<AuditEntry> {
    let (id, fields) = id_and_fields(reply)?;
    let millis = id.split('-').next()?.parse().ok()?;
    let parse_override =
        |name: &str| field(fields, name).and_then(|text| Override::from_text(text).ok());
    Some(AuditEntry {
        id: id.to_owned(),
        at: Timestamp::EPOCH + Duration::from_millis(millis),
        entry: field(fields, "entry")?.to_owned(),
        old: parse_override("old"),
        new: parse_override("new"),
    })
}
