//! What was spent while the store could not be asked, key by key, until the store is told.

use std::collections::{HashMap, VecDeque};
use std::mem;
use std::sync::Arc;

use foldhash::fast::RandomState;

use super::spent::{Spending, Spent};
use crate::lease::Lease;
use crate::limit::Limit;
use crate::plan::Key;
use crate::time::Timestamp;

/// The spendings of every key. Each leaves it once, whether or not the store could be told.
#[derive(Debug)]
pub(super) struct Ledger {
    accounts: HashMap<Name, Account, RandomState>,
    /// What is being told, when it could not be told to the end.
    leaving: VecDeque<(Name, Account)>,
    max_keys: usize,
    /// How often a key found no place.
    unwritten: u64,
}

/// Whose account it is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Name {
    scope: String,
    pub(super) subject: String,
}

/// What one key owes.
#[derive(Debug)]
pub(super) struct Account {
    pub(super) limit: Arc<Limit>,
    pub(super) spent: Spent,
    pub(super) paused_until: Option<Timestamp>,
}

impl Ledger {
    pub(super) fn new(max_keys: usize) -> Self {
        let (accounts, leaving) = (HashMap::default(), VecDeque::new());
        Self { accounts, leaving, max_keys, unwritten: 0 }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.accounts.is_empty() && self.leaving.is_empty()
    }

    /// How many spendings found no place, since it was last asked.
    pub(super) fn take_unwritten(&mut self) -> u64 {
        mem::take(&mut self.unwritten)
    }

    pub(super) fn spend(&mut self, subject: &str, limit: &Arc<Limit>, spending: Spending) {
        if spending.cost > 0
            && let Some(account) = self.account(subject, limit)
        {
            account.spent.add(&account.limit, spending);
        }
    }

    pub(super) fn pause(&mut self, subject: &str, limit: &Arc<Limit>, until: Timestamp) {
        if let Some(account) = self.account(subject, limit) {
            account.paused_until = account.paused_until.max(Some(until));
        }
    }

    pub(super) fn give_back(&mut self, key: &Key<'_>, cost: u64, now: Timestamp) {
        if let Some(account) = self.accounts.get_mut(&Name::of(key)) {
            account.spent.give_back(&account.limit, cost, now);
        }
    }

    pub(super) fn forget(&mut self, key: &Key<'_>) {
        let name = Name::of(key);
        self.accounts.remove(&name);
        self.leaving.retain(|(leaving, _)| *leaving != name);
    }

    pub(super) fn release(&mut self, lease: &Lease) {
        self.each_of(lease, |spent| spent.release(lease.id()));
    }

    pub(super) fn renew(&mut self, lease: &Lease, now: Timestamp) {
        self.each_of(lease, |spent| spent.renew(lease.id(), now));
    }

    /// Up to so many accounts, for good.
    pub(super) fn leave(&mut self, most: usize) -> Vec<(Name, Account)> {
        if self.leaving.is_empty() {
            self.leaving.extend(self.accounts.drain());
        }
        self.leaving.drain(..most.min(self.leaving.len())).collect()
    }

    fn each_of(&mut self, lease: &Lease, mut change: impl FnMut(&mut Spent)) {
        for held in lease.held() {
            let name = Name { scope: held.scope().to_owned(), subject: held.subject().to_owned() };
            if let Some(account) = self.accounts.get_mut(&name) {
                change(&mut account.spent);
            }
        }
    }

    /// The key's account, made if there is none; none if there is no place.
    fn account(&mut self, subject: &str, limit: &Arc<Limit>) -> Option<&mut Account> {
        let name = Name { scope: limit.scope(), subject: subject.to_owned() };
        if self.accounts.len() >= self.max_keys && !self.accounts.contains_key(&name) {
            self.unwritten += 1;
            return None;
        }
        let account = self.accounts.entry(name).or_insert_with(|| Account::new(limit));
        // It is owed under the numbers of now.
        account.limit = Arc::clone(limit);
        Some(account)
    }
}

impl Name {
    fn of(key: &Key<'_>) -> Self {
        Self { scope: key.limit().scope(), subject: key.subject().to_owned() }
    }
}

impl Account {
    fn new(limit: &Arc<Limit>) -> Self {
        Self { limit: Arc::clone(limit), spent: Spent::new(limit), paused_until: None }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::quota::Quota;
    use crate::subject::Subject;

    fn spending(cost: u64) -> Spending {
        Spending { at: Timestamp::from_micros(5), cost, lease: None }
    }

    fn costs(left: &[(Name, Account)]) -> Vec<u64> {
        let owed = |account: &Account| match &account.spent {
            Spent::Log(log) => log.iter().map(|spending| spending.cost).sum(),
            Spent::Sum { .. } => 0,
        };
        left.iter().map(|(_, account)| owed(account)).collect()
    }

    #[test]
    fn what_leaves_does_not_come_back() {
        let limit = Arc::new(Limit::sliding_window(Quota::per_minute(9)).unwrap());
        let (mut ledger, subjects) =
            (Ledger::new(10), ["a", "b", "c"].map(|name| Subject::of([name])));
        for subject in &subjects {
            ledger.spend(subject.as_str(), &limit, spending(2));
            ledger.spend(subject.as_str(), &limit, spending(3));
            ledger.spend(subject.as_str(), &limit, spending(0));
        }
        assert_eq!(costs(&ledger.leave(2)), [5, 5]);
        // What is spent meanwhile is another matter.
        subjects.iter().for_each(|subject| ledger.spend(subject.as_str(), &limit, spending(1)));
        assert_eq!(costs(&ledger.leave(9)), [5]);
        assert_eq!(costs(&ledger.leave(9)), [1, 1, 1]);
        assert!(ledger.is_empty());
    }

    #[test]
    fn it_grows_no_larger_than_it_may_and_says_what_it_left_out() {
        let limit = Arc::new(Limit::sliding_window(Quota::per_minute(9)).unwrap());
        let mut ledger = Ledger::new(2);
        for name in ["a", "b", "c", "a", "d"] {
            ledger.spend(name, &limit, spending(1));
        }
        assert_eq!((ledger.take_unwritten(), ledger.take_unwritten()), (2, 0));
        let mut left = costs(&ledger.leave(9));
        left.sort_unstable();
        assert_eq!(left, [1, 2]);
    }

    #[test]
    fn a_key_that_is_reset_owes_nothing() {
        let limit = Arc::new(Limit::concurrency(9, Duration::from_secs(9)).unwrap());
        let (mut ledger, subject) = (Ledger::new(9), Subject::of(["a"]));
        let key = Key::new(&subject, &limit);
        ledger.spend(key.subject(), &limit, spending(1));
        assert!(ledger.leave(0).is_empty());
        ledger.spend(key.subject(), &limit, spending(1));
        ledger.forget(&key);
        assert!(ledger.is_empty());
    }
}
