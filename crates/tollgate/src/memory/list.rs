//! Listing of active keys in the order of their hashes, which does not change when tables grow between pages.

use std::hash::BuildHasher;

use super::MemoryStore;
use super::registry::Entries;
use super::stored_key::StoredKey;
use crate::store::{Cursor, ListedKey, Listing, Page, StoreError, StoreErrorKind};
use crate::time::Clock;

impl<C: Clock, H: BuildHasher> MemoryStore<C, H> {
    /// Returns a page of active keys. A listing contains every key that is active throughout it.
    ///
    /// Shards are locked one after the other, each for one pass over its keys.
    ///
    /// # Errors
    /// The cursor is invalid.
    pub fn list(&self, listing: &Listing) -> Result<Page, StoreError> {
        let mut from = match listing.cursor() {
            None => 0,
            Some(cursor) => parse(cursor)?,
        };
        let mut keys = Vec::new();
        for shard in self.shard_of(from)..self.shards.len() {
            let mut found = self.list_shard(shard, from, listing.prefix());
            found.sort_unstable_by_key(|(hash, _)| *hash);
            let wanted = listing.page_size() - keys.len();
            // Keys with equal hashes stay on one page, because the next page starts after that hash.
            let cut = match found.get(wanted - 1) {
                Some((last, _)) => found.partition_point(|(hash, _)| hash <= last),
                None => found.len(),
            };
            let last = found.get(cut.saturating_sub(1)).map(|(hash, _)| *hash);
            let more = cut < found.len() || shard + 1 < self.shards.len();
            keys.extend(found.into_iter().take(cut).map(|(_, key)| key));
            if keys.len() >= listing.page_size() {
                let next = last.and_then(|hash| hash.checked_add(1)).filter(|_| more);
                return Ok(Page {
                    keys,
                    next: next.map(|hash| Cursor::new(format!("{hash:016x}"))),
                });
            }
            from = 0;
        }
        Ok(Page { keys, next: None })
    }

    fn list_shard(&self, shard: usize, from: u64, prefix: &str) -> Vec<(u64, ListedKey)> {
        let Some(table) = self.lock_one(shard) else { return Vec::new() };
        let now = self.clock.now();
        let entries = self.registry.read();
        let active = table.iter().filter(|key| !key.is_fresh(now, &entries));
        active
            .filter_map(|key| {
                let hash = key.hash(&entries, &self.hasher);
                let key = listed(&key, &entries)?;
                (hash >= from && key.subject.starts_with(prefix)).then_some((hash, key))
            })
            .collect()
    }
}

fn listed(stored: &StoredKey<'_>, entries: &Entries) -> Option<ListedKey> {
    let (identity, subject) = stored.key(entries)?;
    let key = ListedKey::with_identity(subject, identity)?;
    let known = entries.limit(stored.registered(entries).limit);
    Some(ListedKey { known: known.cloned(), ..key })
}

fn parse(cursor: &Cursor) -> Result<u64, StoreError> {
    u64::from_str_radix(cursor.as_str(), 16).map_err(|error| {
        let message =
            format!("invalid cursor {:?}; use the cursor of the previous page", cursor.as_str());
        StoreError::new(StoreErrorKind::Cursor, message).caused_by(error)
    })
}
