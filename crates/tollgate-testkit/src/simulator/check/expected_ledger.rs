//! Model of the outage ledger of one key: independent of the library, with the oracle's arithmetic.

use crate::answer::Operation;
use crate::oracle::Oracle;
use crate::spec::{Kind, LimitSpec};

/// Maximum number of admissions that are replayed one by one.
const MAX_LOG_LEN: usize = 64;

/// A call that replays admissions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Replay {
    Debit { cost: u64, age: u64 },
    Hold { cost: u64, permit: u64 },
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Admission {
    at: u64,
    cost: u64,
    permit: Option<u64>,
}

/// Admissions of one key to replay.
#[derive(Debug, Clone)]
pub(super) enum KeyLedger {
    /// Amount still used, and the time of its first admission.
    Sum { used: Box<Oracle>, since: u64 },
    /// Every admission, where its age matters.
    Log(Vec<Admission>),
}

impl KeyLedger {
    pub(super) fn new(spec: &LimitSpec) -> Self {
        match spec.algorithm {
            Kind::TokenBucket | Kind::FixedWindow | Kind::CalendarWindow => {
                Self::Sum { used: Box::default(), since: 0 }
            }
            Kind::SlidingWindow | Kind::SlidingCounter | Kind::Concurrency => Self::Log(Vec::new()),
        }
    }

    pub(super) fn admit(
        &mut self,
        spec: &LimitSpec,
        now: u64,
        age: u64,
        cost: u64,
        permit: Option<u64>,
    ) {
        match self {
            Self::Sum { used, since } => {
                if used.apply(spec, now, Operation::Peek { cost: 0 }).count == 0 {
                    *since = now - age;
                }
                used.apply(spec, now, Operation::Debit { cost, age_us: age });
            }
            Self::Log(log) => {
                log.push(Admission { at: now - age, cost, permit });
                compact(log, spec, now);
            }
        }
    }

    pub(super) fn refund(&mut self, spec: &LimitSpec, now: u64, cost: u64) {
        match self {
            Self::Sum { used, .. } => {
                used.apply(spec, now, Operation::Refund { cost });
            }
            Self::Log(_) if spec.algorithm == Kind::Concurrency => {}
            Self::Log(log) => {
                let mut remaining = cost;
                while remaining > 0
                    && let Some(newest) = log.pop()
                {
                    let kept = newest.cost.saturating_sub(remaining);
                    remaining = remaining.saturating_sub(newest.cost);
                    if kept > 0 {
                        log.push(Admission { cost: kept, ..newest });
                    }
                }
            }
        }
    }

    /// Returns true if the ledger has slots of a permit that have not expired.
    pub(super) fn is_held(&self, spec: &LimitSpec, now: u64, permit: u64) -> bool {
        let Self::Log(log) = self else { return false };
        log.iter()
            .any(|admission| admission.permit == Some(permit) && still_counts(spec, admission, now))
    }

    pub(super) fn release(&mut self, permit: u64) {
        if let Self::Log(log) = self {
            log.retain(|admission| admission.permit != Some(permit));
        }
    }

    /// Restarts the ttl of a permit's slots. Expired slots cannot be renewed.
    pub(super) fn renew(&mut self, spec: &LimitSpec, now: u64, permit: u64) {
        if let Self::Log(log) = self {
            let held = log.iter_mut().filter(|admission| admission.permit == Some(permit));
            for admission in held.filter(|admission| admission.at + spec.window_us > now) {
                admission.at = now;
            }
        }
    }

    /// Keeps the admissions of these replays, which were due at `then`, and adds the newer ledger of the key.
    pub(super) fn restore(
        mut self,
        spec: &LimitSpec,
        (then, mut kept): (u64, Vec<Replay>),
        (now, mut newer): (u64, Self),
    ) -> Self {
        if let Self::Log(log) = &mut self {
            log.retain(|admission| {
                let replay = admission.to_replay(then);
                let position = kept.iter().position(|one| *one == replay);
                position.map(|position| kept.swap_remove(position)).is_some()
            });
        }
        match &mut newer {
            Self::Log(log) => {
                for one in log.iter().filter(|one| still_counts(spec, one, now)) {
                    self.admit(spec, now, now - one.at, one.cost, one.permit);
                }
            }
            Self::Sum { .. } => {
                for replay in newer.replays(spec, now) {
                    if let Replay::Debit { cost, age } = replay {
                        self.admit(spec, now, age, cost, None);
                    }
                }
            }
        }
        self
    }

    /// Returns the calls that replay the ledger now.
    pub(super) fn replays(&mut self, spec: &LimitSpec, now: u64) -> Vec<Replay> {
        match self {
            Self::Sum { used, since } => {
                let cost = used.apply(spec, now, Operation::Peek { cost: 0 }).count;
                let age = if spec.algorithm == Kind::FixedWindow { now - *since } else { 0 };
                if cost > 0 { vec![Replay::Debit { cost, age }] } else { Vec::new() }
            }
            Self::Log(log) => {
                let counting = log.iter().filter(|admission| still_counts(spec, admission, now));
                counting.map(|admission| admission.to_replay(now)).collect()
            }
        }
    }
}

impl Admission {
    fn to_replay(self, now: u64) -> Replay {
        match self.permit {
            Some(permit) => Replay::Hold { cost: self.cost, permit },
            None => Replay::Debit { cost: self.cost, age: now - self.at },
        }
    }
}

fn still_counts(spec: &LimitSpec, admission: &Admission, now: u64) -> bool {
    let windows = if spec.algorithm == Kind::SlidingCounter { 2 } else { 1 };
    admission.at + windows * spec.window_us > now
}

/// Bounds the number of admissions. Slots are not merged: with twice the limit, which only `allow` admits, the ledger
/// forgets all but the newest up to the limit.
fn compact(log: &mut Vec<Admission>, spec: &LimitSpec, now: u64) {
    let slots = usize::try_from(spec.count).unwrap_or(usize::MAX / 2);
    let has_slots = spec.algorithm == Kind::Concurrency;
    let max = if has_slots { MAX_LOG_LEN.max(2 * slots) } else { MAX_LOG_LEN };
    if log.len() > max {
        log.retain(|admission| still_counts(spec, admission, now));
    }
    if log.len() > max && has_slots {
        log.drain(..log.len().saturating_sub(slots));
    } else if log.len() > max {
        *log = log.chunks(2).map(merge).collect();
    }
}

/// Sums neighbours at the time of the latest.
fn merge(neighbours: &[Admission]) -> Admission {
    let at = neighbours.iter().map(|admission| admission.at).max().unwrap_or(0);
    Admission { at, cost: neighbours.iter().map(|admission| admission.cost).sum(), permit: None }
}
