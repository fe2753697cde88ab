//! Replay of accounts in the shared store. Debits that surely did not run return to the outage ledger, also if recovery
//! is cancelled. Debits that may have run are never sent again.

use std::slice::IterMut;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use super::FallbackStore;
use super::admissions::Debit;
use super::event::StoreEvent;
use super::join_all::join_all;
use super::outage_ledger::{Account, AccountKey, Ledger, ReplayCounts};
use crate::plan::{Key, Plan, Take};
use crate::store::{Store, StoreError, StoreErrorKind};
use crate::time::{Clock, Timestamp};

/// Maximum number of concurrent debits.
pub(super) const MAX_CONCURRENT_DEBITS: usize = 512;

/// Accounts that have left the ledger for their replay. Dropping it settles them.
pub(super) struct Batch<'f, C: Clock> {
    ledger: &'f Mutex<Ledger>,
    clock: &'f C,
    accounts: Vec<AccountReplay>,
}

/// The replay of one account.
pub(super) struct AccountReplay {
    key: Arc<AccountKey>,
    account: Account,
    debits: Vec<(Debit, Progress)>,
    is_pause_done: bool,
}

/// Progress of one debit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Progress {
    /// Not sent, or failed before it ran.
    NotRun,
    /// Sent, without a reply. A call is sent at its first poll.
    Sent,
    Done,
    /// Failed. It may have run, or would fail again.
    Dropped,
}

impl<'f, C: Clock> Batch<'f, C> {
    pub(super) fn new(
        (ledger, clock): (&'f Mutex<Ledger>, &'f C),
        accounts: Vec<(Arc<AccountKey>, Account)>,
        now: Timestamp,
    ) -> Self {
        let replay = |(key, account)| AccountReplay::new(key, account, now);
        Self { ledger, clock, accounts: accounts.into_iter().map(replay).collect() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.accounts.is_empty()
    }

    pub(super) fn iter_mut(&mut self) -> IterMut<'_, AccountReplay> {
        self.accounts.iter_mut()
    }

    /// Returns true if the shared store replied to a debit or a pause.
    pub(super) fn has_reply(&self) -> bool {
        self.accounts.iter().any(AccountReplay::has_reply)
    }
}

impl<C: Clock> Drop for Batch<'_, C> {
    fn drop(&mut self) {
        if self.accounts.is_empty() {
            return;
        }
        let now = self.clock.now();
        let mut ledger = self.ledger.lock();
        for replay in self.accounts.drain(..) {
            replay.settle(&mut ledger, now);
        }
    }
}

impl AccountReplay {
    fn new(key: Arc<AccountKey>, mut account: Account, now: Timestamp) -> Self {
        let debits = account.admissions.debits(&account.limit, now);
        let debits = debits.into_iter().map(|debit| (debit, Progress::NotRun)).collect();
        account.paused_until = account.paused_until.filter(|until| *until > now);
        Self { key, account, debits, is_pause_done: false }
    }

    fn has(&self, wanted: Progress) -> bool {
        self.debits.iter().any(|(_, progress)| *progress == wanted)
    }

    fn has_reply(&self) -> bool {
        self.is_pause_done || self.has(Progress::Done)
    }

    /// Counts the account, and returns the debits that did not run to the ledger.
    fn settle(mut self, ledger: &mut Ledger, now: Timestamp) {
        let has_rest = self.has(Progress::NotRun) || self.account.paused_until.is_some();
        let is_dropped = self.has(Progress::Sent) || self.has(Progress::Dropped);
        let is_replayed = !has_rest && !is_dropped && self.has_reply();
        ledger.add_counts(ReplayCounts {
            replayed: u64::from(is_replayed),
            dropped: u64::from(is_dropped),
        });
        let is_kept = |index| matches!(self.debits.get(index), Some((_, Progress::NotRun)));
        self.account.admissions.keep(is_kept);
        ledger.end_replay(self.key, has_rest.then_some(self.account), now);
    }
}

impl<S: Store, C: Clock, L: Store> FallbackStore<S, C, L> {
    /// Sends the debits of one account, then its pause. Stops at an error after which a later call may succeed.
    pub(super) async fn replay(
        &self,
        replay: &mut AccountReplay,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let AccountReplay { key, account, debits, is_pause_done } = replay;
        let Account { limit, paused_until, .. } = account;
        let key = Key::private(&key.subject, limit);
        for chunk in debits.chunks_mut(MAX_CONCURRENT_DEBITS) {
            // Concurrently: in sequence, every debit would delay recovery by one round trip.
            let calls = chunk.iter_mut().map(|(debit, progress)| {
                let debit = *debit;
                self.replay_debit(&key, debit, progress)
            });
            stop_if_transient(join_all(calls).await)?;
        }
        if let Some(until) = *paused_until {
            let length = Duration::from_micros(until.as_micros() - now.as_micros());
            let result = self.store.pause(&key, length).await;
            let is_transient = result.as_ref().is_err_and(StoreError::is_transient);
            // A pause may be sent again: it ends at the same time.
            if !is_transient {
                (*paused_until, *is_pause_done) = (None, result.is_ok());
            }
            stop_if_transient([self.report_replay(result)])?;
        }
        Ok(())
    }

    async fn replay_debit(
        &self,
        key: &Key<'_>,
        debit: Debit,
        progress: &mut Progress,
    ) -> Result<(), StoreError> {
        *progress = Progress::Sent;
        let plan = Plan::of_distinct([Take::new(*key, debit.cost)]);
        let result = match debit.permit {
            None => self.store.debit(&plan, debit.age).await.map(drop),
            // Take the slots under their permit, so that its holder can release them. A refusal means that no slot
            // is free to take.
            Some(permit) => self.store.take(&plan.with_permit(permit)).await.map(drop),
        };
        *progress = match &result {
            Ok(()) => Progress::Done,
            Err(error) if error.is_transient() && !error.may_have_run() => Progress::NotRun,
            Err(_) => Progress::Dropped,
        };
        self.report_replay(result)
    }

    /// Notifies the listener of a failed call. An overloaded one is not a failure of the store.
    fn report_replay(&self, result: Result<(), StoreError>) -> Result<(), StoreError> {
        result.inspect_err(|error| {
            if error.kind() != StoreErrorKind::Overloaded {
                self.listener.notify(StoreEvent::Failed(error));
            }
        })
    }
}

/// Returns the first error after which a later call may succeed. An unreadable key does not stop a replay.
pub(super) fn stop_if_transient(
    results: impl IntoIterator<Item = Result<(), StoreError>>,
) -> Result<(), StoreError> {
    let mut errors = results.into_iter().filter_map(Result::err);
    errors.find(StoreError::is_transient).map_or(Ok(()), Err)
}
