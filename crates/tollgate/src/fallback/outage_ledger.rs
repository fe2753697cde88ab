//! Outage ledger: per key, the admissions and pauses to replay in the shared store after an outage.

mod accounts_in_replay;

use std::collections::{HashMap, VecDeque};
use std::mem;
use std::sync::Arc;
use std::time::Duration;

use foldhash::fast::RandomState;

use super::admissions::{Admission, Admissions};
use crate::decision::{HeldKey, Permit};
use crate::limit::Limit;
use crate::plan::Key;
use crate::time::Timestamp;
use accounts_in_replay::AccountsInReplay;

/// The outage ledger. An account leaves it for its replay; debits that surely did not run return to it.
#[derive(Debug)]
pub(super) struct Ledger {
    accounts: HashMap<Arc<AccountKey>, Account, RandomState>,
    /// The keys of all accounts in the order of their replay. May also contain keys of removed accounts.
    queue: VecDeque<Arc<AccountKey>>,
    in_replay: AccountsInReplay,
    max_keys: usize,
    /// Number of keys that left the queue.
    #[cfg(test)]
    visited: usize,
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

/// Number of keys of removed accounts in the queue that are accepted before it is compacted.
const MAX_STALE_KEYS: usize = 1024;

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
            queue: VecDeque::new(),
            in_replay: AccountsInReplay::default(),
            max_keys,
            #[cfg(test)]
            visited: 0,
            swept_at: Timestamp::EPOCH,
            counts: ReplayCounts::default(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.accounts.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.accounts.is_empty()
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
        if let Some(account) = self.accounts.get_mut(&AccountKey::of(key)) {
            account.admissions.refund(&account.limit, cost, now);
        }
    }

    pub(super) fn forget(&mut self, key: &Key<'_>) {
        let key = AccountKey::of(key);
        self.in_replay.reset(&key);
        self.accounts.remove(&key);
        if self.queue.len() > 2 * self.accounts.len() + MAX_STALE_KEYS {
            self.compact_queue();
        }
    }

    /// Removes the slots of a permit, also from accounts in replay. Returns true if any of the others were in use.
    pub(super) fn release(&mut self, permit: &Permit, now: Timestamp) -> bool {
        let mut is_held = false;
        for key in AccountKey::held_by(permit) {
            self.in_replay.release(&key, permit.id());
            if let Some(account) = self.accounts.get_mut(&key) {
                is_held |= account.admissions.release(&account.limit, permit.id(), now);
            }
        }
        is_held
    }

    /// Restarts the ttl of the slots of a permit. Returns the time when the first of them expires; `None` if none
    /// were in use.
    pub(super) fn renew(&mut self, permit: &Permit, now: Timestamp) -> Option<Timestamp> {
        let mut first: Option<Timestamp> = None;
        for key in AccountKey::held_by(permit) {
            if let Some(account) = self.accounts.get_mut(&key)
                && account.admissions.renew(&account.limit, permit.id(), now)
            {
                let expires_at = now + account.limit.ttl().unwrap_or_default();
                first = Some(first.map_or(expires_at, |first| first.min(expires_at)));
            }
        }
        first
    }

    /// Removes and returns the accounts that wait longest: at least one, with at most `max_debits` debits together. Call
    /// [`end_replay`](Self::end_replay) for each of them.
    pub(super) fn take_batch(&mut self, max_debits: usize) -> Vec<(Arc<AccountKey>, Account)> {
        let (mut batch, mut debits) = (Vec::new(), 0);
        while let Some(key) = self.queue.pop_front() {
            #[cfg(test)]
            {
                self.visited += 1;
            }
            let Some(account) = self.accounts.get(&key) else { continue };
            debits += account.admissions.len().max(1);
            if debits > max_debits && !batch.is_empty() {
                self.queue.push_front(key);
                break;
            }
            self.in_replay.begin(&key);
            batch.extend(self.accounts.remove_entry(&key));
        }
        if self.accounts.is_empty() {
            // Releases the memory of a large outage.
            (self.accounts, self.queue) = (HashMap::default(), VecDeque::new());
        }
        batch
    }

    /// Ends the replay of an account. Its `rest` returns to the ledger, also to a full one, without the slots that were
    /// released meanwhile, and not if its key was reset.
    pub(super) fn end_replay(
        &mut self,
        key: Arc<AccountKey>,
        rest: Option<Account>,
        now: Timestamp,
    ) {
        let Some(mut account) = self.in_replay.end(&key, rest, now) else { return };
        match self.accounts.get_mut(&key) {
            // The key was admitted again during the replay.
            Some(newer) => {
                account.limit = Arc::clone(&newer.limit);
                account.paused_until = account.paused_until.max(newer.paused_until);
                account.admissions.append(&account.limit, &mut newer.admissions, now);
                *newer = account;
            }
            None => {
                self.queue.push_back(Arc::clone(&key));
                self.accounts.insert(key, account);
            }
        }
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
        let key = Arc::new(key);
        let account = self.accounts.entry(Arc::clone(&key)).or_insert_with(|| {
            self.queue.push_back(key);
            Account::new(limit)
        });
        // The replay uses the current quota of the limit.
        account.limit = Arc::clone(limit);
        Some(account)
    }

    fn is_full(&self) -> bool {
        self.accounts.len() >= self.max_keys
    }

    /// Removes expired accounts, at most once per [`SWEEP_INTERVAL`].
    fn sweep(&mut self, now: Timestamp) {
        if now >= self.swept_at + SWEEP_INTERVAL {
            self.swept_at = now;
            self.accounts.retain(|_, account| !account.is_expired(now));
            self.compact_queue();
        }
    }

    /// Removes the keys of removed accounts from the queue.
    fn compact_queue(&mut self) {
        let accounts = &self.accounts;
        // By pointer: the key of a removed account may have a new account.
        let is_current = |queued: &Arc<AccountKey>| {
            let current = accounts.get_key_value(queued);
            current.is_some_and(|(key, _)| Arc::ptr_eq(key, queued))
        };
        self.queue.retain(is_current);
    }
}

impl AccountKey {
    fn of(key: &Key<'_>) -> Self {
        Self { identity: key.limit().identity(), subject: key.subject().to_owned() }
    }

    fn held_by(permit: &Permit) -> impl Iterator<Item = Self> {
        let key = |held: &HeldKey| Self {
            identity: held.identity().to_owned(),
            subject: held.subject().to_owned(),
        };
        permit.held().iter().map(key)
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
