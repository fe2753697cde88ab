//! The admissions of one key during an outage, and the debits that replay them.

use std::time::Duration;

use crate::algorithm::{Op, PermitId, Replay, State};
use crate::limit::Limit;
use crate::time::Timestamp;

/// Maximum number of log entries. Beyond it neighbours are merged at the later time: an admission then counts a
/// little longer, never shorter.
const MAX_LOG_LEN: usize = 64;

/// Admissions of one key, counted against the full limit.
#[derive(Debug)]
pub(super) enum Admissions {
    /// Amount still used, for algorithms where one debit replays it.
    Sum {
        state: State,
        /// Time of the first admission that still counts.
        since: Timestamp,
    },
    /// Every admission, the oldest first, for algorithms where its time matters.
    Log(Vec<Admission>),
}

/// One admitted take or forced debit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Admission {
    pub(super) at: Timestamp,
    pub(super) cost: u64,
    /// Permit that holds the slots.
    pub(super) permit: Option<PermitId>,
}

/// One debit in the shared store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Debit {
    pub(super) cost: u64,
    pub(super) age: Duration,
    pub(super) permit: Option<PermitId>,
}

impl Admissions {
    pub(super) fn new(limit: &Limit) -> Self {
        match limit.parameters().replay() {
            Replay::Each { .. } => Self::Log(Vec::new()),
            Replay::Sum { .. } => Self::Sum { state: State::Fresh, since: Timestamp::EPOCH },
        }
    }

    /// Adds an admission; its time may lie in the past.
    pub(super) fn add(&mut self, limit: &Limit, admission: Admission, now: Timestamp) {
        match self {
            Self::Sum { state, since } => {
                if state.is_fresh(now) {
                    *since = admission.at;
                }
                // Debit now with an age: a step at a past time would refill the rest twice.
                let op = Op::Debit { cost: admission.cost, age: age_of(admission.at, now) };
                let _ = limit.parameters().step(state, now, op);
            }
            Self::Log(log) => {
                log.push(admission);
                if log.len() > max_log_len(limit) {
                    compact(log, limit, now);
                }
            }
        }
    }

    /// Returns an upper bound on the number of debits.
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Sum { .. } => 1,
            Self::Log(log) => log.len(),
        }
    }

    /// Returns true if no admission counts any more.
    pub(super) fn is_expired(&self, limit: &Limit, now: Timestamp) -> bool {
        match self {
            Self::Sum { state, .. } => state.is_fresh(now),
            Self::Log(log) => !log.iter().any(|admission| admission.still_counts(limit, now)),
        }
    }

    /// Removes `cost`, from the newest admissions first.
    pub(super) fn refund(&mut self, limit: &Limit, cost: u64, now: Timestamp) {
        match self {
            Self::Sum { state, .. } => {
                let _ = limit.parameters().step(state, now, Op::Refund { cost });
            }
            // Slots are released by their permit.
            Self::Log(_) if limit.ttl().is_some() => {}
            Self::Log(log) => {
                let mut remaining = cost;
                while let Some(newest) = log.last_mut().filter(|_| remaining > 0) {
                    let refunded = remaining.min(newest.cost);
                    (remaining, newest.cost) = (remaining - refunded, newest.cost - refunded);
                    if newest.cost == 0 {
                        log.pop();
                    }
                }
            }
        }
    }

    /// Removes the slots of a permit. Returns true if any were in use.
    pub(super) fn release(&mut self, limit: &Limit, permit: PermitId, now: Timestamp) -> bool {
        let Self::Log(log) = self else { return false };
        let is_held = log.iter().any(|admission| admission.is_held(limit, permit, now));
        log.retain(|admission| admission.permit != Some(permit));
        is_held
    }

    /// Removes the slots of all permits for which this returns true.
    pub(super) fn release_all(&mut self, is_released: impl Fn(PermitId) -> bool) {
        if let Self::Log(log) = self {
            log.retain(|admission| !admission.permit.is_some_and(&is_released));
        }
    }

    /// Restarts the ttl of the slots of a permit. Returns true if any were in use; expired slots are not.
    pub(super) fn renew(&mut self, limit: &Limit, permit: PermitId, now: Timestamp) -> bool {
        let Self::Log(log) = self else { return false };
        let held = log.iter_mut().filter(|admission| admission.is_held(limit, permit, now));
        held.map(|admission| admission.at = now).count() > 0
    }

    /// Returns the debits that replay the admissions that still count, and removes all others.
    pub(super) fn debits(&mut self, limit: &Limit, now: Timestamp) -> Vec<Debit> {
        match self {
            Self::Sum { state, since } => {
                let reply = limit.parameters().step(state, now, Op::Peek { cost: 0 });
                let cost = limit.capacity().saturating_sub(reply.remaining());
                let age = match limit.parameters().replay() {
                    Replay::Sum { is_aged: true } => age_of(*since, now),
                    Replay::Sum { is_aged: false } | Replay::Each { .. } => Duration::ZERO,
                };
                Some(Debit { cost, age, permit: None })
                    .filter(|debit| debit.cost > 0)
                    .into_iter()
                    .collect()
            }
            Self::Log(log) => {
                log.retain(|admission| admission.still_counts(limit, now));
                log.iter().map(|admission| admission.to_debit(now)).collect()
            }
        }
    }

    /// Keeps the admissions of some of the debits that [`debits`](Self::debits) returned, by their index.
    pub(super) fn keep(&mut self, is_kept: impl Fn(usize) -> bool) {
        match self {
            Self::Sum { state, .. } => {
                if !is_kept(0) {
                    *state = State::Fresh;
                }
            }
            Self::Log(log) => {
                let mut indexes = 0..;
                log.retain(|_| indexes.next().is_some_and(&is_kept));
            }
        }
    }

    /// Adds newer admissions that still count.
    pub(super) fn append(&mut self, limit: &Limit, newer: &mut Self, now: Timestamp) {
        for Debit { cost, age, permit } in newer.debits(limit, now) {
            self.add(limit, Admission { at: now - age, cost, permit }, now);
        }
    }
}

/// Returns the log length beyond which it is compacted. Slots are released one by one, so they are not merged.
fn max_log_len(limit: &Limit) -> usize {
    match limit.ttl() {
        None => MAX_LOG_LEN,
        Some(_) => MAX_LOG_LEN.max(2 * slots(limit)),
    }
}

fn slots(limit: &Limit) -> usize {
    usize::try_from(limit.capacity()).unwrap_or(usize::MAX / 2)
}

/// Drops expired admissions. If too many are left, merges neighbours; of slots it keeps the newest, up to the limit's
/// capacity: the shared store has no room for more.
fn compact(log: &mut Vec<Admission>, limit: &Limit, now: Timestamp) {
    log.retain(|admission| admission.still_counts(limit, now));
    if log.len() <= max_log_len(limit) {
        return;
    }
    match limit.ttl() {
        Some(_) => drop(log.drain(..log.len().saturating_sub(slots(limit)))),
        None => *log = log.chunks(2).map(merge).collect(),
    }
}

impl Admission {
    fn still_counts(&self, limit: &Limit, now: Timestamp) -> bool {
        let windows = match limit.parameters().replay() {
            Replay::Each { windows } => windows,
            Replay::Sum { .. } => 1,
        };
        let lifetime = limit.ttl().unwrap_or(limit.window()) * windows;
        age_of(self.at, now) < lifetime
    }

    fn is_held(&self, limit: &Limit, permit: PermitId, now: Timestamp) -> bool {
        self.permit == Some(permit) && self.still_counts(limit, now)
    }

    fn to_debit(self, now: Timestamp) -> Debit {
        Debit { cost: self.cost, age: age_of(self.at, now), permit: self.permit }
    }
}

/// Sums neighbours at the time of the latest.
fn merge(neighbours: &[Admission]) -> Admission {
    let at = neighbours.iter().map(|admission| admission.at).max().unwrap_or_default();
    let cost = neighbours.iter().map(|admission| admission.cost).sum();
    Admission { at, cost, permit: None }
}

fn age_of(then: Timestamp, now: Timestamp) -> Duration {
    Duration::from_micros(now.as_micros().saturating_sub(then.as_micros()))
}

#[cfg(test)]
mod tests;
