//! Concurrency: at most so many in flight.
//!
//! A slot is given back by its permit, or returns by itself at exactly `until`: a holder that crashed
//! keeps nobody out for longer. Slots are kept in the order of their return, so that a wait is read
//! from the front.

use std::collections::VecDeque;
use std::time::Duration;

use super::saved::Saved;
use super::{Op, Reply, Wait};
use crate::error::{QuotaError, QuotaErrorKind};
use crate::fields::{Fields, put_length, put_longs};
use crate::permit::PermitId;
use crate::quota::Quota;
use crate::time::saturating_micros;

/// The most slots a key may have: they are kept one by one.
const MAX_COUNT: u64 = 100_000;

/// Slots whose room an empty key keeps.
const FEW: usize = 8;

/// A concurrency limit's numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Concurrency {
    count: u64,
    ttl: u64,
}

/// One key's slots in use, the first to return by itself first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Slots {
    entries: VecDeque<Slot>,
    /// The sum of their costs.
    total: u64,
    /// None of them was taken later than this.
    newest: u64,
}

/// In use from `since` until just before `until`.
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
                format!("a concurrency limit has at most {MAX_COUNT} slots, not {count}"),
            ));
        }
        Ok(Self { count, ttl: quota.period_micros() })
    }

    /// How many may be in flight.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// After how long a slot returns by itself.
    #[must_use]
    pub fn ttl(&self) -> Duration {
        Duration::from_micros(self.ttl)
    }

    #[inline(never)]
    pub(super) fn step(&self, slots: &mut Slots, now: u64, op: Op) -> Reply {
        // A slot that would outlast the present numbers was taken under a longer ttl, perhaps one
        // set by mistake: it must not keep everyone out until then.
        slots.settle(now, now + self.ttl);
        let mut wait = Wait::NONE;
        match op {
            Op::Peek { cost } => wait = self.wait(slots, now, cost),
            Op::Take { cost } => wait = self.take(slots, now, cost, None),
            Op::Hold { cost, permit } => wait = self.take(slots, now, cost, Some(permit)),
            // Whose slot it would be is not known: a slot is given back by its permit.
            Op::Refund { .. } => {}
            Op::Debit { cost, age } => self.debit(slots, now, cost, saturating_micros(age)),
        }
        let remaining = self.count.saturating_sub(slots.used(now));
        Reply { wait, remaining, reset_after: slots.last_until().saturating_sub(now) }
    }

    fn take(&self, slots: &mut Slots, now: u64, cost: u64, permit: Option<PermitId>) -> Wait {
        let wait = self.wait(slots, now, cost);
        if wait == Wait::NONE && cost > 0 {
            slots.drop_expired(now);
            slots.insert(Slot { permit, since: now, until: now + self.ttl, cost });
        }
        wait
    }

    fn wait(&self, slots: &Slots, now: u64, cost: u64) -> Wait {
        let Some(room) = self.count.checked_sub(cost) else { return Wait::FOREVER };
        let mut used = slots.used(now);
        if cost == 0 || used <= room {
            return Wait::NONE;
        }
        let last_to_return = slots.in_use(now).find(|slot| {
            used -= slot.cost;
            used <= room
        });
        last_to_return.map_or(Wait::NONE, |slot| Wait(slot.until - now))
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
    /// Repairs what was taken after `now`, or would return later than `latest`.
    fn settle(&mut self, now: u64, latest: u64) {
        if self.newest <= now && self.last_until() <= latest {
            return;
        }
        for slot in &mut self.entries {
            if slot.since > now {
                slot.until -= slot.since - now;
                slot.since = now;
            }
            if slot.until > latest {
                (slot.since, slot.until) = (now, latest);
            }
        }
        self.newest = now;
        self.sort();
    }

    fn sort(&mut self) {
        self.entries.make_contiguous().sort_by_key(|slot| slot.until);
    }

    fn last_until(&self) -> u64 {
        self.entries.back().map_or(0, |slot| slot.until)
    }

    /// How many have returned by themselves.
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
        // Room for a few is kept, so that takes far apart do not allocate each time.
        if self.entries.is_empty() && self.entries.capacity() > FEW {
            self.entries = VecDeque::new();
        }
    }

    fn insert(&mut self, slot: Slot) {
        let place = self.entries.partition_point(|other| other.until <= slot.until);
        self.entries.insert(place, slot);
        self.total += slot.cost;
        self.newest = self.newest.max(slot.since);
    }

    /// Whether the permit has a slot in use.
    pub(super) fn holds(&self, now: u64, permit: PermitId) -> bool {
        self.in_use(now).any(|slot| slot.permit == Some(permit))
    }

    /// Gives the permit's slots back; false, and nothing changed, if it has none in use.
    pub(super) fn release(&mut self, now: u64, permit: PermitId) -> bool {
        let holds = self.holds(now, permit);
        if holds {
            self.settle(now, u64::MAX);
            self.entries.retain(|slot| slot.until > now && slot.permit != Some(permit));
            self.total = self.entries.iter().map(|slot| slot.cost).sum();
        }
        holds
    }

    /// Lets the permit's slots last for their own length from now, and tells when the first of them
    /// returns; none, and nothing changed, if it has none in use.
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
        // Slots are at most as many as the largest count.
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
            let (since, length, cost) = (fields.moment()?, fields.length()?, fields.exact()?);
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
