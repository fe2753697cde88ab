//! Sliding counter: counts per window, and a weighted estimate in exact fractions.

use std::collections::BTreeMap;

use num_bigint::BigInt;
use num_rational::BigRational;
use num_traits::ToPrimitive;

use super::reservation::Taken;
use super::{Holder, Model};
use crate::spec::LimitSpec;

/// Used count by window number. Only the two newest windows are stored.
#[derive(Debug, Clone, Default)]
pub(super) struct Counter {
    window: u64,
    last: u64,
    takes: BTreeMap<u64, u64>,
}

fn ratio(n: u64) -> BigRational {
    BigRational::from_integer(BigInt::from(n))
}

/// Returns the resolution of the weight in microseconds: the smallest power of ten with which the weighted
/// sum is at most 2^53.
fn step(spec: &LimitSpec) -> u64 {
    let mut step = 1;
    while u128::from(spec.count) * u128::from(spec.window_us / step) > 1 << 53 {
        step *= 10;
    }
    step
}

/// Returns the largest count of a window: the limit and a debt of another one, within the exact numbers.
fn max_used(spec: &LimitSpec) -> u64 {
    let ticks = spec.window_us / step(spec);
    spec.count.saturating_mul(2).min((1 << 53) / ticks)
}

/// Returns the number of the window that contains `now`, counted from 1 so that each has a previous one.
fn number(window: u64, now: u64) -> u64 {
    now / window + 1
}

impl Counter {
    fn of_window(&self, number: u64) -> u64 {
        self.takes.get(&number).copied().unwrap_or(0)
    }

    /// Returns the counts of the previous and the current window.
    fn counts(&self, window: u64, now: u64) -> (u64, u64) {
        let number = number(window, now);
        (self.of_window(number - 1), self.of_window(number))
    }

    fn estimate(&self, spec: &LimitSpec, now: u64) -> BigRational {
        let (previous, current) = self.counts(spec.window_us, now);
        let step = step(spec);
        let faded = now % spec.window_us / step * step;
        let weight = ratio(spec.window_us - faded) / ratio(spec.window_us);
        let most = max_used(spec);
        ratio(current.min(most)) + ratio(previous.min(most)) * weight
    }

    /// Returns the estimate, rounded up.
    fn estimated(&self, spec: &LimitSpec, now: u64) -> u64 {
        self.estimate(spec, now).ceil().to_integer().to_u64().unwrap_or(u64::MAX)
    }

    /// Drops all but the two newest windows at `now`.
    fn drop_expired(&mut self, window: u64, now: u64) {
        let number = number(window, now);
        self.takes.retain(|window, count| *window + 1 >= number && *count > 0);
        self.last = now;
    }

    fn put(&mut self, current: u64, previous: u64) {
        let number = number(self.window, self.last);
        self.takes = BTreeMap::from([(number, current), (number - 1, previous)]);
        self.takes.retain(|_, count| *count > 0);
    }

    fn change(&mut self, spec: &LimitSpec, now: u64, previous: u64, current: u64) -> bool {
        let changed = (previous, current) != self.counts(spec.window_us, now);
        if changed {
            self.drop_expired(spec.window_us, now);
            self.put(current, previous);
        }
        changed
    }

    /// Converts the counts to another window length; the last take shows which window they belong to.
    fn change_length(&mut self, window: u64, now: u64) {
        let old = self.window;
        self.takes.retain(|number, _| (number + 1) * old > now);
        let (previous, current) = self.counts(old, self.last);
        let (old_start, start) = (self.last / old * old, self.last / window * window);
        self.window = window;
        if old_start > start {
            self.put(current + previous, 0);
        } else if old_start + window <= start {
            self.put(current, 0);
        } else {
            self.put(current, previous);
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
        let changed = self.window != spec.window_us;
        if changed {
            self.change_length(spec.window_us, now);
        }
        !self.takes.is_empty() && (ahead || changed)
    }

    fn has_room(&self, spec: &LimitSpec, now: u64, cost: u64) -> bool {
        self.estimate(spec, now) + ratio(cost) <= ratio(spec.count)
    }

    fn take(&mut self, spec: &LimitSpec, now: u64, cost: u64, _: Option<Holder>) {
        self.drop_expired(spec.window_us, now);
        *self.takes.entry(number(spec.window_us, now)).or_default() += cost;
    }

    fn refund(&mut self, spec: &LimitSpec, now: u64, cost: u64) -> bool {
        let (previous, current) = self.counts(spec.window_us, now);
        self.change(
            spec,
            now,
            previous - previous.min(cost.saturating_sub(current)),
            current.saturating_sub(cost),
        )
    }

    fn debit(&mut self, spec: &LimitSpec, now: u64, cost: u64, age: u64) -> bool {
        let (previous, current) = self.counts(spec.window_us, now);
        let into = now % spec.window_us;
        let clamped = |count: u64| count.max(spec.count.min(count.saturating_add(cost)));
        let (current, previous) = if age <= into {
            (clamped(current), previous)
        } else if age - into <= spec.window_us {
            (current, clamped(previous))
        } else {
            (current, previous)
        };
        self.change(spec, now, previous, current)
    }

    /// Reduces the window of the take.
    fn give_back(&mut self, spec: &LimitSpec, now: u64, amount: u64, taken: &Taken) -> u64 {
        let (previous, current) = self.counts(spec.window_us, now);
        let windows_since = number(spec.window_us, now) - number(spec.window_us, taken.at);
        let returned = match windows_since {
            0 => amount.min(current),
            1 => amount.min(previous),
            _ => 0,
        };
        if windows_since == 0 {
            self.change(spec, now, previous, current - returned);
        } else {
            self.change(spec, now, previous - returned, current);
        }
        returned
    }

    /// The estimate is at most that of a debt of one limit.
    fn overdraw(&mut self, spec: &LimitSpec, now: u64, amount: u64) -> u64 {
        let (previous, current) = self.counts(spec.window_us, now);
        let room = max_used(spec).saturating_sub(self.estimated(spec, now));
        self.change(spec, now, previous, current + amount.min(room));
        amount.min(room)
    }

    fn debt(&self, spec: &LimitSpec, now: u64) -> u64 {
        self.estimated(spec, now).saturating_sub(spec.count)
    }

    fn used(&self, spec: &LimitSpec, now: u64) -> u64 {
        self.estimated(spec, now).min(spec.count)
    }

    fn reset_after(&self, spec: &LimitSpec, now: u64) -> u64 {
        let end = now / spec.window_us * spec.window_us + spec.window_us;
        match self.counts(spec.window_us, now) {
            (0, 0) => 0,
            (_, 0) => end - now,
            _ => end + spec.window_us - now,
        }
    }

    /// Exact if the resolution of the weight is one microsecond.
    fn guess_wait(&self, spec: &LimitSpec, now: u64, cost: u64) -> u64 {
        let (previous, current) = self.counts(spec.window_us, now);
        let (window, into) = (spec.window_us, now % spec.window_us);
        let faded = |room: u64, count: u64| {
            let remaining = u128::from(room) * u128::from(window) / u128::from(count.max(1));
            window.saturating_sub(u64::try_from(remaining).unwrap_or(window))
        };
        match (spec.count - cost).checked_sub(current) {
            Some(room) => faded(room, previous.min(max_used(spec))).saturating_sub(into),
            None => window - into + faded(spec.count - cost, current.min(max_used(spec))),
        }
    }
}
