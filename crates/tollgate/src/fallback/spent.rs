//! What one key spent while the store could not be asked.

use std::time::Duration;

use crate::algorithm::{Numbers, Op, State};
use crate::lease::LeaseId;
use crate::limit::Limit;
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
    pub(super) lease: Option<LeaseId>,
}

/// What the store has to be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Debit {
    pub(super) cost: u64,
    pub(super) age: Duration,
    pub(super) lease: Option<LeaseId>,
}

impl Spent {
    pub(super) fn new(limit: &Limit) -> Self {
        match limit.numbers() {
            Numbers::SlidingWindow(_) | Numbers::SlidingCounter(_) | Numbers::Concurrency(_) => {
                Self::Log(Vec::new())
            }
            _ => Self::Sum { state: State::Fresh, since: Timestamp::EPOCH },
        }
    }

    pub(super) fn add(&mut self, limit: &Limit, spending: Spending) {
        match self {
            Self::Sum { state, since } => {
                if state.is_fresh(spending.at) {
                    *since = spending.at;
                }
                let op = Op::Debit { cost: spending.cost, age: Duration::ZERO };
                let _ = limit.numbers().step(state, spending.at, op);
            }
            Self::Log(log) => {
                log.push(spending);
                if log.len() > MOST_APART {
                    log.retain(|earlier| earlier.matters(limit, spending.at));
                }
                // Slots are given back one by one.
                if log.len() > MOST_APART && limit.ttl().is_none() {
                    *log = log.chunks(2).map(together).collect();
                }
            }
        }
    }

    /// Takes back what was added last.
    pub(super) fn give_back(&mut self, limit: &Limit, cost: u64, now: Timestamp) {
        match self {
            Self::Sum { state, .. } => {
                let _ = limit.numbers().step(state, now, Op::Refund { cost });
            }
            // Slots are given back by their lease.
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

    /// Forgets the slots of a lease.
    pub(super) fn release(&mut self, lease: LeaseId) {
        if let Self::Log(log) = self {
            log.retain(|spending| spending.lease != Some(lease));
        }
    }

    /// Lets the slots of a lease count from now.
    pub(super) fn renew(&mut self, lease: LeaseId, now: Timestamp) {
        if let Self::Log(log) = self {
            let of_lease = log.iter_mut().filter(|spending| spending.lease == Some(lease));
            of_lease.for_each(|spending| spending.at = now);
        }
    }

    /// What still matters.
    pub(super) fn debits(mut self, limit: &Limit, now: Timestamp) -> Vec<Debit> {
        match &mut self {
            Self::Sum { state, since } => {
                let reply = limit.numbers().step(state, now, Op::Peek { cost: 0 });
                let cost = limit.capacity().saturating_sub(reply.remaining());
                // A window that opens at its first take closes so much sooner.
                let age = match limit.numbers() {
                    Numbers::FixedWindow(_) => since_then(*since, now),
                    _ => Duration::ZERO,
                };
                Some(Debit { cost, age, lease: None })
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

impl Spending {
    fn matters(&self, limit: &Limit, now: Timestamp) -> bool {
        let memory = match limit.numbers() {
            // In the window before this one it counts by the part of it that is not yet over.
            Numbers::SlidingCounter(_) => limit.window() * 2,
            _ => limit.ttl().unwrap_or(limit.window()),
        };
        since_then(self.at, now) < memory
    }

    fn debit(&self, now: Timestamp) -> Debit {
        Debit { cost: self.cost, age: since_then(self.at, now), lease: self.lease }
    }
}

/// Neighbours at the time of the later.
fn together(neighbours: &[Spending]) -> Spending {
    let at = neighbours.iter().map(|spending| spending.at).max().unwrap_or_default();
    let cost = neighbours.iter().map(|spending| spending.cost).sum();
    Spending { at, cost, lease: None }
}

fn since_then(then: Timestamp, now: Timestamp) -> Duration {
    Duration::from_micros(now.as_micros().saturating_sub(then.as_micros()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quota::Quota;

    const START: Timestamp = Timestamp::from_micros(1_000_000_000);

    fn after(seconds: u64) -> Timestamp {
        START + Duration::from_secs(seconds)
    }

    /// What is owed at the end of these (second, cost).
    fn owed(limit: &Limit, spent: &[(u64, u64)], now: u64) -> Vec<(u64, u64)> {
        let mut all = Spent::new(limit);
        for (second, cost) in spent {
            all.add(limit, Spending { at: after(*second), cost: *cost, lease: None });
        }
        let debits = all.debits(limit, after(now));
        debits.iter().map(|debit| (debit.cost, debit.age.as_secs())).collect()
    }

    #[test]
    fn a_bucket_owes_what_has_not_come_back_at_the_whole_rate() {
        let limit = Limit::token_bucket(Quota::per_minute(60).burst(100)).unwrap();
        assert_eq!(owed(&limit, &[(0, 10), (5, 10)], 10), [(10, 0)]);
        assert_eq!(owed(&limit, &[(0, 10), (5, 10)], 20), []);
        assert_eq!(owed(&limit, &[(0, 400)], 0), [(100, 0)], "no more than it can hold");
    }

    #[test]
    fn a_window_owes_all_of_it_from_when_it_opened_until_it_closes() {
        let limit = Limit::fixed_window(Quota::per_minute(60)).unwrap();
        assert_eq!(owed(&limit, &[(0, 10), (30, 5)], 59), [(15, 59)]);
        assert_eq!(owed(&limit, &[(0, 10), (30, 5)], 60), []);
        assert_eq!(owed(&limit, &[(0, 10), (70, 5)], 80), [(5, 10)]);
    }

    #[test]
    fn a_log_owes_each_spending_at_its_age() {
        let limit = Limit::sliding_window(Quota::per_minute(60)).unwrap();
        assert_eq!(owed(&limit, &[(0, 1), (10, 2), (20, 3)], 65), [(2, 55), (3, 45)]);
    }

    #[test]
    fn many_spendings_are_few_debits_that_count_no_shorter() {
        let limit = Limit::sliding_window(Quota::per_hour(10_000)).unwrap();
        let spent: Vec<(u64, u64)> = (0..1000).map(|second| (second, 1)).collect();
        let owed = owed(&limit, &spent, 1000);
        assert!(owed.len() <= MOST_APART, "{}", owed.len());
        assert_eq!(owed.iter().map(|(cost, _)| cost).sum::<u64>(), 1000);
        // Of those younger than an age no fewer are owed than were spent.
        for age in 1..=1000 {
            let younger =
                owed.iter().filter(|(_, old)| *old <= age).map(|(cost, _)| cost).sum::<u64>();
            assert!(younger >= age, "{younger} at {age}");
        }
    }

    #[test]
    fn what_was_spent_last_is_given_back_first() {
        let limit = Limit::sliding_window(Quota::per_minute(60)).unwrap();
        let mut spent = Spent::new(&limit);
        for second in [0, 10] {
            spent.add(&limit, Spending { at: after(second), cost: 3, lease: None });
        }
        spent.give_back(&limit, 4, after(20));
        let debits = spent.debits(&limit, after(20));
        assert_eq!(debits, [Debit { cost: 2, age: Duration::from_secs(20), lease: None }]);
    }

    #[test]
    fn slots_are_owed_until_they_return_or_are_given_back() {
        let limit = Limit::concurrency(10, Duration::from_secs(30)).unwrap();
        let [one, other, third] = [1, 2, 3].map(LeaseId::from_u128);
        let mut spent = Spent::new(&limit);
        for (lease, second) in [(one, 0), (other, 10), (third, 10)] {
            spent.add(&limit, Spending { at: after(second), cost: 1, lease });
        }
        spent.release(other.unwrap());
        spent.renew(one.unwrap(), after(20));
        let leases: Vec<_> =
            spent.debits(&limit, after(35)).iter().map(|debit| debit.lease).collect();
        assert_eq!(leases, [one, third]);
    }
}
