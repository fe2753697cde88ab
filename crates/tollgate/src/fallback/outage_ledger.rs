//! What was spent while the store could not be asked, key by key, until the store is told.

use std::collections::HashMap;
use std::mem;
use std::sync::Arc;
use std::time::Duration;

use foldhash::fast::RandomState;

use super::spending::{Spending, Spent};
use crate::limit::Limit;
use crate::permit::Permit;
use crate::plan::Key;
use crate::time::Timestamp;

/// The spendings of every key. Each leaves it once, whether or not the store could be told.
#[derive(Debug)]
pub(super) struct Ledger {
    accounts: HashMap<Name, Account, RandomState>,
    /// What is being told, when it could not be told to the end.
    leaving: HashMap<Name, Account, RandomState>,
    max_keys: usize,
    /// When accounts that owe nothing were last looked for.
    swept_at: Timestamp,
    told: Told,
}

/// Of how many keys the store has been told, and of how many it was not: it failed, or they found no place here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Told {
    pub(super) told: u64,
    pub(super) untold: u64,
}

/// How often accounts that owe nothing are looked for when there is no place.
const SWEEP: Duration = Duration::from_secs(1);

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
        let (accounts, leaving) = (HashMap::default(), HashMap::default());
        Self { accounts, leaving, max_keys, swept_at: Timestamp::EPOCH, told: Told::default() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.accounts.is_empty() && self.leaving.is_empty()
    }

    /// Of how many keys the store was and was not told, since this was last asked.
    pub(super) fn take_told(&mut self) -> Told {
        mem::take(&mut self.told)
    }

    /// Notes of how many the store was and was not told.
    pub(super) fn note(&mut self, told: Told) {
        self.told.told += told.told;
        self.told.untold += told.untold;
    }

    pub(super) fn spend(
        &mut self,
        subject: &str,
        limit: &Arc<Limit>,
        spending: Spending,
        now: Timestamp,
    ) {
        if spending.cost > 0
            && let Some(account) = self.account(subject, limit, now)
        {
            account.spent.add(&account.limit, spending, now);
        }
    }

    /// Remembers a pause of so long from now.
    pub(super) fn pause(
        &mut self,
        subject: &str,
        limit: &Arc<Limit>,
        now: Timestamp,
        length: Duration,
    ) {
        if let Some(account) = self.account(subject, limit, now) {
            account.paused_until = account.paused_until.max(Some(now + length));
        }
    }

    pub(super) fn refund_receipt(&mut self, key: &Key<'_>, cost: u64, now: Timestamp) {
        // The newest first.
        if let Some(account) = self.accounts_of(&Name::of(key)).next() {
            account.spent.refund_receipt(&account.limit, cost, now);
        }
    }

    pub(super) fn forget(&mut self, key: &Key<'_>) {
        let name = Name::of(key);
        self.accounts.remove(&name);
        self.leaving.remove(&name);
    }

    /// Forgets the slots of a permit, and tells whether any were in use.
    pub(super) fn release(&mut self, permit: &Permit, now: Timestamp) -> bool {
        let mut is_held = false;
        self.each_of(permit, |account| {
            is_held |= account.spent.release(&account.limit, permit.id(), now);
        });
        is_held
    }

    /// Lets the slots of a permit last as long again, and tells when the first of them returns; none if none
    /// were in use.
    pub(super) fn renew(&mut self, permit: &Permit, now: Timestamp) -> Option<Timestamp> {
        let mut first: Option<Timestamp> = None;
        self.each_of(permit, |account| {
            if account.spent.renew(&account.limit, permit.id(), now) {
                let until = now + account.limit.ttl().unwrap_or_default();
                first = Some(first.map_or(until, |first| first.min(until)));
            }
        });
        first
    }

    /// Some accounts, for good: one at least, and no more than come to so many debits.
    pub(super) fn leave(&mut self, most_debits: usize) -> Vec<(Name, Account)> {
        if self.leaving.is_empty() {
            mem::swap(&mut self.leaving, &mut self.accounts);
        }
        // Looking for what is left in a table that is mostly empty would take ever longer.
        if self.leaving.len() < self.leaving.capacity() / 4 {
            self.leaving.shrink_to_fit();
        }
        let mut debits = 0;
        let fits = |_: &Name, account: &mut Account| {
            let is_first = debits == 0;
            debits += account.spent.len().max(1);
            is_first || debits <= most_debits
        };
        self.leaving.extract_if(fits).take(most_debits.max(1)).collect()
    }

    fn each_of(&mut self, permit: &Permit, mut change: impl FnMut(&mut Account)) {
        for held in permit.held() {
            let name =
                Name { scope: held.identity().to_owned(), subject: held.subject().to_owned() };
            self.accounts_of(&name).for_each(&mut change);
        }
    }

    /// What a name owes, and what of it is leaving.
    fn accounts_of(&mut self, name: &Name) -> impl Iterator<Item = &mut Account> {
        self.accounts.get_mut(name).into_iter().chain(self.leaving.get_mut(name))
    }

    /// The key's account, made if there is none; none if there is no place.
    fn account(
        &mut self,
        subject: &str,
        limit: &Arc<Limit>,
        now: Timestamp,
    ) -> Option<&mut Account> {
        let name = Name { scope: limit.identity(), subject: subject.to_owned() };
        if self.is_full() && !self.accounts.contains_key(&name) {
            self.sweep(now);
            if self.is_full() {
                self.told.untold += 1;
                return None;
            }
        }
        let account = self.accounts.entry(name).or_insert_with(|| Account::new(limit));
        // It is owed under the numbers of now.
        account.limit = Arc::clone(limit);
        Some(account)
    }

    fn is_full(&self) -> bool {
        self.accounts.len() + self.leaving.len() >= self.max_keys
    }

    /// Forgets who owes nothing any more, now and then.
    fn sweep(&mut self, now: Timestamp) {
        if now >= self.swept_at + SWEEP {
            self.swept_at = now;
            self.accounts.retain(|_, account| !account.is_over(now));
        }
    }
}

impl Name {
    fn of(key: &Key<'_>) -> Self {
        Self { scope: key.limit().identity(), subject: key.subject().to_owned() }
    }
}

impl Account {
    fn new(limit: &Arc<Limit>) -> Self {
        Self { limit: Arc::clone(limit), spent: Spent::new(limit), paused_until: None }
    }

    fn is_over(&self, now: Timestamp) -> bool {
        let is_paused = self.paused_until.is_some_and(|until| until > now);
        !is_paused && self.spent.is_over(&self.limit, now)
    }
}

#[cfg(test)]
mod tests;
