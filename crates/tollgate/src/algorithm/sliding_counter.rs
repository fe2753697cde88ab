//! Sliding counter: two counters, the previous one weighted by its overlap with the sliding window.
//!
//! Windows are aligned to the clock. The estimate assumes that the previous window's takes were evenly
//! distributed, and rounds up. In return, the memory of a key does not depend on the count.

use super::adjustment::{Adjustment, Change};
use super::arithmetic::debited;
use super::saved::Saved;
use super::{Op, Reply, Wait};
use crate::fields::{Fields, put_longs};
use crate::quota::{Quota, QuotaError, QuotaErrorKind};
use crate::time::{MAX_EXACT, saturating_micros};

/// Parameters of a sliding counter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlidingCounter {
    count: u64,
    length: u64,
    tick: u64,
    ticks: u64,
}

/// Two counters of one key: `current` for the window that contains `last`, `previous` for the window
/// before it.
///
/// The state stores the time of the last take, not the window start. If the window length changes, the
/// last take shows which window the count belongs to, so that nodes with old and new parameters neither
/// drop the count nor keep it forever.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counter {
    last: u64,
    length: u64,
    previous: u64,
    current: u64,
}

/// Counts clamped to the limit and its largest debt, and the time since the window start: whole ticks and a rest in microseconds.
struct View {
    previous: u64,
    current: u64,
    elapsed: u64,
    fraction: u64,
}

impl SlidingCounter {
    pub(crate) fn new(quota: &Quota) -> Result<Self, QuotaError> {
        let (count, length) = (quota.count(), quota.period_micros());
        let mut tick = 1;
        // The smallest power of ten that keeps count·ticks within 2^53.
        while u128::from(count) * u128::from(length / tick) > u128::from(MAX_EXACT) {
            tick *= 10;
            if !length.is_multiple_of(tick) {
                return Err(QuotaError::built(
                    QuotaErrorKind::Precision,
                    format!(
                        "the weighted sum of a sliding counter of {count}/{:?} exceeds 2^53; lower \
                         the count or choose a rounder period",
                        quota.period(),
                    ),
                ));
            }
        }
        Ok(Self { count, length, tick, ticks: length / tick })
    }

    /// Maximum sum of costs per window, by the weighted estimate.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Resolution of the weight in microseconds: 1, or a higher power of ten if count × window exceeds 2^53.
    #[must_use]
    pub fn tick(&self) -> u64 {
        self.tick
    }

    #[inline(never)]
    pub(super) fn step(&self, state: &mut Counter, now: u64, op: Op) -> Reply {
        let (settled, repaired) = self.settle(*state, now);
        let mut counter = settled.rolled(now);
        let before = counter;
        let mut wait = Wait::NONE;
        match op {
            Op::Take { cost } | Op::Hold { cost, .. } | Op::Lease { amount: cost, .. } => {
                wait = self.wait(&self.view(&counter, now), cost);
                if wait == Wait::NONE {
                    counter.current += cost;
                }
            }
            Op::Peek { cost } => wait = self.wait(&self.view(&counter, now), cost),
            Op::Refund { cost } => counter.refund(cost),
            Op::Debit { cost, age } => self.debit(&mut counter, now, cost, saturating_micros(age)),
        }
        if counter != before {
            *state = counter;
        } else if repaired {
            *state = settled;
        }
        self.reply(wait, &counter, now)
    }

    pub(super) fn adjust(&self, state: &mut Counter, now: u64, adjustment: Adjustment) -> Change {
        let (settled, repaired) = self.settle(*state, now);
        let mut counter = settled.rolled(now);
        let before = counter;
        let change = match adjustment {
            Adjustment::GiveBack { amount, age, .. } => {
                self.give_back(&mut counter, now, amount, saturating_micros(age))
            }
            Adjustment::Overdraw { amount } => {
                // Both windows count: each can have excess.
                let used = self.used(&self.view(&counter, now));
                let amount = amount.min(self.max_used().saturating_sub(used));
                counter.current += amount;
                Change::of(amount)
            }
        };
        if counter != before {
            *state = counter;
        } else if repaired {
            *state = settled;
        }
        change
    }

    /// Returns up to `cost` to the window of a take of this age.
    fn give_back(&self, counter: &mut Counter, now: u64, cost: u64, age: u64) -> Change {
        let into = now % self.length;
        let window = match age {
            _ if age <= into => &mut counter.current,
            _ if age <= into.saturating_add(self.length) => &mut counter.previous,
            _ => return Change::default(),
        };
        let amount = cost.min(*window);
        *window -= amount;
        Change::of(amount)
    }

    /// Largest count of one window: the limit and a debt of another one, within the exact numbers.
    const fn max_used(&self) -> u64 {
        let (doubled, exact) = (self.count.saturating_mul(2), MAX_EXACT / self.ticks);
        if doubled < exact { doubled } else { exact }
    }

    /// Returns the weighted estimate, rounded up.
    const fn used(&self, view: &View) -> u64 {
        view.current + (view.previous * (self.ticks - view.elapsed)).div_ceil(self.ticks)
    }

    /// Returns the counters under these parameters, and whether they must be stored (a repair).
    fn settle(&self, mut counter: Counter, now: u64) -> (Counter, bool) {
        let ahead = counter.last > now;
        if ahead {
            if counter.start() > now {
                counter.merge();
            }
            counter.last = now;
        }
        let renumbered = counter.length != self.length;
        if renumbered {
            counter.clear_expired(now);
            let old_start = counter.start();
            counter.length = self.length;
            let start = counter.start();
            if old_start > start {
                // The old windows were shorter: the previous one may be inside the current one.
                counter.merge();
            } else if old_start + self.length <= start {
                counter.previous = 0;
            }
        }
        (counter, counter.is_used() && (ahead || renumbered))
    }

    fn view(&self, counter: &Counter, now: u64) -> View {
        let into = now % self.length;
        View {
            previous: counter.previous.min(self.max_used()),
            current: counter.current.min(self.max_used()),
            elapsed: into / self.tick,
            fraction: into % self.tick,
        }
    }

    fn wait(&self, view: &View, cost: u64) -> Wait {
        if cost > self.count {
            return Wait::FOREVER;
        }
        if cost == 0 {
            return Wait::NONE;
        }
        let weighted = view.previous * (self.ticks - view.elapsed);
        let wait = match (self.count - cost).checked_sub(view.current) {
            Some(room) if weighted <= room * self.ticks => return Wait::NONE,
            // Quota becomes free as the weight of the previous window falls.
            Some(room) => (weighted - room * self.ticks).div_ceil(view.previous),
            // Not within this window: its own weight must fall, after it has become the previous one.
            None => {
                let over = view.current - (self.count - cost);
                (self.ticks - view.elapsed) + (over * self.ticks).div_ceil(view.current)
            }
        };
        Wait(wait * self.tick - view.fraction)
    }

    fn debit(&self, counter: &mut Counter, now: u64, cost: u64, age: u64) {
        let into = now % self.length;
        if age <= into {
            counter.current = debited(counter.current, cost, self.count);
        } else if age <= into.saturating_add(self.length) {
            counter.previous = debited(counter.previous, cost, self.count);
        }
    }

    fn reply(&self, wait: Wait, counter: &Counter, now: u64) -> Reply {
        let view = self.view(counter, now);
        let used = self.used(&view);
        let left = self.length - now % self.length;
        let reset_after = match (counter.previous, counter.current) {
            (0, 0) => 0,
            (_, 0) => left,
            _ => left + self.length,
        };
        let (remaining, debt) = (self.count.saturating_sub(used), used.saturating_sub(self.count));
        Reply { wait, remaining, debt, reset_after }
    }
}

impl Counter {
    /// Returns the start of the current window.
    fn start(&self) -> u64 {
        self.last - self.last.checked_rem(self.length).unwrap_or(0)
    }

    fn is_used(&self) -> bool {
        self.previous > 0 || self.current > 0
    }

    fn merge(&mut self) {
        self.current = MAX_EXACT.min(self.current + self.previous);
        self.previous = 0;
    }

    /// Clears the counts that have expired under the stored window length.
    fn clear_expired(&mut self, now: u64) {
        if self.start() + self.length <= now {
            self.previous = 0;
        }
        if self.start() + 2 * self.length <= now {
            self.current = 0;
        }
    }

    /// Returns the counters shifted to the window that contains `now`.
    fn rolled(mut self, now: u64) -> Self {
        self.clear_expired(now);
        if self.start() + self.length <= now {
            (self.previous, self.current) = (self.current, 0);
        }
        self.last = now;
        self
    }

    fn refund(&mut self, cost: u64) {
        let recent = cost.min(self.current);
        self.current -= recent;
        self.previous = self.previous.saturating_sub(cost - recent);
    }

    pub(super) fn is_fresh(&self, now: u64) -> bool {
        let mut left = *self;
        left.clear_expired(now);
        !left.is_used()
    }
}

impl Saved for Counter {
    fn save(&self, out: &mut Vec<u8>) {
        put_longs(out, [self.last, self.length, self.previous, self.current]);
    }

    fn load(fields: &mut Fields<'_>) -> Option<Self> {
        let (last, length) = (fields.timestamp()?, fields.length()?);
        let counter = Self { last, length, previous: fields.exact()?, current: fields.exact()? };
        (length > 0 || !counter.is_used()).then_some(counter)
    }
}
