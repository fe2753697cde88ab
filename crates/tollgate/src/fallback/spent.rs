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

    /// Adds what was spent now, or some time ago.
    pub(super) fn add(&mut self, limit: &Limit, spending: Spending, now: Timestamp) {
        match self {
            Self::Sum { state, since } => {
                if state.is_fresh(now) {
                    *since = spending.at;
                }
                // At its age, not at its time: a step back would let the rest come back twice.
                let op = Op::Debit { cost: spending.cost, age: since_then(spending.at, now) };
                let _ = limit.numbers().step(state, now, op);
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

    /// Forgets the slots of a lease, and tells whether any were in use.
    pub(super) fn release(&mut self, limit: &Limit, lease: LeaseId, now: Timestamp) -> bool {
        let Self::Log(log) = self else { return false };
        let is_held = log.iter().any(|spending| spending.is_held(limit, lease, now));
        log.retain(|spending| spending.lease != Some(lease));
        is_held
    }

    /// Lets the slots of a lease count from now, and tells whether there were any: what has returned by itself
    /// is no longer in use.
    pub(super) fn renew(&mut self, limit: &Limit, lease: LeaseId, now: Timestamp) -> bool {
        let Self::Log(log) = self else { return false };
        let held = log.iter_mut().filter(|spending| spending.is_held(limit, lease, now));
        held.map(|spending| spending.at = now).count() > 0
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
        let memory = match limit.numbers() {
            // In the window before this one it counts by the part of it that is not yet over.
            Numbers::SlidingCounter(_) => limit.window() * 2,
            _ => limit.ttl().unwrap_or(limit.window()),
        };
        since_then(self.at, now) < memory
    }

    fn is_held(&self, limit: &Limit, lease: LeaseId, now: Timestamp) -> bool {
        self.lease == Some(lease) && self.matters(limit, now)
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

    fn add(all: &mut Spent, limit: &Limit, second: u64, cost: u64, lease: Option<LeaseId>) {
        let at = after(second);
        all.add(limit, Spending { at, cost, lease }, at);
    }

    /// What is owed at the end of these (second, cost).
    fn owed(limit: &Limit, spent: &[(u64, u64)], now: u64) -> Vec<(u64, u64)> {
        let mut all = Spent::new(limit);
        for (second, cost) in spent {
            add(&mut all, limit, *second, *cost, None);
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
    fn no_more_slots_are_owed_than_there_are() {
        let limit = Limit::concurrency(100, Duration::from_secs(30)).unwrap();
        let mut spent = Spent::new(&limit);
        for number in 0_u32..5000 {
            let lease = LeaseId::from_u128(number.into());
            spent.add(&limit, Spending { at: START, cost: 1, lease }, START);
            assert!(spent.len() <= 200);
        }
        let newest = spent.debits(&limit, START).last().and_then(|debit| debit.lease);
        assert_eq!(newest, LeaseId::from_u128(4999));
    }

    #[test]
    fn what_was_spent_last_is_given_back_first() {
        let limit = Limit::sliding_window(Quota::per_minute(60)).unwrap();
        let mut spent = Spent::new(&limit);
        for second in [0, 10] {
            add(&mut spent, &limit, second, 3, None);
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
            add(&mut spent, &limit, second, 1, lease);
        }
        assert!(spent.release(&limit, other.unwrap(), after(20)));
        assert!(!spent.release(&limit, other.unwrap(), after(20)));
        assert!(spent.renew(&limit, one.unwrap(), after(20)));
        let leases: Vec<_> =
            spent.debits(&limit, after(35)).iter().map(|debit| debit.lease).collect();
        assert_eq!(leases, [one, third]);
    }
    #[test]
    fn slots_that_have_returned_are_neither_renewed_nor_given_back() {
        let limit = Limit::concurrency(10, Duration::from_secs(30)).unwrap();
        let (mut spent, lease) = (Spent::new(&limit), LeaseId::from_u128(1).unwrap());
        add(&mut spent, &limit, 0, 1, Some(lease));
        assert!(!spent.renew(&limit, lease, after(30)));
        assert_eq!(spent.debits(&limit, after(30)), []);
        let mut spent = Spent::new(&limit);
        add(&mut spent, &limit, 0, 1, Some(lease));
        assert!(!spent.release(&limit, lease, after(30)));
    }

    #[test]
    fn what_was_spent_some_time_ago_does_not_let_the_rest_come_back_sooner() {
        let limit = Limit::token_bucket(Quota::per_minute(60).burst(100)).unwrap();
        let mut spent = Spent::new(&limit);
        add(&mut spent, &limit, 50, 60, None);
        let long_ago = Spending { at: after(5), cost: 50, lease: None };
        spent.add(&limit, long_ago, after(50));
        // All of the 60, and of the 50 what 45 seconds have left.
        let debits = spent.debits(&limit, after(50));
        assert_eq!(debits, [Debit { cost: 65, age: Duration::ZERO, lease: None }]);
    }
}
