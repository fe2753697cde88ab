//! Concurrency limit: a maximum number of requests in flight.
//!
//! A slot is released by its permit or expires at exactly `until`, so that a crashed holder blocks it no
//! longer than its TTL. Slots are sorted by expiry, so that a wait is read from the front.

use std::collections::VecDeque;
use std::time::Duration;

use super::saved::Saved;
use super::{Op, Reply, Wait};
use crate::algorithm::PermitId;
use crate::fields::{Fields, put_length, put_longs};
use crate::quota::{Quota, QuotaError, QuotaErrorKind};
use crate::time::saturating_micros;

/// Maximum number of slots per key; each one is stored individually.
const MAX_COUNT: u64 = 100_000;

/// Capacity in slots that an empty key keeps.
const MIN_CAPACITY: usize = 8;

/// Parameters of a concurrency limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Concurrency {
    count: u64,
    ttl: u64,
}

/// What holds new slots, and for how many microseconds at most.
#[derive(Clone, Copy)]
struct Holder {
    permit: Option<PermitId>,
    ttl: u64,
}

/// Held slots of one key, sorted by expiry.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Slots {
    entries: VecDeque<Slot>,
    /// Sum of the costs of all entries.
    total: u64,
    /// Upper bound on the `since` of all entries.
    newest: u64,
}

/// A slot held from `since` (inclusive) to `until` (exclusive).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Slot {
    permit: Option<PermitId>,
    since: u64,
    until: u64,
    cost: u64,
}

impl Concurrency {
    pub(crate) fn new(count: u64, ttl: Duration) -> Result<Self, QuotaError> {
        let quota = Quota::of_slots(count, ttl)?;
        if count > MAX_COUNT {
            return Err(QuotaError::built(
                QuotaErrorKind::Count,
                format!("a concurrency limit allows at most {MAX_COUNT} slots, not {count}"),
            ));
        }
        Ok(Self { count, ttl: quota.period_micros() })
    }

    /// Maximum number of slots in use.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Time after which an unreleased slot expires.
    #[must_use]
    pub fn ttl(&self) -> Duration {
        Duration::from_micros(self.ttl)
    }

    #[inline(never)]
    pub(super) fn step(&self, slots: &mut Slots, now: u64, op: Op) -> Reply {
        // A slot that expires later than the current TTL allows was taken under a longer TTL, perhaps
        // a configuration error: shorten it instead of refusing takes until then.
        slots.settle(now, now + self.ttl);
        let mut wait = Wait::NONE;
        match op {
            Op::Peek { cost } => wait = self.wait(slots, now, cost),
            Op::Take { cost } | Op::Lease { amount: cost, .. } => {
                wait = self.take(slots, now, cost, Holder { permit: None, ttl: self.ttl });
            }
            Op::Hold { cost, permit, ttl } => {
                let holder = Holder { permit: Some(permit), ttl: saturating_micros(ttl) };
                wait = self.take(slots, now, cost, holder);
            }
            // A refund does not identify a slot; only a permit releases slots.
            Op::Refund { .. } => {}
            Op::Debit { cost, age } => self.debit(slots, now, cost, saturating_micros(age)),
        }
        let remaining = self.count.saturating_sub(slots.used(now));
        Reply { wait, remaining, debt: 0, reset_after: slots.last_until().saturating_sub(now) }
    }

    fn take(&self, slots: &mut Slots, now: u64, cost: u64, holder: Holder) -> Wait {
        let wait = self.wait(slots, now, cost);
        if wait == Wait::NONE && cost > 0 {
            slots.drop_expired(now);
            let until = now + self.ttl.min(holder.ttl).max(1);
            slots.insert(Slot { permit: holder.permit, since: now, until, cost });
        }
        wait
    }

    fn wait(&self, slots: &Slots, now: u64, cost: u64) -> Wait {
        let Some(room) = self.count.checked_sub(cost) else { return Wait::FOREVER };
        let mut used = slots.used(now);
        if cost == 0 || used <= room {
            return Wait::NONE;
        }
        let last_to_expire = slots.in_use(now).find(|slot| {
            used -= slot.cost;
            used <= room
        });
        last_to_expire.map_or(Wait::NONE, |slot| Wait(slot.until - now))
    }

    fn debit(&self, slots: &mut Slots, now: u64, cost: u64, age: u64) {
        let cost = cost.min(self.count.saturating_sub(slots.used(now)));
        if age < self.ttl && cost > 0 {
            let since = now.saturating_sub(age);
            slots.drop_expired(now);
            slots.insert(Slot { permit: None, since, until: since + self.ttl, cost });
        }
    }
}

impl Slots {
    /// Repairs slots that were taken after `now` or expire after `latest`.
    fn settle(&mut self, now: u64, latest: u64) {
        if self.newest > now {
            for slot in self.entries.iter_mut().filter(|slot| slot.since > now) {
                slot.until -= slot.since - now;
                slot.since = now;
            }
            self.newest = now;
            self.sort();
        }
        if self.last_until() > latest {
            // The last ones, which stay the last ones.
            let first = self.entries.partition_point(|slot| slot.until <= latest);
            for slot in self.entries.range_mut(first..) {
                (slot.since, slot.until) = (now, latest);
            }
            self.newest = now;
        }
    }

    fn sort(&mut self) {
        self.entries.make_contiguous().sort_by_key(|slot| slot.until);
    }

    fn last_until(&self) -> u64 {
        self.entries.back().map_or(0, |slot| slot.until)
    }

    /// Returns how many slots have expired.
    fn expired(&self, now: u64) -> usize {
        match self.entries.front() {
            Some(first) if first.until <= now => {
                self.entries.partition_point(|slot| slot.until <= now)
            }
            _ => 0,
        }
    }

    fn in_use(&self, now: u64) -> impl Iterator<Item = &Slot> {
        self.entries.range(self.expired(now)..)
    }

    fn used(&self, now: u64) -> u64 {
        let expired = self.entries.range(..self.expired(now));
        self.total - expired.map(|slot| slot.cost).sum::<u64>()
    }

    fn drop_expired(&mut self, now: u64) {
        for gone in self.entries.drain(..self.expired(now)) {
            self.total -= gone.cost;
        }
        // Keep a small buffer, so that infrequent takes do not allocate each time.
        if self.entries.is_empty() && self.entries.capacity() > MIN_CAPACITY {
            self.entries = VecDeque::new();
        }
    }

    fn insert(&mut self, slot: Slot) {
        let place = self.entries.partition_point(|other| other.until <= slot.until);
        self.entries.insert(place, slot);
        self.total += slot.cost;
        self.newest = self.newest.max(slot.since);
    }

    /// Returns true if the permit holds an unexpired slot.
    pub(super) fn holds(&self, now: u64, permit: PermitId) -> bool {
        self.in_use(now).any(|slot| slot.permit == Some(permit))
    }

    /// Releases the permit's slots. Returns false and changes nothing if it holds no unexpired slot.
    pub(super) fn release(&mut self, now: u64, permit: PermitId) -> bool {
        let holds = self.holds(now, permit);
        if holds {
            self.settle(now, u64::MAX);
            self.entries.retain(|slot| slot.until > now && slot.permit != Some(permit));
            self.total = self.entries.iter().map(|slot| slot.cost).sum();
        }
        holds
    }

    /// Extends the permit's slots to `now` plus their original TTL and returns the earliest expiry.
    /// Returns `None` and changes nothing if the permit holds no unexpired slot.
    pub(super) fn renew(&mut self, now: u64, permit: PermitId) -> Option<u64> {
        if !self.holds(now, permit) {
            return None;
        }
        self.settle(now, u64::MAX);
        self.drop_expired(now);
        let held = self.entries.iter_mut().filter(|slot| slot.permit == Some(permit));
        let first = held.map(|slot| {
            slot.until += now - slot.since;
            slot.since = now;
            slot.until
        });
        let first = first.min();
        self.newest = now;
        self.sort();
        first
    }

    pub(super) fn is_fresh(&self, now: u64) -> bool {
        self.last_until() <= now
    }
}

impl Saved for Slots {
    fn save(&self, out: &mut Vec<u8>) {
        // There are at most MAX_COUNT slots, so the length always fits.
        if put_length(out, self.entries.len()).is_some() {
            for slot in &self.entries {
                out.extend_from_slice(&slot.permit.map_or(0, PermitId::as_u128).to_be_bytes());
                put_longs(out, [slot.since, slot.until - slot.since, slot.cost]);
            }
        }
    }

    fn load(fields: &mut Fields<'_>) -> Option<Self> {
        let count = fields.entries(40)?;
        let mut slots = Self { entries: VecDeque::with_capacity(count), ..Self::default() };
        for _ in 0..count {
            let permit = PermitId::from_u128(fields.wide()?);
            let (since, length, cost) = (fields.timestamp()?, fields.length()?, fields.exact()?);
            let until = since + length;
            let is_sound = length > 0 && cost > 0 && until >= slots.last_until();
            if !is_sound || slots.total + cost > MAX_COUNT {
                return None;
            }
            slots.insert(Slot { permit, since, until, cost });
        }
        Some(slots)
    }
}
