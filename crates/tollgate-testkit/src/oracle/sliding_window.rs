//! Sliding window by its definition: a list of accepted takes and a sum over those in the window.

use super::reservation::Taken;
use super::{Holder, MAX_EXACT, Model};
use crate::spec::LimitSpec;

#[derive(Debug, Clone, Default)]
pub(super) struct Log {
    window: u64,
    takes: Vec<(u64, u64)>,
}

impl Log {
    fn inside(&self, window: u64, now: u64) -> impl DoubleEndedIterator<Item = &(u64, u64)> {
        self.takes.iter().filter(move |(at, _)| at + window > now)
    }

    fn sum(&self, spec: &LimitSpec, now: u64) -> u64 {
        self.inside(spec.counted_us(), now).map(|(_, cost)| cost).sum()
    }

    fn drop_expired(&mut self, window: u64, now: u64) {
        self.takes.retain(|(at, _)| at + window > now);
    }
}

impl Model for Log {
    fn settle(&mut self, spec: &LimitSpec, now: u64) -> bool {
        let changed = self.window != spec.counted_us();
        if changed {
            self.drop_expired(self.window, now);
            self.window = spec.counted_us();
        }
        let mut ahead = false;
        for (at, _) in &mut self.takes {
            ahead |= *at > now;
            *at = now.min(*at);
        }
        ahead || changed
    }

    fn has_room(&self, spec: &LimitSpec, now: u64, cost: u64) -> bool {
        self.sum(spec, now) + cost <= spec.count
    }

    fn take(&mut self, spec: &LimitSpec, now: u64, cost: u64, _: Option<Holder>) {
        self.drop_expired(spec.counted_us(), now);
        self.takes.push((now, cost));
    }

    fn refund(&mut self, spec: &LimitSpec, now: u64, mut cost: u64) -> bool {
        if cost == 0 || self.sum(spec, now) == 0 {
            return false;
        }
        self.drop_expired(spec.counted_us(), now);
        while let Some((_, newest)) = self.takes.last_mut() {
            let refunded = cost.min(*newest);
            *newest -= refunded;
            cost -= refunded;
            if *newest > 0 {
                break;
            }
            self.takes.pop();
        }
        true
    }

    fn debit(&mut self, spec: &LimitSpec, now: u64, cost: u64, age: u64) -> bool {
        let cost = cost.min(spec.count.saturating_sub(self.sum(spec, now)));
        if age >= spec.counted_us() || cost == 0 {
            return false;
        }
        self.drop_expired(spec.counted_us(), now);
        self.takes.push((now.saturating_sub(age), cost));
        self.takes.sort_by_key(|(at, _)| *at);
        true
    }

    /// Removes the amount from what was taken at that time, and not from the newest takes.
    fn give_back(&mut self, spec: &LimitSpec, now: u64, mut amount: u64, taken: &Taken) -> u64 {
        self.drop_expired(spec.counted_us(), now);
        let before = self.sum(spec, now);
        for (_, cost) in self.takes.iter_mut().filter(|(at, _)| *at == taken.at) {
            let removed = amount.min(*cost);
            *cost -= removed;
            amount -= removed;
        }
        self.takes.retain(|(_, cost)| *cost > 0);
        before - self.sum(spec, now)
    }

    fn overdraw(&mut self, spec: &LimitSpec, now: u64, amount: u64) -> u64 {
        let room = (2 * spec.count).min(MAX_EXACT).saturating_sub(self.sum(spec, now));
        if amount.min(room) > 0 {
            self.take(spec, now, amount.min(room), None);
        }
        amount.min(room)
    }

    fn debt(&self, spec: &LimitSpec, now: u64) -> u64 {
        self.sum(spec, now).saturating_sub(spec.count)
    }

    fn used(&self, spec: &LimitSpec, now: u64) -> u64 {
        self.sum(spec, now).min(spec.count)
    }

    fn reset_after(&self, spec: &LimitSpec, now: u64) -> u64 {
        let newest = self.inside(spec.counted_us(), now).next_back();
        newest.map_or(0, |(at, _)| at + spec.counted_us() - now)
    }
}
