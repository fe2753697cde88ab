//! Recovery: probes the shared store, replays the outage ledger, then closes the breaker.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

use super::FallbackStore;
use super::breaker::{Breaker, CallPermission};
use super::event::{Outage, StoreEvent};
use super::join_all::join_all;
use super::local_decisions::LocalDecisions;
use super::outage_ledger::ReplayCounts;
use super::replay::{Batch, MAX_CONCURRENT_DEBITS, stop_if_transient};
use crate::limit::Limit;
use crate::plan::{Key, Plan, Take};
use crate::quota::Quota;
use crate::store::{Store, StoreError, StoreErrorKind};
use crate::subject::Subject;
use crate::time::{Clock, Timestamp};

/// Time from the first successful probe after which the breaker closes although accounts are left.
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

/// State of recovery that outlasts one call of `maintain`.
#[derive(Debug, Default)]
pub(super) struct Recovery {
    is_maintaining: AtomicBool,
    /// Time of the first successful probe since the breaker opened, unless no call succeeded since.
    began: Mutex<Option<Timestamp>>,
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

impl<S, C, L> FallbackStore<S, C, L> {
    /// Returns the number of keys with admissions or pauses to replay in the shared store, including some that no longer
    /// count. They are lost if the process ends now.
    ///
    /// ```
    /// use tollgate::{FallbackStore, MemoryStore};
    ///
    /// let store = FallbackStore::builder(MemoryStore::new()).build();
    /// assert_eq!(store.keys_to_replay(), 0);
    /// ```
    #[must_use]
    pub fn keys_to_replay(&self) -> usize {
        self.ledger.lock().len()
    }
}

impl<S: Store, C: Clock, L: Store> FallbackStore<S, C, L> {
    /// Probes a lost shared store, and replays the outage ledger in a restored one. Then maintains both stores. Call
    /// it about once a second, with jitter between nodes, and once more before the process ends.
    ///
    /// Takes as long as the shared store's replies; returns immediately if there is nothing to do. If the future is
    /// dropped, debits that were sent count as spent and are not sent again; all others stay in the ledger.
    pub async fn maintain(&self) {
        self.maintain_until(ReplayUntil::LedgerEmpty).await;
        self.replay_reservations().await;
        self.store.maintain().await;
        self.local.maintain().await;
    }

    /// Like [`maintain`](Self::maintain), within a request: leaves the rest of a long replay to the next call.
    pub(super) async fn maintain_briefly(&self) {
        self.maintain_until(ReplayUntil::TimeUp).await;
    }

    async fn maintain_until(&self, until: ReplayUntil) {
        let Recovery { is_maintaining, began } = &self.recovery;
        let Some(_guard) = MaintenanceGuard::try_new(is_maintaining, &self.breaker) else {
            return;
        };
        let permission = self.breaker.permission();
        let is_closed = self.breaker.is_closed();
        if is_closed && self.ledger.lock().is_empty() {
            return;
        }
        self.breaker.half_open(self.clock.now());
        // Also while the breaker is closed: a debit that times out is lost, a probe costs nothing.
        if self.probe().await.is_err() {
            *began.lock() = None;
            return;
        }
        let probed_at = self.clock.now();
        let began_at = match is_closed {
            true => probed_at,
            false => *began.lock().get_or_insert(probed_at),
        };
        self.replay_ledger(permission, began_at, until).await;
    }

    async fn probe(&self) -> Result<(), StoreError> {
        let take = Take::new(Key::new(&self.probe.subject, &self.probe.limit), 1);
        match self.store.take(&Plan::of_distinct([take])).await {
            Err(error) if error.is_transient() => {
                if error.kind() != StoreErrorKind::Overloaded {
                    self.listener.notify(StoreEvent::Failed(&error));
                }
                Err(error)
            }
            // Other errors, such as a foreign value under the probe's key, are replies too.
            _ => Ok(()),
        }
    }

    /// Debits the admissions of the ledger in the shared store, then closes the breaker. Stops at the first batch with
    /// an error: its debits wait for the next call, behind all others.
    async fn replay_ledger(
        &self,
        permission: CallPermission,
        began_at: Timestamp,
        until: ReplayUntil,
    ) {
        let mut has_reply = false;
        loop {
            let now = self.clock.now();
            let is_late = now >= began_at + MAX_REPLAY_TIME;
            let mut batch = self.next_batch(permission, is_late, until);
            if batch.is_empty() {
                return;
            }
            let results = join_all(batch.iter_mut().map(|account| self.replay(account, now))).await;
            has_reply |= batch.has_reply();
            drop(batch);
            if stop_if_transient(results).is_err() {
                // Debits of a part of the store, such as one server of a cluster, may fail as long as that part is
                // lost. They do not keep the breaker open: the next call is late.
                if !has_reply {
                    *self.recovery.began.lock() = None;
                }
                return;
            }
        }
    }

    /// Returns the next accounts to replay. Closes the breaker if there are none, or if the replay is late.
    fn next_batch(
        &self,
        permission: CallPermission,
        is_late: bool,
        until: ReplayUntil,
    ) -> Batch<'_, C> {
        let now = self.clock.now();
        // Local decisions are recorded under this lock: none gets in between an empty ledger and the close.
        let mut ledger = self.ledger.lock();
        let accounts = match is_late && until == ReplayUntil::TimeUp {
            true => Vec::new(),
            false => ledger.take_batch(MAX_CONCURRENT_DEBITS),
        };
        let lasted = match accounts.is_empty() || is_late {
            true => self.breaker.close(permission, now),
            false => None,
        };
        let counts = if lasted.is_some() { ledger.take_counts() } else { ReplayCounts::default() };
        drop(ledger);
        let batch = Batch::new((&self.ledger, &self.clock), accounts, now);
        if let Some(lasted) = lasted {
            *self.recovery.began.lock() = None;
            let LocalDecisions { admitted, refused } = self.counters.take();
            let ReplayCounts { replayed: keys_replayed, dropped: keys_dropped } = counts;
            let outage = Outage { lasted, admitted, refused, keys_replayed, keys_dropped };
            self.listener.notify(StoreEvent::Restored(outage));
        }
        batch
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
