//! Random histories of operations on one key, reproducible from a seed.
//!
//! Times and costs are drawn near the figures of the last answer, to find off-by-one errors: exactly at the
//! end of a wait, and one microsecond before.

use crate::answer::{Answer, Operation};
use crate::random::Random;
use crate::spec::{Align, Kind, LimitSpec};

/// Kinds of events in a history. Each level includes the ones before it, except `Reservations`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum HistoryLevel {
    /// Takes, peeks, refunds and pauses, and reservations with their settlements, within a day, for which a store keeps
    /// every record.
    Reservations,
    /// Takes and peeks; time moves forward and the limit stays the same.
    Basic,
    /// Also refunds, debits, pauses and resets.
    Operations,
    /// Also limits whose parameters change, and clocks that step back.
    Changes,
    /// Also leases, of limits most of which are leased.
    Leases,
}

/// One step of a history.
#[derive(Debug, Clone)]
pub struct HistoryStep {
    /// Time in microseconds.
    pub at_us: u64,
    /// Index of the limit in [`History::limits`].
    pub limit: usize,
    /// Operation to apply.
    pub operation: Operation,
}

/// Generator of steps.
#[derive(Debug)]
pub struct History {
    random: Random,
    level: HistoryLevel,
    limits: Vec<LimitSpec>,
    current: usize,
    now: u64,
    start: u64,
    reservations: Vec<Reservation>,
}

/// A reservation that a history may settle.
#[derive(Debug, Clone, Copy)]
struct Reservation {
    number: u64,
    cost: u64,
    ttl: u64,
    /// When it expires, in microseconds.
    until: u64,
}

/// Upper bound on times in microseconds, so that no sum exceeds 2^53.
const MAX_TIME: u64 = 1 << 52;
/// Number of the first reservation; permits have lower numbers.
const FIRST_RESERVATION: u64 = 1000;
const DAY: u64 = 86_400_000_000;
const YEAR: u64 = 365 * DAY;

impl History {
    /// Creates the history of a seed, for limits of this kind.
    #[must_use]
    pub fn new(seed: u64, kind: Kind, level: HistoryLevel) -> Self {
        let mut random = Random::new(seed);
        let versions = if level >= HistoryLevel::Changes { 3 } else { 1 };
        let draw = if level == HistoryLevel::Leases { draw_leased } else { draw_limit };
        let limits = (0..versions).map(|_| draw(&mut random, kind)).collect();
        let now = *random.pick(&[0, 1, 1_794_765_516_667_233, DAY * 20_000]).unwrap_or(&0);
        Self { random, level, limits, current: 0, now, start: now, reservations: Vec::new() }
    }

    /// Limits of the steps: one name, different parameters.
    #[must_use]
    pub fn limits(&self) -> &[LimitSpec] {
        &self.limits
    }

    /// Generates the next step, given the last answer.
    pub fn next(&mut self, last: Option<&Answer>) -> HistoryStep {
        if self.level >= HistoryLevel::Changes && self.random.one_in(12) {
            self.current = usize::from(self.random.one_in(2)) + usize::from(self.random.one_in(2));
        }
        self.move_time(last);
        HistoryStep { at_us: self.now, limit: self.current, operation: self.draw_operation(last) }
    }

    fn spec(&self) -> LimitSpec {
        let first = self.limits.get(self.current).or(self.limits.first());
        first.cloned().unwrap_or_else(|| LimitSpec::new(Kind::TokenBucket, 1, 1))
    }

    fn move_time(&mut self, last: Option<&Answer>) {
        let window = scale(&self.spec());
        let retry = last.and_then(|answer| answer.retry_after_us).unwrap_or(1);
        let reset = last.map_or(1, |answer| answer.reset_after_us);
        let step = match self.random.within(0, 11) {
            0..=3 => 0,
            4 => 1,
            5 => retry,
            6 => retry.saturating_sub(1),
            7 => reset,
            8 => reset.saturating_sub(1),
            9 => self.random.magnitude(window),
            10 => self.random.magnitude(window / 10 + 1),
            _ => self.random.magnitude(window.saturating_mul(2)),
        };
        if self.level >= HistoryLevel::Changes && self.random.one_in(15) {
            self.now = self.now.saturating_sub(self.random.magnitude(window.saturating_mul(3)));
        } else if self.now + step < self.end() {
            self.now += step;
        }
    }

    /// Returns the time that the history does not reach.
    fn end(&self) -> u64 {
        match self.level {
            HistoryLevel::Reservations => self.start + DAY,
            _ => MAX_TIME,
        }
    }

    fn draw_operation(&mut self, last: Option<&Answer>) -> Operation {
        let cost = self.draw_cost(last);
        if self.spec().algorithm == Kind::Concurrency && self.random.one_in(2) {
            return self.draw_slot_operation(cost);
        }
        if self.level == HistoryLevel::Leases && self.random.one_in(3) {
            return self.draw_lease(cost);
        }
        if self.level == HistoryLevel::Reservations {
            return self.draw_with_reservations(cost);
        }
        let window = scale(&self.spec());
        let kinds = if self.level == HistoryLevel::Basic { 16 } else { 24 };
        match self.random.within(0, kinds) {
            13..=16 => Operation::Peek { cost },
            17..=19 => Operation::Refund { cost },
            20..=22 => Operation::Debit { cost, age_us: self.draw_age(window) },
            23 if self.random.one_in(2) => {
                Operation::Pause { length_us: self.random.magnitude(window) }
            }
            24 if self.random.one_in(4) => Operation::Reset,
            _ => Operation::Take { cost },
        }
    }

    /// Draws a lease, or a take if the limit is not leased.
    fn draw_lease(&mut self, cost: u64) -> Operation {
        let spec = self.spec();
        let hold = spec.build().ok().and_then(|limit| limit.lease_hold());
        let Some(hold_us) = hold.and_then(|hold| u64::try_from(hold.as_micros()).ok()) else {
            return Operation::Take { cost };
        };
        let hold_us = if self.random.one_in(4) { self.random.magnitude(hold_us) } else { hold_us };
        let cost = if self.random.one_in(2) { 0 } else { cost };
        Operation::Lease { cost, amount: self.random.magnitude(spec.capacity()), hold_us }
    }

    fn draw_with_reservations(&mut self, cost: u64) -> Operation {
        match self.random.within(0, 11) {
            0..=2 => Operation::Take { cost },
            3 => Operation::Peek { cost },
            4 if self.random.one_in(3) => Operation::Refund { cost },
            4 if self.random.one_in(2) => {
                let window = scale(&self.spec());
                Operation::Pause { length_us: self.random.magnitude(window) }
            }
            4..=7 => self.draw_reserve(cost),
            _ => self.draw_settle().unwrap_or(Operation::Take { cost }),
        }
    }

    /// Draws a reservation, most often a new one.
    fn draw_reserve(&mut self, cost: u64) -> Operation {
        let known = self.draw_open().filter(|_| self.random.one_in(10));
        let number = FIRST_RESERVATION + self.reservations.len() as u64;
        let has_slots = self.spec().algorithm == Kind::Concurrency;
        // Sums of token buckets are kept as long as records: all of a history have the same ttl.
        let ttl = if has_slots { self.random.within(DAY / 1440, DAY) } else { DAY };
        let new = Reservation { number, cost, ttl, until: self.now + ttl };
        if known.is_none() {
            self.reservations.push(new);
        }
        // If the first one with this number was refused, this one lasts at least as long.
        let Reservation { number: reservation, ttl: ttl_us, .. } = known.unwrap_or(new);
        Operation::Reserve { cost, reservation, ttl_us }
    }

    /// Draws a settlement or an extension of a reservation, if there is one; it may have been refused or settled.
    fn draw_settle(&mut self) -> Option<Operation> {
        let Reservation { number: reservation, cost, .. } = self.draw_open()?;
        if self.random.one_in(8) {
            return Some(Operation::Extend { reservation });
        }
        let capacity = self.spec().capacity();
        let amount = match self.random.within(0, 7) {
            0 => 0,
            1 => cost,
            2 => cost.saturating_sub(1),
            3..=5 => self.random.within(0, cost),
            6 => cost.saturating_add(self.random.magnitude(capacity)),
            _ => cost.saturating_add(capacity.saturating_mul(2)),
        };
        Some(Operation::Settle { reservation, amount: amount.min(MAX_TIME) })
    }

    /// Returns one of the last reservations that have not expired.
    fn draw_open(&mut self) -> Option<Reservation> {
        let now = self.now;
        let open: Vec<Reservation> = self
            .reservations
            .iter()
            .rev()
            .filter(|reservation| reservation.until > now)
            .take(6)
            .copied()
            .collect();
        self.random.pick(&open).copied()
    }

    /// Draws a slot operation with one of four permits, so that permits recur.
    fn draw_slot_operation(&mut self, cost: u64) -> Operation {
        let permit = self.random.within(1, 4);
        match self.random.within(0, 5) {
            0 => Operation::Release { permit },
            1 | 2 => Operation::Renew { permit },
            _ => Operation::Hold { cost, permit },
        }
    }

    fn draw_age(&mut self, window: u64) -> u64 {
        match self.random.within(0, 4) {
            0 | 1 => 0,
            2 => window,
            3 => window - 1,
            _ => self.random.magnitude(window.saturating_mul(2)),
        }
    }

    fn draw_cost(&mut self, last: Option<&Answer>) -> u64 {
        let capacity = self.spec().capacity();
        let remaining = last.map_or(capacity, |answer| answer.remaining);
        match self.random.within(0, 9) {
            0..=2 => 1,
            3 => remaining,
            4 => remaining + 1,
            5 => capacity,
            6 if self.random.one_in(3) => capacity + 1,
            7 if self.random.one_in(3) => 0,
            _ => self.random.magnitude(capacity),
        }
    }
}

/// Returns the approximate refill time of a limit in microseconds.
fn scale(spec: &LimitSpec) -> u64 {
    match spec.align {
        None => spec.window_us,
        Some(Align::Second) => 1_000_000,
        Some(Align::Minute) => 60_000_000,
        Some(Align::Hour) => 3_600_000_000,
        Some(Align::Day) => DAY,
        Some(Align::Week) => 7 * DAY,
        Some(Align::Month) => 31 * DAY,
        Some(Align::Year) => YEAR,
    }
}

fn draw_limit(random: &mut Random, kind: Kind) -> LimitSpec {
    loop {
        let spec = match kind {
            Kind::CalendarWindow => draw_calendar(random),
            // The oracle sums over every take, so use small counts.
            Kind::SlidingWindow | Kind::Concurrency => {
                LimitSpec::new(kind, random.magnitude(40), draw_window(random))
            }
            Kind::TokenBucket | Kind::SlidingCounter | Kind::FixedWindow => {
                LimitSpec::new(kind, draw_count(random), draw_window(random))
            }
        };
        let spec = if kind == Kind::TokenBucket && random.one_in(2) {
            spec.with_burst(random.magnitude(1 << 30))
        } else {
            spec
        };
        if spec.build().is_ok() {
            return spec;
        }
    }
}

/// Draws a limit that can be leased, most often.
fn draw_leased(random: &mut Random, kind: Kind) -> LimitSpec {
    let mut spec = draw_limit(random, kind).leased();
    for _ in 0..20 {
        let limit = spec.build();
        if limit.is_ok_and(|limit| limit.lease_hold().is_some()) {
            break;
        }
        spec = draw_limit(random, kind).leased();
    }
    spec
}

fn draw_count(random: &mut Random) -> u64 {
    match random.within(0, 3) {
        0 => *random.pick(&[1, 2, 7, 10, 60, 100, 1_000_000, 999_983, 1_000_000_000]).unwrap_or(&1),
        1 => random.magnitude(20),
        2 => random.magnitude(100_000),
        _ => random.magnitude(1 << 40),
    }
}

fn draw_window(random: &mut Random) -> u64 {
    match random.within(0, 2) {
        0 => *random.pick(&[1_000_000, 60_000_000, 3_600_000_000, DAY, 30 * DAY]).unwrap_or(&1),
        1 => random.magnitude(1_000_000),
        _ => random.magnitude(YEAR),
    }
}

fn draw_calendar(random: &mut Random) -> LimitSpec {
    let aligns = [
        Align::Second,
        Align::Minute,
        Align::Hour,
        Align::Day,
        Align::Week,
        Align::Month,
        Align::Year,
    ];
    let zones =
        ["UTC", "America/New_York", "Europe/Zurich", "Asia/Kathmandu", "Australia/Lord_Howe"];
    let align = *random.pick(&aligns).unwrap_or(&Align::Minute);
    LimitSpec::calendar(random.magnitude(1000), align, random.pick(&zones).unwrap_or(&"UTC"))
}
