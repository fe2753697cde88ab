//! Concurrency limit by its definition: an unordered list of slots and a sum over the unexpired ones.

use super::reservation::Taken;
use super::{Holder, Model};
use crate::spec::LimitSpec;

#[derive(Debug, Clone, Default)]
pub(super) struct Slots {
    slots: Vec<Slot>,
}

#[derive(Debug, Clone, Copy)]
struct Slot {
    permit: Option<u64>,
    since: u64,
    until: u64,
    cost: u64,
}

impl Slots {
    fn sum(&self, now: u64) -> u64 {
        self.slots.iter().filter(|slot| slot.until > now).map(|slot| slot.cost).sum()
    }

    fn drop_expired(&mut self, now: u64) {
        self.slots.retain(|slot| slot.until > now);
    }

    /// Moves slots taken after `now` to `now` and keeps their TTL. Returns true if there were any.
    fn move_to_now(&mut self, now: u64) -> bool {
        let mut ahead = false;
        for slot in &mut self.slots {
            if slot.since > now {
                (slot.since, slot.until) = (now, now + (slot.until - slot.since));
                ahead = true;
            }
        }
        ahead
    }

    fn is_held(&self, now: u64, permit: u64) -> bool {
        self.slots.iter().any(|slot| slot.permit == Some(permit) && slot.until > now)
    }

    /// Releases the permit's slots. Returns true if the key then has no slots left.
    pub(super) fn release(&mut self, now: u64, permit: u64) -> bool {
        if !self.is_held(now, permit) {
            return false;
        }
        self.move_to_now(now);
        self.drop_expired(now);
        self.slots.retain(|slot| slot.permit != Some(permit));
        self.slots.is_empty()
    }

    pub(super) fn renew(&mut self, now: u64, permit: u64) {
        if self.is_held(now, permit) {
            self.move_to_now(now);
            self.drop_expired(now);
            for slot in self.slots.iter_mut().filter(|slot| slot.permit == Some(permit)) {
                (slot.since, slot.until) = (now, now + (slot.until - slot.since));
            }
        }
    }
}

impl Model for Slots {
    fn settle(&mut self, spec: &LimitSpec, now: u64) -> bool {
        let ahead = self.move_to_now(now);
        let mut shortened = false;
        for slot in &mut self.slots {
            if slot.until - now.min(slot.until) > spec.window_us {
                (slot.since, slot.until) = (now, now + spec.window_us);
                shortened = true;
            }
        }
        ahead || shortened
    }

    fn has_room(&self, spec: &LimitSpec, now: u64, cost: u64) -> bool {
        self.sum(now) + cost <= spec.count
    }

    fn take(&mut self, spec: &LimitSpec, now: u64, cost: u64, holder: Option<Holder>) {
        self.drop_expired(now);
        let permit = holder.map(|holder| holder.permit);
        let ttl = holder.map_or(spec.window_us, |holder| holder.ttl.min(spec.window_us));
        self.slots.push(Slot { permit, since: now, until: now + ttl, cost });
    }

    fn refund(&mut self, _: &LimitSpec, _: u64, _: u64) -> bool {
        false
    }

    fn debit(&mut self, spec: &LimitSpec, now: u64, cost: u64, age: u64) -> bool {
        let cost = cost.min(spec.count.saturating_sub(self.sum(now)));
        if age >= spec.window_us || cost == 0 {
            return false;
        }
        self.take(spec, now, cost, None);
        if let Some(slot) = self.slots.last_mut() {
            slot.since = now.saturating_sub(age);
            slot.until = slot.since + spec.window_us;
        }
        true
    }

    /// Slots are released by their permit only.
    fn give_back(&mut self, _: &LimitSpec, _: u64, _: u64, _: &Taken) -> u64 {
        0
    }

    fn overdraw(&mut self, _: &LimitSpec, _: u64, _: u64) -> u64 {
        0
    }

    fn debt(&self, _: &LimitSpec, _: u64) -> u64 {
        0
    }

    fn used(&self, spec: &LimitSpec, now: u64) -> u64 {
        self.sum(now).min(spec.count)
    }

    fn reset_after(&self, _: &LimitSpec, now: u64) -> u64 {
        let last = self.slots.iter().map(|slot| slot.until).max();
        last.map_or(0, |until| until.saturating_sub(now))
    }
}
