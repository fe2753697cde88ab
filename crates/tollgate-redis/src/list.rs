//! Listings: SCAN, a little at a time, so that Redis serves others in between.

use std::collections::{BTreeMap, HashSet};

use tollgate::{Cursor, Limit, ListedKey, Listing, Page, StoreError, StoreErrorKind};

use crate::call::Call;
use crate::failure::Failure;
use crate::limit_code::Letter;
use crate::link::Link;
use crate::resp::{Command, Reply};
use crate::script::Entry;
use crate::slot::Slot;
use crate::store::Shared;

/// The most keys that Redis looks at in one go.
const MOST_SCANNED: usize = 1000;

/// The longest answer to that: keys may be of 32 facts, each of 1 KiB that is all escaped.
const SCAN_REPLY: usize = 256 * 1024 * 1024;

/// How often Redis is asked for one page. A page of a narrow prefix among many keys may be short, or empty;
/// its cursor goes on.
const MOST_ROUNDS: usize = 100;

/// A key that SCAN found.
struct Found {
    key: Vec<u8>,
    subject: String,
    scope: String,
    letter: Letter,
}

/// Where a listing is: at which server, and where there.
#[derive(Clone, Copy)]
struct Place {
    server: usize,
    cursor: u64,
}

impl Shared {
    pub(crate) async fn list(&self, listing: &Listing) -> Result<Page, StoreError> {
        let servers = self.coalescer.router().servers().await?;
        let mut place = listing.cursor().map_or(Ok(Place { server: 0, cursor: 0 }), parse)?;
        let mut page = Page::default();
        let mut seen = HashSet::new();
        for _ in 0..MOST_ROUNDS {
            let Some(server) = servers.get(place.server) else { return Ok(page) };
            let wanted = listing.page_size() - page.keys.len();
            let (next, found) = self.scan(server, place.cursor, listing.prefix(), wanted).await?;
            let fresh = found.into_iter().filter(|found| seen.insert(found.key.clone())).collect();
            page.keys.extend(self.in_use(fresh).await?);
            place.cursor = next;
            place.server += usize::from(next == 0);
            if page.keys.len() >= listing.page_size() {
                break;
            }
        }
        let is_end = place.server >= servers.len();
        page.next = (!is_end).then(|| Cursor::new(format!("{}.{}", place.server, place.cursor)));
        Ok(page)
    }

    /// Some counters of these subjects, and where to go on.
    async fn scan(
        &self,
        server: &Link,
        cursor: u64,
        subjects: &str,
        wanted: usize,
    ) -> Result<(u64, Vec<Found>), StoreError> {
        // Among others' keys a small step finds little.
        let count = if subjects.is_empty() { wanted } else { MOST_SCANNED };
        let count = u64::try_from(count.min(MOST_SCANNED)).unwrap_or(10);
        let command = Command::new("SCAN").number(cursor).arg("MATCH");
        let command = command.arg(self.keys.pattern(subjects)).arg("COUNT").number(count);
        let reply = server.ask(command.reply_up_to(SCAN_REPLY)).await?;
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

    fn found(&self, key: &[u8]) -> Option<Found> {
        let (subject, scope) = self.keys.parts(key)?;
        ListedKey::with_identity(subject, scope)?;
        let (subject, scope) = (subject.to_owned(), scope.to_owned());
        Some(Found { key: key.to_vec(), letter: Letter::of_scope(&scope)?, subject, scope })
    }

    /// Those that do not equal "never seen". Every slot is asked at once.
    async fn in_use(&self, found: Vec<Found>) -> Result<Vec<ListedKey>, StoreError> {
        let mut by_slot: BTreeMap<Slot, Vec<Found>> = BTreeMap::new();
        for found in found {
            by_slot.entry(self.coalescer.router().slot(&found.key)).or_default().push(found);
        }
        let looks: Vec<_> = by_slot.into_values().map(|found| (self.look(&found), found)).collect();
        let mut in_use = Vec::new();
        for (look, found) in looks {
            let Reply::Array(told) = look.await? else {
                return Err(Failure::unexpected().into_store_error());
            };
            let pairs = found.iter().zip(told.chunks_exact(2));
            in_use.extend(pairs.filter_map(|(found, told)| listed(found, told)));
        }
        Ok(in_use)
    }

    fn look(&self, found: &[Found]) -> impl Future<Output = Result<Reply, Failure>> + use<> {
        let mut arguments: Vec<Vec<u8>> =
            vec![found.iter().map(|found| found.letter.byte()).collect()];
        if let Some(now) = self.coalescer.time().told() {
            // Where calls have the channel, a listing has nothing.
            arguments.extend([Vec::new(), now.as_micros().to_string().into_bytes()]);
        }
        let keys = found.iter().map(|found| found.key.clone()).collect();
        self.coalescer.router().run(Call { entry: Entry::List, keys, arguments })
    }
}

fn listed(found: &Found, told: &[Reply]) -> Option<ListedKey> {
    let [Reply::Integer(1), Reply::Bulk(sketch)] = told else { return None };
    let key = ListedKey::with_identity(&found.subject, &found.scope)?;
    Some(ListedKey { known: Limit::from_spec_bytes(&found.scope, sketch), ..key })
}

fn parse(cursor: &Cursor) -> Result<Place, StoreError> {
    let text = cursor.as_str();
    let place = text.split_once('.').and_then(|(server, cursor)| {
        Some(Place { server: server.parse().ok()?, cursor: cursor.parse().ok()? })
    });
    place.ok_or_else(|| {
        let message = format!("cursor {text:?} is not one that this store gave");
        StoreError::new(StoreErrorKind::Cursor, message)
    })
}
