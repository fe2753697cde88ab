//! Listings: SCAN, a little at a time, so that Redis serves others in between.

use std::collections::HashSet;

use tollgate::{Cursor, Limit, ListedKey, Listing, Page, StoreError, StoreErrorKind};

use crate::failure::Failure;
use crate::limit_code::Letter;
use crate::resp::{Command, Reply};
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

impl Shared {
    pub(crate) async fn list(&self, listing: &Listing) -> Result<Page, StoreError> {
        let mut cursor = match listing.cursor() {
            None => 0,
            Some(cursor) => parse(cursor)?,
        };
        let mut page = Page::default();
        let mut seen = HashSet::new();
        for _ in 0..MOST_ROUNDS {
            let wanted = listing.page_size() - page.keys.len();
            let (next, found) = self.scan(cursor, listing.prefix(), wanted).await?;
            let fresh = found.into_iter().filter(|found| seen.insert(found.key.clone())).collect();
            page.keys.extend(self.in_use(fresh).await?);
            cursor = next;
            if cursor == 0 || page.keys.len() >= listing.page_size() {
                break;
            }
        }
        page.next = (cursor != 0).then(|| Cursor::new(cursor.to_string()));
        Ok(page)
    }

    /// Some counters of these subjects, and where to go on.
    async fn scan(
        &self,
        cursor: u64,
        subjects: &str,
        wanted: usize,
    ) -> Result<(u64, Vec<Found>), StoreError> {
        let pattern = self.keys.pattern(subjects);
        // Among others' keys a small step finds little.
        let count = if subjects.is_empty() { wanted } else { MOST_SCANNED };
        let count = count.min(MOST_SCANNED);
        let command = Command::new("SCAN").number(cursor).arg("MATCH").arg(pattern);
        let command = command.arg("COUNT").number(u64::try_from(count).unwrap_or(10));
        let reply = self.coalescer.link().ask(command.reply_up_to(SCAN_REPLY)).await?;
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
        ListedKey::in_scope(subject, scope)?;
        let (subject, scope) = (subject.to_owned(), scope.to_owned());
        Some(Found { key: key.to_vec(), letter: Letter::of_scope(&scope)?, subject, scope })
    }

    /// Those that do not equal "never seen".
    async fn in_use(&self, found: Vec<Found>) -> Result<Vec<ListedKey>, StoreError> {
        if found.is_empty() {
            return Ok(Vec::new());
        }
        let letters: Vec<u8> = found.iter().map(|found| found.letter.byte()).collect();
        let keys: Vec<&[u8]> = found.iter().map(|found| found.key.as_slice()).collect();
        let arguments = |command: Command| match self.coalescer.time().told() {
            // Where calls have the channel, a listing has nothing.
            Some(now) => command.arg(&letters).arg("").number(now.as_micros()),
            None => command.arg(&letters),
        };
        let reply = self.run(self.coalescer.scripts().listing(), &keys, arguments).await?;
        let Reply::Array(told) = reply else {
            return Err(Failure::unexpected().into_store_error());
        };
        let pairs = found.into_iter().zip(told.chunks_exact(2));
        Ok(pairs.filter_map(|(found, told)| listed(&found, told)).collect())
    }
}

fn listed(found: &Found, told: &[Reply]) -> Option<ListedKey> {
    let [Reply::Integer(1), Reply::Bulk(sketch)] = told else { return None };
    let key = ListedKey::in_scope(&found.subject, &found.scope)?;
    Some(ListedKey { known: Limit::from_sketch(&found.scope, sketch), ..key })
}

fn parse(cursor: &Cursor) -> Result<u64, StoreError> {
    cursor.as_str().parse().map_err(|error| {
        let message = format!("cursor {:?} is not one that this store gave", cursor.as_str());
        StoreError::new(StoreErrorKind::Cursor, message).caused_by(error)
    })
}
