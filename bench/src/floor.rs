//! The floor: a lower bound for the cost of a decision.
//!
//! A fixed table, a hash in place of the key, one word of state and the CPU's time-stamp counter;
//! no key limit, no cleanup, no status for the caller. Keys with equal hashes share a bucket, so
//! this is a baseline and not a correct limiter.

use std::hash::BuildHasher;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use tollgate::DefaultHasher;

use crate::limiter::{BURST, Limiter, PER_TOKEN};

/// The bucket of one key.
#[derive(Debug, Default)]
struct Slot {
    /// Hash of the key; 0 if the slot is free.
    tag: AtomicU64,
    /// Time at which the bucket is full, in nanoseconds.
    full_at: AtomicU64,
}

/// A fixed table of buckets.
#[derive(Debug)]
pub struct Floor {
    slots: Box<[Slot]>,
    hasher: DefaultHasher,
    clock: quanta::Clock,
    start: u64,
}

impl Floor {
    /// Allocates at least two slots per key, which keeps probe sequences short.
    #[must_use]
    pub fn new(keys: usize) -> Self {
        let clock = quanta::Clock::new();
        let start = clock.raw();
        let slots = (0..(2 * keys).next_power_of_two()).map(|_| Slot::default()).collect();
        Self { slots, hasher: DefaultHasher::default(), clock, start }
    }

    /// Returns the slot of this hash; claims a free one if there is none.
    #[inline]
    fn slot(&self, hash: u64) -> Option<&Slot> {
        let tag = hash | 1;
        let mask = self.slots.len() - 1;
        let first = usize::try_from(hash >> 16).unwrap_or_default();
        let probed = (0..=mask).filter_map(|step| self.slots.get((first + step) & mask));
        let mut usable = probed.filter(|slot| {
            let found = slot.tag.load(Relaxed);
            found == tag || (found == 0 && slot.claim(tag))
        });
        usable.next()
    }
}

impl Slot {
    fn claim(&self, tag: u64) -> bool {
        match self.tag.compare_exchange(0, tag, Relaxed, Relaxed) {
            Ok(_) => true,
            Err(found) => found == tag,
        }
    }

    #[inline]
    fn take(&self, now: u64) -> bool {
        let max_wait = nanos(PER_TOKEN) * u64::from(BURST);
        let take_token = |full_at: u64| {
            let full_at = full_at.max(now) + nanos(PER_TOKEN);
            (full_at - now <= max_wait).then_some(full_at)
        };
        self.full_at.fetch_update(Relaxed, Relaxed, take_token).is_ok()
    }
}

impl Limiter for Floor {
    #[inline]
    fn admit(&self, key: &String) -> bool {
        let now = self.clock.delta_as_nanos(self.start, self.clock.raw());
        self.slot(self.hasher.hash_one(key)).is_some_and(|slot| slot.take(now))
    }
}

const fn nanos(duration: Duration) -> u64 {
    duration.as_secs() * 1_000_000_000 + duration.subsec_nanos() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bucket_refuses_after_its_burst() {
        let slot = Slot::default();
        slot.full_at.store(nanos(PER_TOKEN) * u64::from(BURST - 1), Relaxed);
        assert!(slot.take(0));
        assert!(!slot.take(0));
        assert!(slot.take(nanos(PER_TOKEN)));
    }

    #[test]
    fn keys_keep_their_slots() {
        let floor = Floor::new(100);
        let keys: Vec<String> = (0..100).map(|key| format!("user:{key}")).collect();
        for key in keys.iter().chain(&keys) {
            assert!(floor.admit(key));
        }
        let used = floor.slots.iter().filter(|slot| slot.tag.load(Relaxed) != 0);
        assert_eq!(used.count(), 100);
    }
}
