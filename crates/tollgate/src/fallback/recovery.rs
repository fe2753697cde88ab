//! Looking after a store: whether it answers again, and what it must be told before it decides again.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use super::FallbackStore;
use super::breaker::{Asked, Breaker};
use super::event::{Outage, StoreEvent};
use super::ledger::{Account, Name};
use super::spent::Debit;
use super::together::together;
use crate::clock::Clock;
use crate::limit::Limit;
use crate::plan::{Key, Plan, Take};
use crate::quota::Quota;
use crate::store::{Store, StoreError};
use crate::subject::Subject;
use crate::time::Timestamp;

/// As many keys are told of at once.
const AT_ONCE: usize = 128;

/// After so long the store decides again although it has not been told of every key.
const LONGEST: Duration = Duration::from_secs(1);

/// What is taken to see whether a store can be written to.
#[derive(Debug)]
pub(super) struct Probe {
    subject: Subject,
    limit: Limit,
}

impl Probe {
    pub(super) fn new() -> Self {
        // A bucket that is full again at once: nothing is kept for longer than a moment.
        const QUOTA: Quota = Quota::per_second(1_000_000);
        let limit = Limit::token_bucket(QUOTA).and_then(|limit| limit.in_rule("tollgate.probe"));
        Self { subject: Subject::of(["probe"]), limit: limit.unwrap_or_else(|_| Limit::block()) }
    }
}

/// What has been told so far, and what could not be.
#[derive(Debug, Default)]
struct Told {
    told: AtomicU64,
    untold: AtomicU64,
}

/// One at a time looks after a store, also if its future is dropped: a request that tries the store may be given
/// up, and others must be able to try again.
struct Attending<'f> {
    is_attended: &'f AtomicBool,
    breaker: &'f Breaker,
}

impl<'f> Attending<'f> {
    fn begin(is_attended: &'f AtomicBool, breaker: &'f Breaker) -> Option<Self> {
        let is_first = !is_attended.swap(true, Ordering::AcqRel);
        is_first.then_some(Self { is_attended, breaker })
    }
}

impl Drop for Attending<'_> {
    fn drop(&mut self) {
        // Unless it has been closed.
        self.breaker.stay_open();
        self.is_attended.store(false, Ordering::Release);
    }
}

impl<S: Store, C: Clock> FallbackStore<S, C> {
    /// Looks after the store: tries whether it answers again if it is lost, and tells it what was spent
    /// without it. Call it about once a second, with some jitter among nodes.
    ///
    /// It takes as long as the store takes to answer, and nothing when all is well.
    pub async fn attend(&self) {
        let Some(_attending) = Attending::begin(&self.is_attended, &self.breaker) else { return };
        let asked = self.breaker.asked();
        if self.breaker.is_closed() {
            if !self.ledger.lock().is_empty() {
                let _ = self.settle(asked).await;
            }
            return;
        }
        self.breaker.try_store(self.clock.now());
        if self.probe().await.is_ok() {
            let _ = self.settle(asked).await;
        }
    }

    async fn probe(&self) -> Result<(), StoreError> {
        let take = Take::new(Key::new(&self.probe.subject, &self.probe.limit), 1);
        let answer = self.store.take(&Plan::of_distinct([take])).await;
        answer.map(drop).inspect_err(|error| self.listener.tell(StoreEvent::Failed(error)))
    }

    /// Tells the store of what was spent, then lets it decide again.
    async fn settle(&self, asked: Asked) -> Result<(), StoreError> {
        let (began, told) = (self.clock.now(), Told::default());
        loop {
            let leaving = self.ledger.lock().leave(AT_ONCE);
            let is_late = self.clock.now() >= began + LONGEST;
            if leaving.is_empty() || is_late {
                // Whoever decides alone does so under this lock: nothing is spent between.
                let mut ledger = self.ledger.lock();
                if ledger.is_empty() || is_late {
                    let unwritten = ledger.take_unwritten();
                    told.untold.fetch_add(unwritten, Ordering::Relaxed);
                    self.close(asked, &told);
                    drop(ledger);
                    if leaving.is_empty() {
                        return Ok(());
                    }
                }
            }
            let now = self.clock.now();
            let debits = leaving.into_iter().map(|(name, account)| self.tell(name, account, now));
            let results = together(debits).await;
            let failed = results.iter().filter(|result| result.is_err()).count() as u64;
            told.told.fetch_add(results.len() as u64 - failed, Ordering::Relaxed);
            told.untold.fetch_add(failed, Ordering::Relaxed);
            results.into_iter().collect::<Result<(), _>>()?;
        }
    }

    fn close(&self, asked: Asked, told: &Told) {
        if let Some(lasted) = self.breaker.close(asked, self.clock.now()) {
            let outage = Outage {
                lasted,
                admitted: self.tally.admitted.swap(0, Ordering::Relaxed),
                refused: self.tally.refused.swap(0, Ordering::Relaxed),
                told: told.told.load(Ordering::Relaxed),
                untold: told.untold.load(Ordering::Relaxed),
            };
            self.listener.tell(StoreEvent::Restored(outage));
        }
    }

    /// Tells the store what one key spent. Never twice, whatever becomes of it.
    async fn tell(&self, name: Name, account: Account, now: Timestamp) -> Result<(), StoreError> {
        let Account { limit, spent, paused_until } = account;
        let key = Key::private(&name.subject, &limit);
        // At once: one after the other, a slow store would be back only after as many answers.
        let debits = spent.debits(&limit, now);
        let told = together(debits.into_iter().map(|debit| self.debit_one(&key, debit))).await;
        let failed = told.iter().filter_map(|told| told.as_ref().err());
        failed.for_each(|error| self.listener.tell(StoreEvent::Failed(error)));
        told.into_iter().collect::<Result<(), _>>()?;
        if let Some(until) = paused_until.filter(|until| *until > now) {
            let left = Duration::from_micros(until.as_micros() - now.as_micros());
            self.store.pause(&key, left).await?;
        }
        Ok(())
    }

    async fn debit_one(&self, key: &Key<'_>, debit: Debit) -> Result<(), StoreError> {
        let plan = Plan::of_distinct([Take::new(*key, debit.cost)]);
        match debit.lease {
            None => self.store.debit(&plan, debit.age).await.map(drop),
            // So that its holder can give it back. Where there is no room for it, there is none to take.
            Some(lease) => self.store.take(&plan.with_lease(lease)).await.map(drop),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, OnceLock, Weak};

    use super::*;
    use crate::fallback::BreakerState;
    use crate::memory::MemoryStore;

    #[test]
    fn whoever_goes_away_while_trying_lets_others_try() {
        let (is_attended, breaker) =
            (AtomicBool::new(false), Breaker::new(1, Duration::from_secs(30)));
        assert!(breaker.failed(breaker.asked(), Timestamp::EPOCH).is_some());
        let attending = Attending::begin(&is_attended, &breaker);
        breaker.try_store(Timestamp::EPOCH);
        assert!(Attending::begin(&is_attended, &breaker).is_none());
        drop(attending);
        assert_eq!(breaker.state(), BreakerState::Open);
        assert!(Attending::begin(&is_attended, &breaker).is_some());
    }

    /// Whoever finds the breaker open under this lock writes down what it spends: had the lock been left, that
    /// would be told of only at the next look.
    #[test]
    fn the_ledger_is_held_until_the_store_decides_again() {
        let (known, seen) = (
            Arc::new(OnceLock::<Weak<FallbackStore<MemoryStore>>>::new()),
            Arc::new(OnceLock::new()),
        );
        let (whose, sees) = (Arc::clone(&known), Arc::clone(&seen));
        let builder = FallbackStore::builder(MemoryStore::new()).open_after(1);
        let store = Arc::new(
            builder
                .on_event(move |event| {
                    let store = whose.get().and_then(Weak::upgrade);
                    if let (StoreEvent::Restored(_), Some(store)) = (event, store) {
                        let _ = sees.set((store.ledger.is_locked(), store.breaker()));
                    }
                })
                .build(),
        );
        known.set(Arc::downgrade(&store)).unwrap();
        assert!(store.breaker.failed(store.breaker.asked(), store.clock.now()).is_some());
        let mut attend = std::pin::pin!(store.attend());
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        assert!(attend.as_mut().poll(&mut context).is_ready());
        assert_eq!(seen.get(), Some(&(true, BreakerState::Closed)));
    }
}
