//! Looking after a store: whether it answers again, and what it must be told before it decides again.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::FallbackStore;
use super::breaker::{Breaker, CallPermission};
use super::event::{Outage, StoreEvent};
use super::local_decisions::LocalDecisions;
use super::outage_ledger::{Account, Name, Told};
use super::spending::Debit;
use super::together::together;
use crate::clock::Clock;
use crate::limit::Limit;
use crate::plan::{Key, Plan, Take};
use crate::quota::Quota;
use crate::store::{Store, StoreError};
use crate::subject::Subject;
use crate::time::Timestamp;

/// As many debits are under way at once.
const AT_ONCE: usize = 512;

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

/// Whether there was anything to tell of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Telling {
    Nothing,
    Told,
}

/// For how long somebody goes on telling.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Until {
    /// Until there is nothing left.
    Empty,
    /// Until it has taken long enough: a request waits for it.
    Late,
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
    pub async fn maintain(&self) {
        self.maintain_store(Until::Empty).await;
    }

    /// The same in the time of a request: what is left to tell when the store has long been back waits for the
    /// next who looks after it.
    pub(super) async fn maintain_briefly(&self) {
        self.maintain_store(Until::Late).await;
    }

    async fn maintain_store(&self, until: Until) {
        let Some(_attending) = Attending::begin(&self.is_attended, &self.breaker) else { return };
        let asked = self.breaker.asked();
        if self.breaker.is_closed() {
            if !self.ledger.lock().is_empty() {
                let _ = self.settle(asked, until).await;
            }
            return;
        }
        self.breaker.try_store(self.clock.now());
        if self.probe().await.is_ok() {
            let _ = self.settle(asked, until).await;
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
    async fn settle(&self, asked: CallPermission, until: Until) -> Result<(), StoreError> {
        let began = self.clock.now();
        loop {
            let is_late = self.clock.now() >= began + LONGEST;
            let leaving = self.leaving(asked, is_late, until);
            if leaving.is_empty() {
                return Ok(());
            }
            let now = self.clock.now();
            let debits = leaving.into_iter().map(|(name, account)| self.tell(name, account, now));
            let results = together(debits).await;
            let count = |wanted: fn(&Result<Telling, StoreError>) -> bool| {
                results.iter().filter(|result| wanted(result)).count() as u64
            };
            let told = count(|result| matches!(result, Ok(Telling::Told)));
            let untold = count(Result::is_err);
            self.ledger.lock().note(Told { told, untold });
            let failed = results.into_iter().filter_map(Result::err);
            // A key that cannot be read keeps nobody else out.
            if let Some(error) = failed.into_iter().find(StoreError::is_transient) {
                return Err(error);
            }
        }
    }

    /// The next accounts to tell of. When there are none the store decides again, and when it takes too long.
    fn leaving(&self, asked: CallPermission, is_late: bool, until: Until) -> Vec<(Name, Account)> {
        let now = self.clock.now();
        // Whoever decides alone does so under this lock: nothing is spent between.
        let mut ledger = self.ledger.lock();
        let leaving = match is_late && until == Until::Late {
            true => Vec::new(),
            false => ledger.leave(AT_ONCE),
        };
        let lasted = match leaving.is_empty() || is_late {
            true => self.breaker.close(asked, now),
            false => None,
        };
        let told = if lasted.is_some() { ledger.take_told() } else { Told::default() };
        drop(ledger);
        if let Some(lasted) = lasted {
            let LocalDecisions { admitted, refused } = self.tally.take();
            let Told { told, untold } = told;
            let outage =
                Outage { lasted, admitted, refused, keys_replayed: told, keys_dropped: untold };
            self.listener.tell(StoreEvent::Restored(outage));
        }
        leaving
    }

    /// Tells the store what one key spent. Never twice, whatever becomes of it.
    async fn tell(
        &self,
        name: Name,
        account: Account,
        now: Timestamp,
    ) -> Result<Telling, StoreError> {
        let Account { limit, spent, paused_until } = account;
        let key = Key::private(&name.subject, &limit);
        let (debits, mut telling) = (spent.debits(&limit, now), Telling::Nothing);
        for some in debits.chunks(AT_ONCE) {
            // At once: one after the other, a slow store would be back only after as many answers.
            let told = together(some.iter().map(|debit| self.debit_one(&key, *debit))).await;
            let failed = told.iter().filter_map(|told| told.as_ref().err());
            failed.for_each(|error| self.listener.tell(StoreEvent::Failed(error)));
            told.into_iter().collect::<Result<(), _>>()?;
            telling = Telling::Told;
        }
        if let Some(until) = paused_until.filter(|until| *until > now) {
            let left = Duration::from_micros(until.as_micros() - now.as_micros());
            let paused = self.store.pause(&key, left).await;
            paused.inspect_err(|error| self.listener.tell(StoreEvent::Failed(error)))?;
            telling = Telling::Told;
        }
        Ok(telling)
    }

    async fn debit_one(&self, key: &Key<'_>, debit: Debit) -> Result<(), StoreError> {
        let plan = Plan::of_distinct([Take::new(*key, debit.cost)]);
        match debit.permit {
            None => self.store.debit(&plan, debit.age).await.map(drop),
            // So that its holder can give it back. Where there is no room for it, there is none to take.
            Some(permit) => self.store.take(&plan.with_permit(permit)).await.map(drop),
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
