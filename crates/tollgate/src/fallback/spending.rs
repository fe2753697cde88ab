//! What one key spent while the store could not be asked.

use std::time::Duration;

use crate::algorithm::{Op, Parameters, State};
use crate::limit::Limit;
use crate::permit::PermitId;
use crate::time::Timestamp;

/// As many spendings of a log are kept apart. Beyond, neighbours are taken together, at the later time: what
/// was spent then counts for a little longer, never shorter.
const MOST_APART: usize = 64;

/// One key's spendings, as its whole limit counts them.
#[derive(Debug)]
pub(super) enum Spent {
    /// What is still used, where one debit says it all.
    Sum {
        state: State,
        /// When it began to be used.
        since: Timestamp,
    },
    /// Each by itself, the oldest first, where the time of each counts.
    Log(Vec<Spending>),
}

/// What was spent at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Spending {
    pub(super) at: Timestamp,
    pub(super) cost: u64,
    /// Whose slots they are.
    pub(super) permit: Option<PermitId>,
}

/// What the store has to be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Debit {
    pub(super) cost: u64,
    pub(super) age: Duration,
    pub(super) permit: Option<PermitId>,
}

impl Spent {
    pub(super) fn new(limit: &Limit) -> Self {
        match limit.parameters() {
            Parameters::SlidingWindow(_)
            | Parameters::SlidingCounter(_)
            | Parameters::Concurrency(_) => Self::Log(Vec::new()),
            _ => Self::Sum { state: State::Fresh, since: Timestamp::EPOCH },
        }
    }

    /// Adds what was spent now, or some time ago.
    pub(super) fn add(&mut self, limit: &Limit, spending: Spending, now: Timestamp) {
        match self {
            Self::Sum { state, since } => {
                if state.is_fresh(now) {
                    *since = spending.at;
                }
                // At its age, not at its time: a step back would let the rest come back twice.
                let op = Op::Debit { cost: spending.cost, age: since_then(spending.at, now) };
                let _ = limit.parameters().step(state, now, op);
            }
            Self::Log(log) => {
                log.push(spending);
                if log.len() > most_apart(limit) {
                    shorten(log, limit, now);
                }
            }
        }
    }

    /// How many debits it may come to.
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Sum { .. } => 1,
            Self::Log(log) => log.len(),
        }
    }

    /// Whether nothing of it matters any more.
    pub(super) fn is_over(&self, limit: &Limit, now: Timestamp) -> bool {
        match self {
            Self::Sum { state, .. } => state.is_fresh(now),
            Self::Log(log) => !log.iter().any(|spending| spending.matters(limit, now)),
        }
    }

    /// Takes back what was added last.
    pub(super) fn refund_receipt(&mut self, limit: &Limit, cost: u64, now: Timestamp) {
        match self {
            Self::Sum { state, .. } => {
                let _ = limit.parameters().step(state, now, Op::Refund { cost });
            }
            // Slots are given back by their permit.
            Self::Log(_) if limit.ttl().is_some() => {}
            Self::Log(log) => {
                let mut left = cost;
                while let Some(last) = log.last_mut().filter(|_| left > 0) {
                    let back = left.min(last.cost);
                    (left, last.cost) = (left - back, last.cost - back);
                    if last.cost == 0 {
                        log.pop();
                    }
                }
            }
        }
    }

    /// Forgets the slots of a permit, and tells whether any were in use.
    pub(super) fn release(&mut self, limit: &Limit, permit: PermitId, now: Timestamp) -> bool {
        let Self::Log(log) = self else { return false };
        let is_held = log.iter().any(|spending| spending.is_held(limit, permit, now));
        log.retain(|spending| spending.permit != Some(permit));
        is_held
    }

    /// Lets the slots of a permit count from now, and tells whether there were any: what has returned by itself
    /// is no longer in use.
    pub(super) fn renew(&mut self, limit: &Limit, permit: PermitId, now: Timestamp) -> bool {
        let Self::Log(log) = self else { return false };
        let held = log.iter_mut().filter(|spending| spending.is_held(limit, permit, now));
        held.map(|spending| spending.at = now).count() > 0
    }

    /// What still matters.
    pub(super) fn debits(mut self, limit: &Limit, now: Timestamp) -> Vec<Debit> {
        match &mut self {
            Self::Sum { state, since } => {
                let reply = limit.parameters().step(state, now, Op::Peek { cost: 0 });
                let cost = limit.capacity().saturating_sub(reply.remaining());
                // A window that opens at its first take closes so much sooner.
                let age = match limit.parameters() {
                    Parameters::FixedWindow(_) => since_then(*since, now),
                    _ => Duration::ZERO,
                };
                Some(Debit { cost, age, permit: None })
                    .filter(|debit| debit.cost > 0)
                    .into_iter()
                    .collect()
            }
            Self::Log(log) => {
                let matter = log.iter().filter(|spending| spending.matters(limit, now));
                matter.map(|spending| spending.debit(now)).collect()
            }
        }
    }
}

/// How long a log may become before it is shortened. Slots are given back one by one, so they stay apart.
fn most_apart(limit: &Limit) -> usize {
    match limit.ttl() {
        None => MOST_APART,
        Some(_) => MOST_APART.max(2 * slots(limit)),
    }
}

fn slots(limit: &Limit) -> usize {
    usize::try_from(limit.capacity()).unwrap_or(usize::MAX / 2)
}

/// Drops what no longer matters, and takes neighbours together. Of slots the newest are kept, as many as there are:
/// the store has no room for more.
fn shorten(log: &mut Vec<Spending>, limit: &Limit, now: Timestamp) {
    log.retain(|earlier| earlier.matters(limit, now));
    if limit.ttl().is_some() {
        log.drain(..log.len().saturating_sub(slots(limit)));
    } else if log.len() > MOST_APART {
        *log = log.chunks(2).map(together).collect();
    }
}

impl Spending {
    fn matters(&self, limit: &Limit, now: Timestamp) -> bool {
        let memory = match limit.parameters() {
            // In the window before this one it counts by the part of it that is not yet over.
            Parameters::SlidingCounter(_) => limit.window() * 2,
            _ => limit.ttl().unwrap_or(limit.window()),
        };
        since_then(self.at, now) < memory
    }

    fn is_held(&self, limit: &Limit, permit: PermitId, now: Timestamp) -> bool {
        self.permit == Some(permit) && self.matters(limit, now)
    }

    fn debit(&self, now: Timestamp) -> Debit {
        Debit { cost: self.cost, age: since_then(self.at, now), permit: self.permit }
    }
}

/// Neighbours at the time of the later.
fn together(neighbours: &[Spending]) -> Spending {
    let at = neighbours.iter().map(|spending| spending.at).max().unwrap_or_default();
    let cost = neighbours.iter().map(|spending| spending.cost).sum();
    Spending { at, cost, permit: None }
}

fn since_then(then: Timestamp, now: Timestamp) -> Duration {
    Duration::from_micros(now.as_micros().saturating_sub(then.as_micros()))
}

#[cfg(test)]
mod tests;
