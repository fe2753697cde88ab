//! The audit: who did what, newest first. A capped stream, so that it never grows for good.

use std::time::Duration;

use tollgate::{Override, StoreError, StoreErrorKind, Timestamp};

use super::Directory;
use super::stream::{field, id_and_fields};
use crate::failure::Failure;
use crate::resp::{Command, Reply};

/// How many are asked for at once, and how long they may be together: one may have some ten thousand bytes.
const AT_ONCE: usize = 50;
const PAGE_REPLY: usize = 16 << 20;

/// One entry.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct AuditEntry {
    /// Where it stands, for [`Directory::audit`] to go on from.
    pub id: String,
    /// When, by the clock of Redis.
    pub at: Timestamp,
    /// Who did what, as it was given.
    pub entry: String,
    /// The override that was before; none if there was none, or it cannot be read.
    pub old: Option<Override>,
    /// The override that is since.
    pub new: Option<Override>,
}

impl Directory {
    /// Some entries, newest first, from the newest of all or from the one before that of an id.
    ///
    /// # Errors
    /// Redis could not be asked, or knows no such id.
    pub async fn audit(
        &self,
        before: Option<&str>,
        most: usize,
    ) -> Result<Vec<AuditEntry>, StoreError> {
        let from = match before {
            None => "+".to_owned(),
            Some(id) if is_id(id) => format!("({id}"),
            Some(_) => {
                let message = "no page of the audit ended here";
                return Err(StoreError::new(StoreErrorKind::Cursor, message));
            }
        };
        let (mut told, mut from): (Vec<AuditEntry>, String) = (Vec::new(), from);
        while told.len() < most {
            let wanted = AT_ONCE.min(most - told.len());
            let page = self.audited(&from, wanted).await?;
            let is_last = page.len() < wanted;
            told.extend(page);
            match told.last() {
                Some(last) if !is_last => from = format!("({}", last.id),
                _ => break,
            }
        }
        Ok(told)
    }

    /// The id of the newest entry: another means that something has changed.
    pub(super) async fn last_change(&self) -> Result<Option<String>, StoreError> {
        Ok(self.audited("+", 1).await?.pop().map(|entry| entry.id))
    }

    async fn audited(&self, from: &str, most: usize) -> Result<Vec<AuditEntry>, StoreError> {
        let key = self.shared.keys.audit();
        let most = u64::try_from(most).unwrap_or(u64::MAX);
        let command = Command::new("XREVRANGE").arg(&key).arg(from).arg("-").arg("COUNT");
        let command = command.number(most).reply_up_to(PAGE_REPLY);
        let reply = self.shared.coalescer.router().ask(key.as_bytes(), command).await;
        match reply.map_err(Failure::into_store_error)? {
            Reply::Array(entries) => Ok(entries.iter().filter_map(read).collect()),
            _ => Err(Failure::unexpected().into_store_error()),
        }
    }
}

fn is_id(text: &str) -> bool {
    let is_number = |part: &str| part.parse::<u64>().is_ok();
    text.split_once('-').is_some_and(|(millis, nth)| is_number(millis) && is_number(nth))
}

fn read(reply: &Reply) -> Option<AuditEntry> {
    let (id, fields) = id_and_fields(reply)?;
    let millis = id.split('-').next()?.parse().ok()?;
    let own = |name: &str| field(fields, name).and_then(|text| Override::from_text(text).ok());
    Some(AuditEntry {
        id: id.to_owned(),
        at: Timestamp::EPOCH + Duration::from_millis(millis),
        entry: field(fields, "entry")?.to_owned(),
        old: own("old"),
        new: own("new"),
    })
}
