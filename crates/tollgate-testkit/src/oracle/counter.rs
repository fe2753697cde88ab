//! A sliding counter: counts by window, and a weighted estimate in exact fractions.

use std::collections::BTreeMap;

use num_bigint::BigInt;
use num_rational::BigRational;
use num_traits::ToPrimitive;

use super::Model;
use crate::spec::LimitSpec;

/// Takes by the number of their window. Only the two newest windows are ever kept.
#[derive(Debug, Clone, Default)]
pub(super) struct Counter {
    window: u64,
    last: u64,
    takes: BTreeMap<u64, u64>,
}

fn whole(n: u64) -> BigRational {
    BigRational::from_integer(BigInt::from(n))
}

/// The weight fades in steps of this many microseconds: the finest power of ten in which the
/// weighted sum stays below 2^53.
fn step(spec: &LimitSpec) -> u64 {
    let mut step = 1;
    while u128::from(spec.count) * u128::from(spec.window_us / step) > 1 << 53 {
        step *= 10;
    }
    step
}

/// Windows are numbered from 1, so that there is one before the first.
fn number(window: u64, now: u64) -> u64 {
    now / window + 1
}

impl Counter {
    fn of_window(&self, number: u64) -> u64 {
        self.takes.get(&number).copied().unwrap_or(0)
    }

    /// The counts of the window before and of this one.
    fn counts(&self, window: u64, now: u64) -> (u64, u64) {
        let number = number(window, now);
        (self.of_window(number - 1), self.of_window(number))
    }

    fn estimate(&self, spec: &LimitSpec, now: u64) -> BigRational {
        let (before, here) = self.counts(spec.window_us, now);
        let step = step(spec);
        let faded = now % spec.window_us / step * step;
        let weight = whole(spec.window_us - faded) / whole(spec.window_us);
        whole(here.min(spec.count)) + whole(before.min(spec.count)) * weight
    }

    /// Keeps what the two newest windows hold as seen from `now`.
    fn keep(&mut self, window: u64, now: u64) {
        let number = number(window, now);
        self.takes.retain(|other, count| *other + 1 >= number && *count > 0);
        self.last = now;
    }

    fn put(&mut self, here: u64, before: u64) {
        let number = number(self.window, self.last);
        self.takes = BTreeMap::from([(number, here), (number - 1, before)]);
        self.takes.retain(|_, count| *count > 0);
    }

    fn change(&mut self, spec: &LimitSpec, now: u64, before: u64, here: u64) -> bool {
        let changed = (before, here) != self.counts(spec.window_us, now);
        if changed {
            self.keep(spec.window_us, now);
            self.put(here, before);
        }
        changed
    }

    /// Reads the counts under another length: the last take tells which window they belong to.
    fn relength(&mut self, window: u64, now: u64) {
        let old = self.window;
        self.takes.retain(|number, _| (number + 1) * old > now);
        let (before, here) = self.counts(old, self.last);
        let (old_start, start) = (self.last / old * old, self.last / window * window);
        self.window = window;
        if old_start > start {
            self.put(here + before, 0);
        } else if old_start + window <= start {
            self.put(here, 0);
        } else {
            self.put(here, before);
        }
    }
}

impl Model for Counter {
    fn settle(&mut self, spec: &LimitSpec, now: u64) -> bool {
        if self.takes.is_empty() {
            (self.window, self.last) = (spec.window_us, now);
            return false;
        }
        let ahead = self.last > now;
        if ahead {
            let sum = self.takes.values().sum();
            let crossed = self.last / self.window * self.window > now;
            self.last = now;
            if crossed {
                self.put(sum, 0);
            }
        }
        let renumbered = self.window != spec.window_us;
        if renumbered {
            self.relength(spec.window_us, now);
        }
        !self.takes.is_empty() && (ahead || renumbered)
    }

    fn has_room(&self, spec: &LimitSpec, now: u64, cost: u64) -> bool {
        self.estimate(spec, now) + whole(cost) <= whole(spec.count)
    }

    fn take(&mut self, spec: &LimitSpec, now: u64, cost: u64, _: Option<u64>) {
        self.keep(spec.window_us, now);
        *self.takes.entry(number(spec.window_us, now)).or_default() += cost;
    }

    fn refund(&mut self, spec: &LimitSpec, now: u64, cost: u64) -> bool {
        let (before, here) = self.counts(spec.window_us, now);
        self.change(
            spec,
            now,
            before - before.min(cost.saturating_sub(here)),
            here.saturating_sub(cost),
        )
    }

    fn debit(&mut self, spec: &LimitSpec, now: u64, cost: u64, age: u64) -> bool {
        let (before, here) = self.counts(spec.window_us, now);
        let into = now % spec.window_us;
        let clamped = |count: u64| count.max(spec.count.min(count.saturating_add(cost)));
        let (here, before) = if age <= into {
            (clamped(here), before)
        } else if age - into <= spec.window_us {
            (here, clamped(before))
        } else {
            (here, before)
        };
        self.change(spec, now, before, here)
    }

    fn used(&self, spec: &LimitSpec, now: u64) -> u64 {
        let estimate = self.estimate(spec, now).ceil().to_integer().to_u64();
        estimate.unwrap_or(u64::MAX).min(spec.count)
    }

    fn reset_after(&self, spec: &LimitSpec, now: u64) -> u64 {
        let end = now / spec.window_us * spec.window_us + spec.window_us;
        match self.counts(spec.window_us, now) {
            (0, 0) => 0,
            (_, 0) => end - now,
            _ => end + spec.window_us - now,
        }
    }
    /// Where steps are of a microsecond.
    fn guess_wait(&self, spec: &LimitSpec, now: u64, cost: u64) -> u64 {
        let (before, here) = self.counts(spec.window_us, now);
        let (window, into) = (spec.window_us, now % spec.window_us);
        let faded = |room: u64, count: u64| {
            let still = u128::from(room) * u128::from(window) / u128::from(count.max(1));
            window.saturating_sub(u64::try_from(still).unwrap_or(window))
        };
        match (spec.count - cost).checked_sub(here) {
            Some(room) => faded(room, before.min(spec.count)).saturating_sub(into),
            None => window - into + faded(spec.count - cost, here.min(spec.count)),
        }
    }
}
