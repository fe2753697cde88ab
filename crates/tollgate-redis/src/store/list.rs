//! Listings: SCAN in small steps, so that Redis serves other clients in between.

use std::collections::{BTreeMap, HashSet};

use tollgate::{Cursor, Limit, ListedKey, Listing, Page, StoreError, StoreErrorKind};

use super::Shared;
use crate::call::Call;
use crate::failure::Failure;
use crate::limit_code::{Letter, letter_of_identity};
use crate::link::Link;
use crate::resp::{Command, Reply};
use crate::script::Entry;
use crate::slot::Slot;

/// Maximum number of keys that one SCAN visits.
const MAX_SCANNED: usize = 1000;

/// Maximum reply to one SCAN, in bytes: keys of up to 32 facts, each of 1 KiB and fully escaped.
const MAX_SCAN_REPLY: usize = 256 * 1024 * 1024;

/// Maximum number of SCANs per page. A page for a rare prefix may be short or empty; its cursor continues.
const MAX_SCANS: usize = 100;

/// A key that SCAN found.
struct FoundKey {
    key: Vec<u8>,
    subject: String,
    identity: String,
    letter: Letter,
}

/// The position of a listing: a server and its SCAN cursor.
#[derive(Clone, Copy)]
struct ScanPosition {
    server: usize,
    cursor: u64,
}

impl Shared {
    pub(super) async fn list(&self, listing: &Listing) -> Result<Page, StoreError> {
        let servers = self.router.servers().await?;
        let mut position =
            listing.cursor().map_or(Ok(ScanPosition { server: 0, cursor: 0 }), parse_cursor)?;
        let mut page = Page::default();
        let mut seen = HashSet::new();
        for _ in 0..MAX_SCANS {
            let Some(server) = servers.get(position.server) else { return Ok(page) };
            let count = listing.page_size() - page.keys.len();
            let (next, found) = self.scan(server, position.cursor, listing.prefix(), count).await?;
            let fresh = found.into_iter().filter(|found| seen.insert(found.key.clone())).collect();
            page.keys.extend(self.in_use(fresh).await?);
            position.cursor = next;
            position.server += usize::from(next == 0);
            if page.keys.len() >= listing.page_size() {
                break;
            }
        }
        let is_end = position.server >= servers.len();
        page.next =
            (!is_end).then(|| Cursor::new(format!("{}.{}", position.server, position.cursor)));
        Ok(page)
    }

    /// Scans once for counters with this subject prefix. Returns the next cursor, 0 at the end.
    async fn scan(
        &self,
        server: &Link,
        cursor: u64,
        subjects: &str,
        count: usize,
    ) -> Result<(u64, Vec<FoundKey>), StoreError> {
        // With a prefix, most visited keys do not match.
        let count = if subjects.is_empty() { count } else { MAX_SCANNED };
        let count = u64::try_from(count.min(MAX_SCANNED)).unwrap_or(10);
        let command = Command::new("SCAN").number(cursor).arg("MATCH");
        let command = command.arg(self.keys.pattern(subjects)).arg("COUNT").number(count);
        let reply = server.request(command.reply_up_to(MAX_SCAN_REPLY)).await?;
        let unexpected = || Failure::unexpected().into_store_error();
        let Reply::Array(parts) = reply else { return Err(unexpected()) };
        let [Reply::Bulk(next), Reply::Array(keys)] = parts.as_slice() else {
            return Err(unexpected());
        };
        let next = std::str::from_utf8(next).ok().and_then(|text| text.parse().ok());
        let found = keys.iter().filter_map(|key| match key {
            Reply::Bulk(key) => self.found(key),
            _ => None,
        });
        Ok((next.ok_or_else(unexpected)?, found.collect()))
    }

    fn found(&self, key: &[u8]) -> Option<FoundKey> {
        let (subject, identity) = self.keys.parts(key)?;
        ListedKey::with_identity(subject, identity)?;
        let (subject, identity) = (subject.to_owned(), identity.to_owned());
        Some(FoundKey {
            key: key.to_vec(),
            letter: letter_of_identity(&identity)?,
            subject,
            identity,
        })
    }

    /// Returns the keys whose state is not equal to no state. Calls all slots concurrently.
    async fn in_use(&self, found: Vec<FoundKey>) -> Result<Vec<ListedKey>, StoreError> {
        let mut by_slot: BTreeMap<Slot, Vec<FoundKey>> = BTreeMap::new();
        for found in found {
            by_slot.entry(self.router.slot(&found.key)).or_default().push(found);
        }
        let inspections: Vec<_> =
            by_slot.into_values().map(|found| (self.inspect(&found), found)).collect();
        let mut in_use = Vec::new();
        for (inspection, found) in inspections {
            let Reply::Array(reply) = inspection.await? else {
                return Err(Failure::unexpected().into_store_error());
            };
            let pairs = found.iter().zip(reply.chunks_exact(2));
            in_use.extend(pairs.filter_map(|(found, reply)| listed(found, reply)));
        }
        Ok(in_use)
    }

    fn inspect(&self, found: &[FoundKey]) -> impl Future<Output = Result<Reply, Failure>> + use<> {
        let mut arguments: Vec<Vec<u8>> =
            vec![found.iter().map(|found| found.letter.byte()).collect()];
        if let Some(now) = self.time.argument() {
            // An empty argument in place of the channel.
            arguments.extend([Vec::new(), now.as_micros().to_string().into_bytes()]);
        }
        let keys = found.iter().map(|found| found.key.clone()).collect();
        self.router.run(Call { entry: Entry::List, keys, arguments })
    }
}

fn listed(found: &FoundKey, reply: &[Reply]) -> Option<ListedKey> {
    let [Reply::Integer(1), Reply::Bulk(spec)] = reply else { return None };
    let key = ListedKey::with_identity(&found.subject, &found.identity)?;
    Some(ListedKey { known: Limit::from_spec_bytes(&found.identity, spec), ..key })
}

fn parse_cursor(cursor: &Cursor) -> Result<ScanPosition, StoreError> {
    let text = cursor.as_str();
    let position = text.split_once('.').and_then(|(server, cursor)| {
        Some(ScanPosition { server: server.parse().ok()?, cursor: cursor.parse().ok()? })
    });
    position.ok_or_else(|| {
        let message = format!("invalid cursor {text:?}; use the cursor of the previous page");
        StoreError::new(StoreErrorKind::Cursor, message)
    })
}
