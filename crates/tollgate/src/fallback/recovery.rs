//! Recovery: probes the shared store, replays the outage ledger, then closes the breaker.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::FallbackStore;
use super::admissions::Debit;
use super::breaker::{Breaker, CallPermission};
use super::event::{Outage, StoreEvent};
use super::join_all::join_all;
use super::local_decisions::LocalDecisions;
use super::outage_ledger::{Account, AccountKey, ReplayCounts};
use crate::limit::Limit;
use crate::plan::{Key, Plan, Take};
use crate::quota::Quota;
use crate::store::{Store, StoreError};
use crate::subject::Subject;
use crate::time::{Clock, Timestamp};

/// Maximum number of concurrent debits.
const MAX_CONCURRENT_DEBITS: usize = 512;

/// Replay time after which the breaker closes although accounts are left.
const MAX_REPLAY_TIME: Duration = Duration::from_secs(1);

/// Key that a probe takes from, so that a probe also shows that the store accepts writes.
#[derive(Debug)]
pub(super) struct Probe {
    subject: Subject,
    limit: Limit,
}

impl Probe {
    pub(super) fn new() -> Self {
        // The bucket refills within a microsecond, so the store keeps nothing for long.
        const QUOTA: Quota = Quota::per_second(1_000_000);
        let limit = Limit::token_bucket(QUOTA).and_then(|limit| limit.in_rule("tollgate.probe"));
        Self { subject: Subject::of(["probe"]), limit: limit.unwrap_or_else(|_| Limit::block()) }
    }
}

/// Result of replaying one account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Replay {
    /// Nothing of it counts any more.
    Nothing,
    Done,
}

/// How long a replay goes on after the breaker has closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReplayUntil {
    LedgerEmpty,
    /// [`MAX_REPLAY_TIME`] has passed: a request waits for the replay.
    TimeUp,
}

/// Ensures that only one task at a time probes and replays. A request that probes may be dropped; then the guard
/// lets the next one try.
struct MaintenanceGuard<'f> {
    is_maintaining: &'f AtomicBool,
    breaker: &'f Breaker,
}

impl<'f> MaintenanceGuard<'f> {
    fn try_new(is_maintaining: &'f AtomicBool, breaker: &'f Breaker) -> Option<Self> {
        let is_first = !is_maintaining.swap(true, Ordering::AcqRel);
        is_first.then_some(Self { is_maintaining, breaker })
    }
}

impl Drop for MaintenanceGuard<'_> {
    fn drop(&mut self) {
        // No effect if the breaker has closed.
        self.breaker.reopen();
        self.is_maintaining.store(false, Ordering::Release);
    }
}

impl<S: Store, C: Clock, L: Store> FallbackStore<S, C, L> {
    /// Probes a lost shared store, and replays the outage ledger in a restored one. Then maintains both stores. Call
    /// it about once a second, with jitter between nodes.
    ///
    /// Takes as long as the shared store's replies; returns immediately if there is nothing to do.
    pub async fn maintain(&self) {
        self.maintain_until(ReplayUntil::LedgerEmpty).await;
        self.store.maintain().await;
        self.local.maintain().await;
    }

    /// Like [`maintain`](Self::maintain), within a request: leaves the rest of a long replay to the next call.
    pub(super) async fn maintain_briefly(&self) {
        self.maintain_until(ReplayUntil::TimeUp).await;
    }

    async fn maintain_until(&self, until: ReplayUntil) {
        let Some(_guard) = MaintenanceGuard::try_new(&self.is_maintaining, &self.breaker) else {
            return;
        };
        let permission = self.breaker.permission();
        if self.breaker.is_closed() {
            if !self.ledger.lock().is_empty() {
                let _ = self.replay_ledger(permission, until).await;
            }
            return;
        }
        self.breaker.half_open(self.clock.now());
        if self.probe().await.is_ok() {
            let _ = self.replay_ledger(permission, until).await;
        }
    }

    async fn probe(&self) -> Result<(), StoreError> {
        let take = Take::new(Key::new(&self.probe.subject, &self.probe.limit), 1);
        match self.store.take(&Plan::of_distinct([take])).await {
            Err(error) if error.is_transient() => {
                self.listener.notify(StoreEvent::Failed(&error));
                Err(error)
            }
            // Other errors, such as a foreign value under the probe's key, are replies too.
            _ => Ok(()),
        }
    }

    /// Debits the admissions of the ledger in the shared store, then closes the breaker.
    async fn replay_ledger(
        &self,
        permission: CallPermission,
        until: ReplayUntil,
    ) -> Result<(), StoreError> {
        let began = self.clock.now();
        loop {
            let is_late = self.clock.now() >= began + MAX_REPLAY_TIME;
            let batch = self.next_batch(permission, is_late, until);
            if batch.is_empty() {
                return Ok(());
            }
            let now = self.clock.now();
            let replays = batch.into_iter().map(|(key, account)| self.replay(key, account, now));
            let results = join_all(replays).await;
            let count = |is_counted: fn(&Result<Replay, StoreError>) -> bool| {
                results.iter().filter(|result| is_counted(result)).count() as u64
            };
            let replayed = count(|result| matches!(result, Ok(Replay::Done)));
            let dropped = count(Result::is_err);
            self.ledger.lock().add_counts(ReplayCounts { replayed, dropped });
            let errors = results.into_iter().filter_map(Result::err);
            // A key with an unreadable value does not stop the replay of the others.
            if let Some(error) = errors.into_iter().find(StoreError::is_transient) {
                return Err(error);
            }
        }
    }

    /// Returns the next accounts to replay. Closes the breaker if there are none, or if the replay is late.
    fn next_batch(
        &self,
        permission: CallPermission,
        is_late: bool,
        until: ReplayUntil,
    ) -> Vec<(AccountKey, Account)> {
        let now = self.clock.now();
        // Local decisions are recorded under this lock: none gets in between an empty ledger and the close.
        let mut ledger = self.ledger.lock();
        let batch = match is_late && until == ReplayUntil::TimeUp {
            true => Vec::new(),
            false => ledger.take_batch(MAX_CONCURRENT_DEBITS),
        };
        let lasted = match batch.is_empty() || is_late {
            true => self.breaker.close(permission, now),
            false => None,
        };
        let counts = if lasted.is_some() { ledger.take_counts() } else { ReplayCounts::default() };
        drop(ledger);
        if let Some(lasted) = lasted {
            let LocalDecisions { admitted, refused } = self.counters.take();
            let ReplayCounts { replayed: keys_replayed, dropped: keys_dropped } = counts;
            let outage = Outage { lasted, admitted, refused, keys_replayed, keys_dropped };
            self.listener.notify(StoreEvent::Restored(outage));
        }
        batch
    }

    /// Replays one account. It is never replayed twice, whatever the result.
    async fn replay(
        &self,
        key: AccountKey,
        account: Account,
        now: Timestamp,
    ) -> Result<Replay, StoreError> {
        let Account { limit, admissions, paused_until } = account;
        let key = Key::private(&key.subject, &limit);
        let (debits, mut replay) = (admissions.debits(&limit, now), Replay::Nothing);
        for chunk in debits.chunks(MAX_CONCURRENT_DEBITS) {
            // Concurrently: in sequence, every debit would delay recovery by one round trip.
            let results = join_all(chunk.iter().map(|debit| self.replay_debit(&key, *debit))).await;
            let errors = results.iter().filter_map(|result| result.as_ref().err());
            errors.for_each(|error| self.listener.notify(StoreEvent::Failed(error)));
            results.into_iter().collect::<Result<(), _>>()?;
            replay = Replay::Done;
        }
        if let Some(until) = paused_until.filter(|until| *until > now) {
            let length = Duration::from_micros(until.as_micros() - now.as_micros());
            let result = self.store.pause(&key, length).await;
            result.inspect_err(|error| self.listener.notify(StoreEvent::Failed(error)))?;
            replay = Replay::Done;
        }
        Ok(replay)
    }

    async fn replay_debit(&self, key: &Key<'_>, debit: Debit) -> Result<(), StoreError> {
        let plan = Plan::of_distinct([Take::new(*key, debit.cost)]);
        match debit.permit {
            None => self.store.debit(&plan, debit.age).await.map(drop),
            // Take the slots under their permit, so that its holder can release them. A refusal means that no slot
            // is free to take.
            Some(permit) => self.store.take(&plan.with_permit(permit)).await.map(drop),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fallback::BreakerState;

    #[test]
    fn dropped_probe_lets_the_next_one_start() {
        let (is_maintaining, breaker) =
            (AtomicBool::new(false), Breaker::new(1, Duration::from_secs(30)));
        assert!(breaker.record_failure(breaker.permission(), Timestamp::EPOCH).is_some());
        let guard = MaintenanceGuard::try_new(&is_maintaining, &breaker);
        breaker.half_open(Timestamp::EPOCH);
        assert!(MaintenanceGuard::try_new(&is_maintaining, &breaker).is_none());
        drop(guard);
        assert_eq!(breaker.state(), BreakerState::Open);
        assert!(MaintenanceGuard::try_new(&is_maintaining, &breaker).is_some());
    }
}
