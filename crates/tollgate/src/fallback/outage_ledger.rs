//! Outage ledger: per key, the admissions and pauses to replay in the shared store after an outage.

use std::collections::HashMap;
use std::mem;
use std::sync::Arc;
use std::time::Duration;

use foldhash::fast::RandomState;

use super::admissions::{Admission, Admissions};
use crate::decision::Permit;
use crate::limit::Limit;
use crate::plan::Key;
use crate::time::Timestamp;

/// The outage ledger. An account leaves it once, whether or not its replay succeeds.
#[derive(Debug)]
pub(super) struct Ledger {
    accounts: HashMap<AccountKey, Account, RandomState>,
    /// The rest of the accounts whose replay has begun.
    replaying: HashMap<AccountKey, Account, RandomState>,
    max_keys: usize,
    /// Time of the last removal of expired accounts.
    swept_at: Timestamp,
    counts: ReplayCounts,
}

/// Numbers of keys that were replayed, and of keys that were not: the replay failed, or the ledger was full.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct ReplayCounts {
    pub(super) replayed: u64,
    pub(super) dropped: u64,
}

/// Minimum time between two removals of expired accounts from a full ledger.
const SWEEP_INTERVAL: Duration = Duration::from_secs(1);

/// Storage identity of a limit, and a subject.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct AccountKey {
    identity: String,
    pub(super) subject: String,
}

/// Admissions and pause of one key.
#[derive(Debug)]
pub(super) struct Account {
    pub(super) limit: Arc<Limit>,
    pub(super) admissions: Admissions,
    pub(super) paused_until: Option<Timestamp>,
}

impl Ledger {
    pub(super) fn new(max_keys: usize) -> Self {
        Self {
            accounts: HashMap::default(),
            replaying: HashMap::default(),
            max_keys,
            swept_at: Timestamp::EPOCH,
            counts: ReplayCounts::default(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.accounts.is_empty() && self.replaying.is_empty()
    }

    /// Returns the counts since the last call, and resets them.
    pub(super) fn take_counts(&mut self) -> ReplayCounts {
        mem::take(&mut self.counts)
    }

    pub(super) fn add_counts(&mut self, counts: ReplayCounts) {
        self.counts.replayed += counts.replayed;
        self.counts.dropped += counts.dropped;
    }

    /// Records an admission of a key.
    pub(super) fn admit(
        &mut self,
        subject: &str,
        limit: &Arc<Limit>,
        admission: Admission,
        now: Timestamp,
    ) {
        if admission.cost > 0
            && let Some(account) = self.account(subject, limit, now)
        {
            account.admissions.add(&account.limit, admission, now);
        }
    }

    /// Records a pause of `length` from now.
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

    pub(super) fn refund(&mut self, key: &Key<'_>, cost: u64, now: Timestamp) {
        // The first account has the newest admissions.
        if let Some(account) = self.accounts_of(&AccountKey::of(key)).next() {
            account.admissions.refund(&account.limit, cost, now);
        }
    }

    pub(super) fn forget(&mut self, key: &Key<'_>) {
        let key = AccountKey::of(key);
        self.accounts.remove(&key);
        self.replaying.remove(&key);
    }

    /// Removes the slots of a permit. Returns true if any were in use.
    pub(super) fn release(&mut self, permit: &Permit, now: Timestamp) -> bool {
        let mut is_held = false;
        self.for_each_held(permit, |account| {
            is_held |= account.admissions.release(&account.limit, permit.id(), now);
        });
        is_held
    }

    /// Restarts the ttl of the slots of a permit. Returns the time when the first of them expires; `None` if none
    /// were in use.
    pub(super) fn renew(&mut self, permit: &Permit, now: Timestamp) -> Option<Timestamp> {
        let mut first: Option<Timestamp> = None;
        self.for_each_held(permit, |account| {
            if account.admissions.renew(&account.limit, permit.id(), now) {
                let expires_at = now + account.limit.ttl().unwrap_or_default();
                first = Some(first.map_or(expires_at, |first| first.min(expires_at)));
            }
        });
        first
    }

    /// Removes and returns some accounts: at least one, with at most `max_debits` debits together.
    pub(super) fn take_batch(&mut self, max_debits: usize) -> Vec<(AccountKey, Account)> {
        if self.replaying.is_empty() {
            mem::swap(&mut self.replaying, &mut self.accounts);
        }
        // Iteration visits every bucket, so shrink a table that is mostly empty.
        if self.replaying.len() < self.replaying.capacity() / 4 {
            self.replaying.shrink_to_fit();
        }
        let mut debits = 0;
        let fits = |_: &AccountKey, account: &mut Account| {
            let is_first = debits == 0;
            debits += account.admissions.len().max(1);
            is_first || debits <= max_debits
        };
        self.replaying.extract_if(fits).take(max_debits.max(1)).collect()
    }

    fn for_each_held(&mut self, permit: &Permit, mut change: impl FnMut(&mut Account)) {
        for held in permit.held() {
            let (identity, subject) = (held.identity().to_owned(), held.subject().to_owned());
            self.accounts_of(&AccountKey { identity, subject }).for_each(&mut change);
        }
    }

    /// Returns the accounts of a key: the current one, and the one that waits for its replay.
    fn accounts_of(&mut self, key: &AccountKey) -> impl Iterator<Item = &mut Account> {
        self.accounts.get_mut(key).into_iter().chain(self.replaying.get_mut(key))
    }

    /// Returns the account of a key, and creates it if missing; `None` if the ledger is full.
    fn account(
        &mut self,
        subject: &str,
        limit: &Arc<Limit>,
        now: Timestamp,
    ) -> Option<&mut Account> {
        let key = AccountKey { identity: limit.identity(), subject: subject.to_owned() };
        if self.is_full() && !self.accounts.contains_key(&key) {
            self.sweep(now);
            if self.is_full() {
                self.counts.dropped += 1;
                return None;
            }
        }
        let account = self.accounts.entry(key).or_insert_with(|| Account::new(limit));
        // The replay uses the current quota of the limit.
        account.limit = Arc::clone(limit);
        Some(account)
    }

    fn is_full(&self) -> bool {
        self.accounts.len() + self.replaying.len() >= self.max_keys
    }

    /// Removes expired accounts, at most once per [`SWEEP_INTERVAL`].
    fn sweep(&mut self, now: Timestamp) {
        if now >= self.swept_at + SWEEP_INTERVAL {
            self.swept_at = now;
            self.accounts.retain(|_, account| !account.is_expired(now));
        }
    }
}

impl AccountKey {
    fn of(key: &Key<'_>) -> Self {
        Self { identity: key.limit().identity(), subject: key.subject().to_owned() }
    }
}

impl Account {
    fn new(limit: &Arc<Limit>) -> Self {
        Self { limit: Arc::clone(limit), admissions: Admissions::new(limit), paused_until: None }
    }

    fn is_expired(&self, now: Timestamp) -> bool {
        let is_paused = self.paused_until.is_some_and(|until| until > now);
        !is_paused && self.admissions.is_expired(&self.limit, now)
    }
}

#[cfg(test)]
mod tests;
