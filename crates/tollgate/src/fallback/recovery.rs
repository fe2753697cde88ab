//! Looking after a store: whether it answers again, and what it must be told before it decides again.

use std::sync::atomic::{AtomicBool, Ordering};
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

/// Of how many keys the store has been told so far, and of how many it could not be.
#[derive(Debug, Default)]
struct Told {
    told: u64,
    untold: u64,
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
        match self.store.take(&Plan::of_distinct([take])).await {
            Err(error) if error.is_transient() => {
                self.listener.tell(StoreEvent::Failed(&error));
                Err(error)
            }
            // Also when somebody else's value is under the probe's key: it answers.
            _ => Ok(()),
        }
    }

    /// Tells the store of what was spent, then lets it decide again.
    async fn settle(&self, asked: Asked) -> Result<(), StoreError> {
        let (began, mut told) = (self.clock.now(), Told::default());
        loop {
            let leaving = self.leaving(asked, began, &mut told);
            if leaving.is_empty() {
                return Ok(());
            }
            let now = self.clock.now();
            let debits = leaving.into_iter().map(|(name, account)| self.tell(name, account, now));
            for result in together(debits).await {
                match result {
                    Ok(()) => told.told += 1,
                    // A key that cannot be read keeps nobody else out.
                    Err(error) if !error.is_transient() => told.untold += 1,
                    Err(error) => return Err(error),
                }
            }
        }
    }

    /// The next accounts to tell of. When there are none the store decides again, and when it takes too long.
    fn leaving(&self, asked: Asked, began: Timestamp, told: &mut Told) -> Vec<(Name, Account)> {
        let now = self.clock.now();
        // Whoever decides alone does so under this lock: nothing is spent between.
        let mut ledger = self.ledger.lock();
        let leaving = ledger.leave(AT_ONCE);
        let lasted = match leaving.is_empty() || now >= began + LONGEST {
            true => self.breaker.close(asked, now),
            false => None,
        };
        told.untold += ledger.take_unwritten();
        drop(ledger);
        if let Some(lasted) = lasted {
            let admitted = self.tally.admitted.swap(0, Ordering::Relaxed);
            let refused = self.tally.refused.swap(0, Ordering::Relaxed);
            let Told { told, untold } = *told;
            let outage = Outage { lasted, admitted, refused, told, untold };
            self.listener.tell(StoreEvent::Restored(outage));
        }
        leaving
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
    use super::*;
    use crate::fallback::BreakerState;

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
}
