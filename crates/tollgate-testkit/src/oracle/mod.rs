//! Every algorithm once more, as its definition reads: takes kept one by one, fractions kept exact,
//! waits found by trying. Slow, and written apart from the library on purpose.

mod bucket;
mod calendar;
mod concurrency;
mod counter;
mod fixed;
mod log;

use crate::answer::{Answer, Operation, VerdictKind};
use crate::spec::{Kind, LimitSpec};

/// The longest pause that is obeyed, in microseconds.
const LONGEST_PAUSE: u64 = 36_525 * 86_400 * 1_000_000;

/// What an oracle knows of a key under one algorithm.
trait Model: Clone {
    /// Brings the key to `now` under these numbers, and tells whether that must be kept even when
    /// nothing is taken.
    fn settle(&mut self, spec: &LimitSpec, now: u64) -> bool;
    /// Whether a settled key has room for `cost`.
    fn has_room(&self, spec: &LimitSpec, now: u64, cost: u64) -> bool;
    /// Takes, for a permit where there are slots.
    fn take(&mut self, spec: &LimitSpec, now: u64, cost: u64, permit: Option<u64>);
    /// Gives back, and tells whether there was anything to give back to.
    fn refund(&mut self, spec: &LimitSpec, now: u64, cost: u64) -> bool;
    /// Takes without asking, and tells whether that had any effect.
    fn debit(&mut self, spec: &LimitSpec, now: u64, cost: u64, age: u64) -> bool;
    /// What a settled key has used, at most the capacity.
    fn used(&self, spec: &LimitSpec, now: u64) -> u64;
    /// When a settled key is as if never seen.
    fn reset_after(&self, spec: &LimitSpec, now: u64) -> u64;
    /// How long a settled key may have to wait for `cost`: where to begin trying.
    fn guess_wait(&self, _: &LimitSpec, _: u64, _: u64) -> u64 {
        1
    }
}

/// One key, whatever its algorithm.
#[derive(Debug, Clone, Default)]
pub struct Oracle {
    bucket: bucket::Bucket,
    log: log::Log,
    counter: counter::Counter,
    fixed: fixed::Fixed,
    calendar: calendar::Aligned,
    slots: concurrency::Slots,
    pause: Option<Pause>,
}

#[derive(Debug, Clone, Copy)]
struct Pause {
    since: u64,
    until: u64,
}

impl Oracle {
    /// A key that was never seen.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// What a store must answer.
    pub fn apply(&mut self, spec: &LimitSpec, now: u64, ask: Operation) -> Answer {
        if ask == Operation::Reset {
            *self = Self::new();
        }
        let mut paused_for = self.pause_left(now);
        if let Operation::Pause { length_us } = ask {
            paused_for = paused_for.max(length_us.min(LONGEST_PAUSE));
            self.pause = Some(Pause { since: now, until: now + paused_for });
        }
        match ask {
            Operation::Release { permit } => {
                let is_last = self.slots.release(now, permit);
                if is_last && paused_for == 0 {
                    *self = Self::new();
                }
            }
            Operation::Renew { permit } => self.slots.renew(now, permit),
            _ => {}
        }
        let asked = match ask {
            Operation::Take { cost } | Operation::Hold { cost, .. } if paused_for > 0 => {
                Operation::Peek { cost }
            }
            Operation::Reset
            | Operation::Pause { .. }
            | Operation::Release { .. }
            | Operation::Renew { .. } => Operation::Peek { cost: 0 },
            other => other,
        };
        let mut answer = match spec.algorithm {
            Kind::TokenBucket => answer(&mut self.bucket, spec, now, asked),
            Kind::SlidingWindow => answer(&mut self.log, spec, now, asked),
            Kind::SlidingCounter => answer(&mut self.counter, spec, now, asked),
            Kind::FixedWindow => answer(&mut self.fixed, spec, now, asked),
            Kind::CalendarWindow => answer(&mut self.calendar, spec, now, asked),
            Kind::Concurrency => answer(&mut self.slots, spec, now, asked),
        };
        let takes =
            matches!(ask, Operation::Take { cost: 1.. } | Operation::Hold { cost: 1.., .. });
        if paused_for == 0 && takes && answer.is_allowed() {
            self.pause = None;
        }
        if paused_for > 0 {
            if matches!(asked, Operation::Peek { cost: 1.. })
                && answer.verdict != VerdictKind::Never
            {
                answer.verdict = VerdictKind::Deny;
                answer.retry_after_us = answer.retry_after_us.max(Some(paused_for));
            }
            (answer.count, answer.remaining) = (spec.capacity(), 0);
            answer.reset_after_us = answer.reset_after_us.max(paused_for);
        }
        answer
    }

    fn pause_left(&mut self, now: u64) -> u64 {
        let Some(pause) = &mut self.pause else { return 0 };
        if pause.since > now {
            *pause = Pause { since: now, until: now + (pause.until - pause.since) };
        }
        pause.until.saturating_sub(now)
    }
}

fn answer<M: Model>(model: &mut M, spec: &LimitSpec, now: u64, ask: Operation) -> Answer {
    let mut settled = model.clone();
    let must_keep = settled.settle(spec, now);
    if must_keep {
        model.clone_from(&settled);
    }
    let (verdict, retry_after_us) = match ask {
        Operation::Take { cost } | Operation::Hold { cost, .. } | Operation::Peek { cost } => {
            verdict(&settled, spec, now, cost)
        }
        _ => (VerdictKind::Allow, None),
    };
    let changed = match ask {
        Operation::Take { cost } if verdict == VerdictKind::Allow && cost > 0 => {
            settled.take(spec, now, cost, None);
            true
        }
        Operation::Hold { cost, permit } if verdict == VerdictKind::Allow && cost > 0 => {
            settled.take(spec, now, cost, Some(permit));
            true
        }
        Operation::Refund { cost } => settled.refund(spec, now, cost),
        Operation::Debit { cost, age_us } => settled.debit(spec, now, cost, age_us),
        _ => false,
    };
    let count = settled.used(spec, now);
    let reset_after_us = settled.reset_after(spec, now);
    if changed {
        *model = settled;
    }
    Answer { verdict, retry_after_us, count, remaining: spec.capacity() - count, reset_after_us }
}

fn verdict<M: Model>(
    settled: &M,
    spec: &LimitSpec,
    now: u64,
    cost: u64,
) -> (VerdictKind, Option<u64>) {
    if cost > spec.capacity() {
        return (VerdictKind::Never, None);
    }
    if cost == 0 || settled.has_room(spec, now, cost) {
        return (VerdictKind::Allow, None);
    }
    (VerdictKind::Deny, Some(first_wait(settled, spec, now, cost)))
}

/// The shortest wait after which there is room: found by trying, not by a formula.
fn first_wait<M: Model>(model: &M, spec: &LimitSpec, now: u64, cost: u64) -> u64 {
    let has_room_after = |wait: u64| {
        let mut later = model.clone();
        later.settle(spec, now + wait);
        later.has_room(spec, now + wait, cost)
    };
    let guess = model.guess_wait(spec, now, cost);
    if guess > 1 && has_room_after(guess) && !has_room_after(guess - 1) {
        return guess;
    }
    let mut enough = 1;
    while !has_room_after(enough) {
        enough *= 2;
    }
    let mut too_short = enough / 2;
    while enough - too_short > 1 {
        let middle = too_short + (enough - too_short) / 2;
        if has_room_after(middle) {
            enough = middle;
        } else {
            too_short = middle;
        }
    }
    enough
}
