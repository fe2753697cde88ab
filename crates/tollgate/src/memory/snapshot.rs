//! Snapshots, with which a memory store keeps its state over a restart.
//!
//! ```text
//! "tollgate", version: 2 bytes, time of the snapshot: 8 bytes
//! records   1: limit   identity, encoded limit (0 if unknown)
//!           2: key     number of the limit in order of appearance, subject, state
//!           0: end     number of keys: 8 bytes
//! checksum: 8 bytes over everything before it
//! ```
//! Integers are big-endian; texts are preceded by their length. A limit is written before its first key, so
//! that one pass writes the snapshot.

mod error;
mod read;
mod write;

use std::hash::BuildHasher;
use std::io;

pub use error::{SnapshotError, SnapshotErrorKind};

use super::MemoryStore;
use super::registry::{LimitId, Registered};
use crate::sync::atomic::Ordering;
use crate::time::Clock;
use read::{SavedKey, SavedLimit, Snapshot};
use write::Writer;

const MAGIC: &[u8; 8] = b"tollgate";
const VERSION: u16 = 1;
const LIMIT: u8 = 1;
const KEY: u8 = 2;
const END: u8 = 0;

/// Replaces the encoded limit if only its identity is known.
const UNKNOWN: u8 = 0;

/// 64-bit FNV-1a hash. It always detects a change of one byte, and other changes with high probability.
#[derive(Debug, Clone, Copy)]
struct Checksum(u64);

impl Checksum {
    const fn new() -> Self {
        Self(0xCBF2_9CE4_8422_2325)
    }

    fn update(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01B3);
        }
    }
}

impl<C: Clock, H: BuildHasher> MemoryStore<C, H> {
    /// Writes a snapshot of every active key with the limit of its last operation, and returns the number of
    /// keys.
    ///
    /// Shards are locked one after the other, and not during I/O. Takes during the snapshot may be missing
    /// from it.
    ///
    /// ```
    /// use tollgate::{Key, Limit, ManualClock, MemoryStore, Plan, Quota, Subject, Take};
    ///
    /// let store = || MemoryStore::builder().clock(ManualClock::new()).build();
    /// let limit = Limit::sliding_window(Quota::per_hour(1))?;
    /// let subject = Subject::of(["user:1"]);
    /// let plan = Plan::new([Take::new(Key::new(&subject, &limit), 1)])?;
    ///
    /// let (before, after, mut file) = (store(), store(), Vec::new());
    /// assert!(before.take(&plan).is_allowed());
    /// assert_eq!(before.save(&mut file)?, 1);
    /// assert_eq!(after.restore(&file)?, 1);
    /// assert!(!after.take(&plan).is_allowed());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// The writer failed. [`restore`] rejects the incomplete snapshot.
    ///
    /// [`restore`]: Self::restore
    pub fn save(&self, out: &mut impl io::Write) -> io::Result<u64> {
        let mut writer = Writer::begin(out, self.clock.now())?;
        for shard in 0..self.shards.len() {
            if let Some(table) = self.lock_one(shard) {
                let now = self.clock.now();
                let entries = self.registry.read();
                for key in table.iter().filter(|key| !key.is_fresh(now, &entries)) {
                    writer.push(&key, &entries);
                }
            }
            writer.flush()?;
        }
        writer.end()
    }

    /// Restores a snapshot into this empty store and returns the number of active keys. The whole snapshot is
    /// validated before anything changes.
    ///
    /// # Errors
    /// The input is not a snapshot, is damaged or is from a newer version; the store is not empty, or its
    /// `max_keys` is too low.
    pub fn restore(&self, input: &[u8]) -> Result<u64, SnapshotError> {
        let Snapshot { limits, mut keys } = Snapshot::read(input)?;
        let now = self.clock.now();
        keys.retain(|key| !key.state.is_fresh(now));
        if self.keys.load(Ordering::Relaxed) > 0 {
            return Err(SnapshotErrorKind::StoreNotEmpty.into());
        }
        if keys.len() > self.max_keys {
            return Err(SnapshotErrorKind::TooMany.into());
        }
        let registered = limits.iter().map(|saved| match &saved.limit {
            Some(limit) => self.registry.find(limit),
            None => {
                let identity = self.registry.add_identity(saved.identity);
                Registered { identity, limit: LimitId::NONE }
            }
        });
        let registered: Vec<Registered> = registered.collect();
        let mut restored = 0;
        for key in keys {
            if let (Some(saved), Some(at)) = (limits.get(key.limit), registered.get(key.limit)) {
                restored += u64::from(self.restore_key(saved, *at, key));
            }
        }
        Ok(restored)
    }

    /// Inserts one key, unless a concurrent request has created it.
    fn restore_key(&self, saved: &SavedLimit<'_>, at: Registered, key: SavedKey<'_>) -> bool {
        let mut text = Vec::new();
        let location = self.location_in(at, saved.identity, key.subject, &mut text);
        let Some(mut table) = self.lock_one(location.shard) else { return false };
        let is_new = !table.contains(location.hash, &location.lookup, &self.registry);
        let fits = is_new && self.reserve_space();
        if fits {
            let at = (location.hash, &location.lookup);
            let (limit, entries) = (saved.limit.as_ref(), self.registry.read());
            table.insert(at, key.state, limit, &entries, &self.hasher);
        }
        fits
    }
}
