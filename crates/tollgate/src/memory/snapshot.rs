//! Saved state: a memory store survives a restart.
//!
//! ```text
//! "tollgate", version: 2 bytes, time of saving: 8
//! records   1: a limit   scope, then whether and what of its numbers is known
//!           2: a key     the limit's number in order of appearance, subject, state
//!           0: the end   how many keys: 8
//! checksum: 8 bytes over all before it
//! ```
//! Integers have their highest byte first, texts their length before them. A limit comes before the
//! first key that needs it, so that the whole is written in one go.

mod error;
mod read;
mod write;

use std::hash::BuildHasher;
use std::io;
use std::sync::atomic::Ordering;

pub use error::{SnapshotError, SnapshotErrorKind};

use super::MemoryStore;
use super::register::{LimitNumber, Registered};
use super::slot::Slot;
use crate::clock::Clock;
use read::{SavedKey, SavedLimit, Snapshot};
use write::Writer;

const MAGIC: &[u8; 8] = b"tollgate";
const VERSION: u16 = 1;
const LIMIT: u8 = 1;
const KEY: u8 = 2;
const END: u8 = 0;

/// Where a sketch would stand, of a limit of which only the scope is known.
const UNKNOWN: u8 = 0;

/// The hash known as FNV-1a in 64 bits: a changed byte always shows, and anything else all but always.
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
    /// Writes every key in use, with the limit it was last seen under, and tells how many there were.
    ///
    /// Shards are locked one after the other, none while its keys are on their way out. What is taken
    /// meanwhile may be in it or not.
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
    /// Those of the writer. What was written until then is told from a whole by [`restore`].
    ///
    /// [`restore`]: Self::restore
    pub fn save(&self, out: &mut impl io::Write) -> io::Result<u64> {
        let mut writer = Writer::begin(out, self.clock.now())?;
        for shard in 0..self.shards.len() {
            if let Some(table) = self.lock_one(shard) {
                let now = self.clock.now();
                let entries = self.register.read();
                for slot in table.iter().filter(|slot| !slot.is_fresh(now, &entries)) {
                    writer.push(slot, &entries);
                }
            }
            writer.flush()?;
        }
        writer.end()
    }

    /// Takes over what another store saved, and tells how many keys are in use of it. All is checked
    /// before anything changes.
    ///
    /// # Errors
    /// What was not saved by a store of this version or an older one, or not whole; a store that has
    /// keys already, or no place for so many.
    pub fn restore(&self, input: &[u8]) -> Result<u64, SnapshotError> {
        let Snapshot { limits, mut keys } = Snapshot::read(input)?;
        let now = self.clock.now();
        keys.retain(|key| !key.state.is_fresh(now));
        if self.keys.load(Ordering::Relaxed) > 0 {
            return Err(SnapshotErrorKind::Occupied.into());
        }
        if keys.len() > self.max_keys {
            return Err(SnapshotErrorKind::TooMany.into());
        }
        let registered = limits.iter().map(|saved| match &saved.limit {
            Some(limit) => self.register.find(limit),
            None => {
                let scope = self.register.enter_scope(saved.scope);
                Registered { scope, limit: LimitNumber::NONE }
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

    /// Puts one key into its place, unless someone was faster.
    fn restore_key(&self, saved: &SavedLimit<'_>, at: Registered, key: SavedKey<'_>) -> bool {
        let mut text = Vec::new();
        let spot = self.spot_in(at, saved.scope, key.subject, &mut text);
        let Some(mut table) = self.lock_one(spot.shard) else { return false };
        let is_new = table.get_mut(spot.hash, &spot.name, &self.register).is_none();
        let fits = is_new && self.reserve();
        if fits {
            let slot = Slot::restored(&spot.name, key.state, saved.limit.as_ref());
            table.insert(spot.hash, slot, &self.register.read(), &self.hasher);
        }
        fits
    }
}
