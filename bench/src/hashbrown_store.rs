//! Baseline for the hash table of the memory store: the same shards, locks, hash, clock and 32-byte slots, on
//! `hashbrown::HashTable`.
//!
//! It makes the decisions of the common quota and nothing else. It removes no keys and has no key limit, so it
//! does less work per new key than the memory store.

use std::hash::{BuildHasher, Hasher};

use hashbrown::HashTable;
use parking_lot::Mutex;
use tollgate::{CalibratedClock, Clock, DefaultHasher};

use crate::limiter::{BURST, Limiter, PER_TOKEN};

/// Number of shards of a memory store with the default capacity.
const SHARDS: usize = 976;
/// Deficit of one token in the units of the memory store: one per microsecond.
const GRAINS: u64 = PER_TOKEN.as_secs() * 1_000_000;
const SHORT: usize = 16;
const PADDING: u8 = 0xFF;

/// A shard in a cache line of its own.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Shard(Mutex<HashTable<Slot>>);

/// A key and its bucket.
#[derive(Debug)]
enum Slot {
    Short { time: PackedTime, deficit: u64, key: [u8; SHORT] },
    Long { time: PackedTime, deficit: u64, key: Box<[u8]> },
}

/// Microseconds in 56 bits.
#[derive(Debug, Clone, Copy)]
#[repr(Rust, packed)]
struct PackedTime {
    high: u8,
    middle: u16,
    low: u32,
}

/// The memory store on `hashbrown`.
#[derive(Debug)]
pub struct HashbrownStore {
    shards: Box<[Shard]>,
    hasher: DefaultHasher,
    clock: CalibratedClock,
}

impl PackedTime {
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "takes the parts of 56 bits")]
    const fn new(micros: u64) -> Self {
        Self { high: (micros >> 48) as u8, middle: (micros >> 32) as u16, low: micros as u32 }
    }

    #[inline]
    fn micros(self) -> u64 {
        let Self { high, middle, low } = self;
        u64::from(high) << 48 | u64::from(middle) << 32 | u64::from(low)
    }
}

/// Pads a key of up to 16 bytes.
#[inline]
fn padded(key: &[u8]) -> Option<[u8; SHORT]> {
    let mut bytes = [PADDING; SHORT];
    bytes.get_mut(..key.len())?.copy_from_slice(key);
    Some(bytes)
}

impl Slot {
    fn new(key: &[u8], now: u64) -> Self {
        let time = PackedTime::new(now);
        match padded(key) {
            Some(key) => Self::Short { time, deficit: 0, key },
            None => Self::Long { time, deficit: 0, key: key.into() },
        }
    }

    fn key(&self) -> &[u8] {
        match self {
            Self::Short { key, .. } => {
                let length = key.iter().position(|byte| *byte == PADDING).unwrap_or(SHORT);
                key.get(..length).unwrap_or_default()
            }
            Self::Long { key, .. } => key,
        }
    }

    #[inline]
    fn take(&mut self, now: u64) -> bool {
        let (Self::Short { time, deficit, .. } | Self::Long { time, deficit, .. }) = self;
        let refilled = deficit.saturating_sub(now.saturating_sub(time.micros()));
        let is_allowed = refilled <= u64::from(BURST - 1) * GRAINS;
        if is_allowed {
            (*time, *deficit) = (PackedTime::new(now), refilled + GRAINS);
        }
        is_allowed
    }
}

impl HashbrownStore {
    /// Creates an empty store.
    #[must_use]
    pub fn new() -> Self {
        Self {
            shards: (0..SHARDS).map(|_| Shard::default()).collect(),
            hasher: DefaultHasher::default(),
            clock: CalibratedClock::new(),
        }
    }

    #[inline]
    fn hash(&self, key: &[u8]) -> u64 {
        let mut hasher = self.hasher.build_hasher();
        hasher.write(key);
        hasher.finish()
    }
}

impl Default for HashbrownStore {
    fn default() -> Self {
        Self::new()
    }
}

impl Limiter for HashbrownStore {
    #[inline]
    fn admit(&self, key: &String) -> bool {
        let key = key.as_bytes();
        let hash = self.hash(key);
        // The high half selects the shard, as in the memory store. `hashbrown` takes its tag from the highest bits
        // of a hash and the slot from the lowest, so it gets the halves exchanged.
        let shard = ((hash >> 32) * self.shards.len() as u64) >> 32;
        let Some(shard) = usize::try_from(shard).ok().and_then(|shard| self.shards.get(shard))
        else {
            return false;
        };
        let hash = hash.rotate_left(32);
        let mut table = shard.0.lock();
        let now = self.clock.now().as_micros();
        let found = match padded(key) {
            Some(short) => table.find_mut(
                hash,
                |slot| matches!(slot, Slot::Short { key, .. } if u128::from_le_bytes(*key) == u128::from_le_bytes(short)),
            ),
            None => table
                .find_mut(hash, |slot| matches!(slot, Slot::Long { key: long, .. } if **long == *key)),
        };
        if let Some(slot) = found {
            return slot.take(now);
        }
        let mut slot = Slot::new(key, now);
        let is_allowed = slot.take(now);
        table.insert_unique(hash, slot, |slot| self.hash(slot.key()).rotate_left(32));
        is_allowed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_as_large_as_those_of_the_memory_store() {
        assert_eq!(size_of::<Slot>(), 32);
    }

    #[test]
    fn keys_keep_their_slots() {
        let store = HashbrownStore::new();
        let keys: Vec<String> = (0..1000).map(|key| format!("user:{key:0>20}")).collect();
        let short = (0..1000).map(|key| format!("user:{key}"));
        for key in keys.iter().cloned().chain(keys.iter().cloned()).chain(short) {
            assert!(store.admit(&key));
        }
        let slots = store.shards.iter().map(|shard| shard.0.lock().len());
        assert_eq!(slots.sum::<usize>(), 2000);
    }
}
