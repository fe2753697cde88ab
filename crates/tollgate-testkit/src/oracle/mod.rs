//! Oracle: a second implementation of every algorithm that follows its definition. It stores every take,
//! uses exact fractions and finds waits by search. Slow, and independent of the library on purpose.

mod calendar;
mod concurrency;
mod fixed_window;
mod lease;
mod reservation;
mod sliding_counter;
mod sliding_window;
mod token_bucket;

use crate::answer::{Answer, Operation, VerdictKind};
use crate::spec::{Kind, LimitSpec};
use reservation::{Note, Reservation, Reservations, Settlement, Taken};

/// Maximum length of a pause in microseconds.
const MAX_PAUSE: u64 = 36_525 * 86_400 * 1_000_000;

/// Largest exact number.
const MAX_EXACT: u64 = 1 << 53;

/// The permit of slots, and the time in microseconds after which they expire.
#[derive(Debug, Clone, Copy)]
struct Holder {
    permit: u64,
    ttl: u64,
}

/// State of a key under one algorithm.
trait Model: Clone {
    /// Updates the key to `now` under this spec. Returns true if the result must be stored even if nothing
    /// is taken (a repair).
    fn settle(&mut self, spec: &LimitSpec, now: u64) -> bool;
    /// Returns true if a settled key has enough quota for `cost`.
    fn has_room(&self, spec: &LimitSpec, now: u64, cost: u64) -> bool;
    /// Takes `cost`; slots carry the permit.
    fn take(&mut self, spec: &LimitSpec, now: u64, cost: u64, holder: Option<Holder>);
    /// Returns how much of what remains can be leased for `hold` microseconds.
    fn leasable(&self, _: &LimitSpec, remaining: u64, _hold: u64) -> u64 {
        remaining
    }
    /// Takes an amount that is spent within `hold` microseconds.
    fn lease(&mut self, spec: &LimitSpec, now: u64, amount: u64, _hold: u64) {
        self.take(spec, now, amount, None);
    }
    /// Refunds `cost`. Returns true if that changed the state.
    fn refund(&mut self, spec: &LimitSpec, now: u64, cost: u64) -> bool;
    /// Debits `cost` unconditionally. Returns true if that changed the state.
    fn debit(&mut self, spec: &LimitSpec, now: u64, cost: u64, age: u64) -> bool;
    /// Returns what a reservation notes of its take, of a settled key.
    fn note(&self) -> Note {
        Note::default()
    }
    /// Gives back a part of an earlier take to a settled key, as far as it still counts. Returns the amount.
    fn give_back(&mut self, spec: &LimitSpec, now: u64, amount: u64, taken: &Taken) -> u64;
    /// Takes beyond the limit from a settled key, down to a debt of one further limit. Returns the amount.
    fn overdraw(&mut self, spec: &LimitSpec, now: u64, amount: u64) -> u64;
    /// Returns the used count of a settled key above the capacity.
    fn debt(&self, spec: &LimitSpec, now: u64) -> u64;
    /// Returns the used count of a settled key, at most the capacity.
    fn used(&self, spec: &LimitSpec, now: u64) -> u64;
    /// Returns the time in microseconds until a settled key is fresh.
    fn reset_after(&self, spec: &LimitSpec, now: u64) -> u64;
    /// Estimates the wait in microseconds of a settled key for `cost`, as the start of the search.
    fn guess_wait(&self, _: &LimitSpec, _: u64, _: u64) -> u64 {
        1
    }
}

/// Oracle for one key, with a state per algorithm.
#[derive(Debug, Clone, Default)]
pub struct Oracle {
    bucket: token_bucket::Bucket,
    log: sliding_window::Log,
    counter: sliding_counter::Counter,
    fixed: fixed_window::Fixed,
    calendar: calendar::Aligned,
    slots: concurrency::Slots,
    pause: Option<Pause>,
    reservations: Reservations,
}

#[derive(Debug, Clone, Copy)]
struct Pause {
    since: u64,
    until: u64,
}

impl Oracle {
    /// Creates the oracle of a key that was never used.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Applies an operation at `now` (microseconds) and returns the answer that every store must return.
    pub fn apply(&mut self, spec: &LimitSpec, now: u64, operation: Operation) -> Answer {
        if operation == Operation::Reset {
            *self = Self::new();
        }
        let mut paused_for = self.pause_left(now);
        if let Operation::Pause { length_us } = operation {
            paused_for = paused_for.max(length_us.min(MAX_PAUSE));
            self.pause = Some(Pause { since: now, until: now + paused_for });
        }
        let settlement = match operation {
            Operation::Settle { reservation, amount } => {
                self.settle(spec, now, (reservation, amount))
            }
            _ => None,
        };
        match operation {
            Operation::Release { permit } | Operation::Settle { reservation: permit, .. } => {
                self.release(now, permit, paused_for);
            }
            Operation::Renew { permit } | Operation::Extend { reservation: permit } => {
                self.slots.renew(now, permit);
            }
            _ => {}
        }
        let effective = self.effective(operation, paused_for);
        let mut answer = self.apply_effective(spec, now, effective);
        if let Some((settlement, is_repeated)) = settlement {
            answer.given_back = settlement.given_back;
            answer.uncollected = settlement.uncollected;
            answer.repeated = is_repeated;
        }
        let takes = matches!(
            operation,
            Operation::Take { cost: 1.. }
                | Operation::Hold { cost: 1.., .. }
                | Operation::Reserve { cost: 1.., .. }
                | Operation::Lease { cost: 1.., .. }
        );
        if paused_for == 0 && (takes || answer.granted > 0) && answer.is_allowed() {
            self.pause = None;
        }
        if paused_for > 0 {
            show_pause(spec, &mut answer, (effective, paused_for));
        }
        if let Operation::Reserve { cost, reservation, .. } = operation
            && answer.is_allowed()
        {
            self.remember(spec, now, (reservation, cost));
        }
        answer
    }

    /// Returns the operation that runs: a pause refuses takes, and some operations only have the figures after them.
    fn effective(&self, operation: Operation, paused_for: u64) -> Operation {
        match operation {
            Operation::Reserve { reservation, .. }
                if self.reservations.contains_key(&reservation) =>
            {
                Operation::Peek { cost: 0 }
            }
            Operation::Take { cost }
            | Operation::Hold { cost, .. }
            | Operation::Reserve { cost, .. }
            | Operation::Lease { cost, .. }
                if paused_for > 0 =>
            {
                Operation::Peek { cost }
            }
            Operation::Reset
            | Operation::Pause { .. }
            | Operation::Release { .. }
            | Operation::Renew { .. }
            | Operation::Settle { .. }
            | Operation::Extend { .. } => Operation::Peek { cost: 0 },
            operation => operation,
        }
    }

    fn apply_effective(&mut self, spec: &LimitSpec, now: u64, operation: Operation) -> Answer {
        match spec.algorithm {
            Kind::TokenBucket => apply_to(&mut self.bucket, spec, now, operation),
            Kind::SlidingWindow => apply_to(&mut self.log, spec, now, operation),
            Kind::SlidingCounter => apply_to(&mut self.counter, spec, now, operation),
            Kind::FixedWindow => apply_to(&mut self.fixed, spec, now, operation),
            Kind::CalendarWindow => apply_to(&mut self.calendar, spec, now, operation),
            Kind::Concurrency => apply_to(&mut self.slots, spec, now, operation),
        }
    }

    /// Releases the slots of a permit. A key without slots and pause is as one that was never used.
    fn release(&mut self, now: u64, permit: u64, paused_for: u64) {
        if self.slots.release(now, permit) && paused_for == 0 {
            let reservations = std::mem::take(&mut self.reservations);
            *self = Self { reservations, ..Self::new() };
        }
    }

    /// Records a reservation that was allowed, unless its number is in use.
    fn remember(&mut self, spec: &LimitSpec, now: u64, (number, cost): (u64, u64)) {
        let note = match spec.algorithm {
            Kind::TokenBucket => reservation::note(&self.bucket, spec, now),
            _ => Note::default(),
        };
        let taken = Taken { at: now, note };
        let new = Reservation { cost, taken, settlement: None };
        self.reservations.entry(number).or_insert(new);
    }

    /// Settles a reservation. Returns the first settlement, and whether it is an earlier one; `None` if there is no such
    /// reservation.
    fn settle(
        &mut self,
        spec: &LimitSpec,
        now: u64,
        (number, amount): (u64, u64),
    ) -> Option<(Settlement, bool)> {
        let mut known = self.reservations.get(&number)?.clone();
        if let Some(settlement) = known.settlement {
            return Some((settlement, true));
        }
        let change = (&known, amount);
        let settlement = match spec.algorithm {
            Kind::TokenBucket => reservation::settle(&mut self.bucket, spec, now, change),
            Kind::SlidingWindow => reservation::settle(&mut self.log, spec, now, change),
            Kind::SlidingCounter => reservation::settle(&mut self.counter, spec, now, change),
            Kind::FixedWindow => reservation::settle(&mut self.fixed, spec, now, change),
            Kind::CalendarWindow => reservation::settle(&mut self.calendar, spec, now, change),
            // Slots are released, and not counted.
            Kind::Concurrency => Settlement::default(),
        };
        known.settlement = Some(settlement);
        self.reservations.insert(number, known);
        Some((settlement, false))
    }

    fn pause_left(&mut self, now: u64) -> u64 {
        let Some(pause) = &mut self.pause else { return 0 };
        if pause.since > now {
            *pause = Pause { since: now, until: now + (pause.until - pause.since) };
        }
        pause.until.saturating_sub(now)
    }
}

/// Changes the answer of a key to that of a paused one.
fn show_pause(spec: &LimitSpec, answer: &mut Answer, (effective, paused_for): (Operation, u64)) {
    if matches!(effective, Operation::Peek { cost: 1.. }) && answer.verdict != VerdictKind::Never {
        answer.verdict = VerdictKind::Deny;
        answer.retry_after_us = answer.retry_after_us.max(Some(paused_for));
    }
    (answer.count, answer.remaining) = (spec.capacity(), 0);
    answer.reset_after_us = answer.reset_after_us.max(paused_for);
}

fn apply_to<M: Model>(model: &mut M, spec: &LimitSpec, now: u64, operation: Operation) -> Answer {
    if let Operation::Lease { cost, amount, hold_us } = operation {
        return lease::apply(model, spec, now, lease::Wanted { cost, amount, hold: hold_us });
    }
    let mut settled = model.clone();
    let is_repaired = settled.settle(spec, now);
    if is_repaired {
        model.clone_from(&settled);
    }
    let (verdict, retry_after_us) = match operation {
        Operation::Take { cost }
        | Operation::Hold { cost, .. }
        | Operation::Reserve { cost, .. }
        | Operation::Peek { cost } => verdict(&settled, spec, now, cost),
        _ => (VerdictKind::Allow, None),
    };
    let changed = match operation {
        Operation::Take { cost } if verdict == VerdictKind::Allow && cost > 0 => {
            settled.take(spec, now, cost, None);
            true
        }
        Operation::Hold { cost, permit } if verdict == VerdictKind::Allow && cost > 0 => {
            settled.take(spec, now, cost, Some(Holder { permit, ttl: spec.window_us }));
            true
        }
        Operation::Reserve { cost, reservation, ttl_us }
            if verdict == VerdictKind::Allow && cost > 0 =>
        {
            settled.take(spec, now, cost, Some(Holder { permit: reservation, ttl: ttl_us }));
            true
        }
        Operation::Refund { cost } => settled.refund(spec, now, cost),
        Operation::Debit { cost, age_us } => settled.debit(spec, now, cost, age_us),
        _ => false,
    };
    let count = settled.used(spec, now);
    let reset_after_us = settled.reset_after(spec, now);
    let debt = settled.debt(spec, now);
    if changed {
        *model = settled;
    }
    let remaining = spec.capacity() - count;
    Answer {
        verdict,
        retry_after_us,
        count,
        remaining,
        reset_after_us,
        granted: 0,
        debt,
        given_back: 0,
        uncollected: 0,
        repeated: false,
    }
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

/// Returns the shortest wait after which the take passes, found by binary search, not by a formula.
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
