//! Fixed window that opens with its first take.

use super::reservation::Taken;
use super::{Holder, MAX_EXACT, Model};
use crate::spec::LimitSpec;

#[derive(Debug, Clone, Default)]
pub(super) struct Fixed {
    open: Option<Open>,
}

#[derive(Debug, Clone, Copy)]
struct Open {
    since: u64,
    last: u64,
    used: u64,
    window: u64,
}

impl Fixed {
    fn sum(&self) -> u64 {
        self.open.map_or(0, |open| open.used)
    }

    fn set(&mut self, spec: &LimitSpec, at: u64, used: u64) -> bool {
        if used == self.sum() {
            return false;
        }
        let open =
            self.open.unwrap_or(Open { since: at, last: at, used: 0, window: spec.window_us });
        self.open = (used > 0).then_some(Open { last: open.last.max(at), used, ..open });
        true
    }
}

impl Model for Fixed {
    fn settle(&mut self, spec: &LimitSpec, now: u64) -> bool {
        let Some(mut open) = self.open else { return false };
        let ahead = open.last > now;
        open.last = open.last.min(now);
        open.since = open.since.min(now);
        let changed = open.window != spec.window_us;
        let expired = open.since + open.window <= now;
        open.window = spec.window_us;
        if open.since + open.window <= now {
            open.since = open.last;
        }
        let closed = expired || open.since + open.window <= now;
        self.open = (!closed).then_some(open);
        self.open.is_some() && (ahead || changed)
    }

    fn has_room(&self, spec: &LimitSpec, _: u64, cost: u64) -> bool {
        self.sum() + cost <= spec.count
    }

    fn take(&mut self, spec: &LimitSpec, now: u64, cost: u64, _: Option<Holder>) {
        self.set(spec, now, self.sum() + cost);
    }

    fn refund(&mut self, spec: &LimitSpec, now: u64, cost: u64) -> bool {
        self.set(spec, now, self.sum().saturating_sub(cost))
    }

    fn debit(&mut self, spec: &LimitSpec, now: u64, cost: u64, age: u64) -> bool {
        let used = self.sum().max(spec.count.min(self.sum().saturating_add(cost)));
        age < spec.window_us && age <= now && self.set(spec, now - age, used)
    }

    fn give_back(&mut self, spec: &LimitSpec, now: u64, amount: u64, taken: &Taken) -> u64 {
        if self.open.is_none_or(|open| taken.at < open.since) {
            return 0;
        }
        let amount = amount.min(self.sum());
        self.set(spec, now, self.sum() - amount);
        amount
    }

    fn overdraw(&mut self, spec: &LimitSpec, now: u64, amount: u64) -> u64 {
        let amount = amount.min((2 * spec.count).min(MAX_EXACT).saturating_sub(self.sum()));
        self.set(spec, now, self.sum() + amount);
        amount
    }

    fn debt(&self, spec: &LimitSpec, _: u64) -> u64 {
        self.sum().saturating_sub(spec.count)
    }

    fn used(&self, spec: &LimitSpec, _: u64) -> u64 {
        self.sum().min(spec.count)
    }

    fn reset_after(&self, _: &LimitSpec, now: u64) -> u64 {
        self.open.map_or(0, |open| open.since + open.window - now)
    }
}
