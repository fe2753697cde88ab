//! Calendar window.

use std::ops::Range;

use tollgate::Timestamp;
use tollgate::algorithm::Calendar;

use super::reservation::Taken;
use super::{Holder, MAX_EXACT, Model};
use crate::spec::{Align, LimitSpec};

#[derive(Debug, Clone, Default)]
pub(super) struct Aligned {
    last: u64,
    used: u64,
    end: u64,
    calendar: Option<(LimitSpec, Calendar)>,
}

impl Aligned {
    /// Uses the library's calendar, which has its own tests with known dates.
    fn window(&mut self, spec: &LimitSpec, now: u64) -> Range<u64> {
        if self.calendar.as_ref().is_none_or(|(of, _)| of != spec) {
            let unit = spec.align.unwrap_or(Align::Minute).unit();
            let calendar = Calendar::new(unit, spec.zone.as_deref().unwrap_or("UTC"));
            self.calendar = calendar.ok().map(|calendar| (spec.clone(), calendar));
        }
        self.calendar.as_ref().map_or(now..now + 1, |(_, calendar)| {
            let window = calendar.window(Timestamp::from_micros(now));
            window.start.as_micros()..window.end.as_micros()
        })
    }
}

impl Aligned {
    fn change(&mut self, at: u64, used: u64) -> bool {
        let changed = used != self.used;
        if changed {
            let last = if self.used == 0 { at } else { self.last.max(at) };
            (self.last, self.used) = (last, used);
        }
        changed
    }
}

impl Model for Aligned {
    fn settle(&mut self, spec: &LimitSpec, now: u64) -> bool {
        let window = self.window(spec, now);
        let ahead = self.last > now;
        let still_counts = ahead || (self.end > now && self.last >= window.start);
        if !still_counts {
            self.used = 0;
        }
        self.last = self.last.min(now);
        let is_new_window = self.end != window.end;
        self.end = window.end;
        self.used > 0 && (ahead || is_new_window)
    }

    fn has_room(&self, spec: &LimitSpec, _: u64, cost: u64) -> bool {
        self.used + cost <= spec.count
    }

    fn take(&mut self, _: &LimitSpec, now: u64, cost: u64, _: Option<Holder>) {
        (self.last, self.used) = (now, self.used + cost);
    }

    fn refund(&mut self, _: &LimitSpec, now: u64, cost: u64) -> bool {
        self.change(now, self.used.saturating_sub(cost))
    }

    fn debit(&mut self, spec: &LimitSpec, now: u64, cost: u64, age: u64) -> bool {
        let used = self.used.max(spec.count.min(self.used.saturating_add(cost)));
        age <= now - self.window(spec, now).start && self.change(now - age, used)
    }

    fn give_back(&mut self, spec: &LimitSpec, now: u64, amount: u64, taken: &Taken) -> u64 {
        if taken.at < self.window(spec, now).start {
            return 0;
        }
        let amount = amount.min(self.used);
        self.change(now, self.used - amount);
        amount
    }

    fn overdraw(&mut self, spec: &LimitSpec, now: u64, amount: u64) -> u64 {
        let amount = amount.min((2 * spec.count).min(MAX_EXACT).saturating_sub(self.used));
        self.change(now, self.used + amount);
        amount
    }

    fn debt(&self, spec: &LimitSpec, _: u64) -> u64 {
        self.used.saturating_sub(spec.count)
    }

    fn used(&self, spec: &LimitSpec, _: u64) -> u64 {
        self.used.min(spec.count)
    }

    fn reset_after(&self, _: &LimitSpec, now: u64) -> u64 {
        if self.used > 0 { self.end - now } else { 0 }
    }
}
