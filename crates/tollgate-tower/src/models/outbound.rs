//! Models of an outbound limiter: its queue, takes that are dropped, and quota that returns early.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tollgate::models::shuttle::future::{self, JoinHandle, block_on, yield_now};
use tollgate::models::shuttle::rand::{Rng, thread_rng};
use tollgate::models::shuttle::thread;
use tollgate::models::sync::{begin_run, join_tasks};
use tollgate::policy::NamedLimits;
use tollgate::{
    Decision, Key, Limit, Listing, ManualClock, MemoryStore, Page, Permit, Plan, Quota, Status,
    Store, StoreError, Take, Timestamp,
};

use crate::outbound::{AcquireError, Acquired, NamedLimiter};

/// The quota of the limiter.
const QUOTA: u64 = 100;

/// A store that replies later, so that other callers run before and after each operation.
#[derive(Debug)]
struct SlowStore {
    store: MemoryStore<ManualClock>,
    /// The costs of the takes that passed.
    admitted: Arc<Mutex<Vec<u64>>>,
}

impl Store for SlowStore {
    async fn take<'a>(&self, plan: &Plan<'a>) -> Result<Decision<'a>, StoreError> {
        yield_now().await;
        let decision = self.store.take(plan);
        if decision.is_allowed() {
            self.admitted.lock().unwrap().extend(plan.takes().iter().map(Take::cost));
        }
        yield_now().await;
        Ok(decision)
    }

    async fn peek<'a>(&self, plan: &Plan<'a>) -> Result<Decision<'a>, StoreError> {
        Ok(self.store.peek(plan))
    }

    async fn refund<'a>(&self, plan: &Plan<'a>) -> Result<Decision<'a>, StoreError> {
        yield_now().await;
        let decision = self.store.refund(plan);
        yield_now().await;
        Ok(decision)
    }

    async fn debit<'a>(&self, plan: &Plan<'a>, age: Duration) -> Result<Decision<'a>, StoreError> {
        Ok(self.store.debit(plan, age))
    }

    async fn pause(&self, key: &Key<'_>, length: Duration) -> Result<(), StoreError> {
        self.store.pause(key, length);
        Ok(())
    }

    async fn reset(&self, key: &Key<'_>) -> Result<(), StoreError> {
        yield_now().await;
        self.store.reset(key);
        yield_now().await;
        Ok(())
    }

    async fn release(&self, permit: &Permit) -> Result<bool, StoreError> {
        Ok(self.store.release(permit))
    }

    async fn renew(&self, permit: &Permit) -> Result<Option<Timestamp>, StoreError> {
        Ok(self.store.renew(permit))
    }

    async fn stats<'a>(&self, key: &Key<'a>) -> Result<Status<'a>, StoreError> {
        Ok(self.store.stats(key))
    }

    async fn list(&self, listing: &Listing) -> Result<Page, StoreError> {
        self.store.list(listing)
    }
}

type Caller = JoinHandle<Result<Acquired, AcquireError>>;

/// A limiter without quota left.
struct Fixture {
    limiter: NamedLimiter<SlowStore>,
    admitted: Arc<Mutex<Vec<u64>>>,
}

impl Fixture {
    fn new(timers: usize) -> Self {
        begin_run(timers);
        let limit = Limit::fixed_window(Quota::per_day(QUOTA)).unwrap();
        let store = MemoryStore::builder().clock(ManualClock::new()).build();
        let admitted = Arc::default();
        let store = SlowStore { store, admitted: Arc::clone(&admitted) };
        let limiter = NamedLimiter::new(store, NamedLimits::new("api", limit).unwrap());
        block_on(limiter.acquire_many(QUOTA)).unwrap();
        admitted.lock().unwrap().clear();
        Self { limiter, admitted }
    }

    /// Starts a caller that waits for any time.
    fn start(&self, cost: u64) -> Caller {
        let limiter = self.limiter.clone();
        future::spawn(async move { limiter.acquire_many_within(cost, Duration::MAX).await })
    }

    /// Starts callers that wait in the order of their costs, from 1.
    fn start_in_order(&self, callers: u64) -> Vec<Caller> {
        let start = |cost| {
            let caller = self.start(cost);
            while (self.limiter.counts().waiting as u64) < cost {
                thread::yield_now();
            }
            caller
        };
        (1..=callers).map(start).collect()
    }

    /// Returns quota from another task.
    fn start_give_back(&self, cost: u64) -> JoinHandle<()> {
        let limiter = self.limiter.clone();
        future::spawn(async move { limiter.give_back(cost).await })
    }

    fn remaining(&self) -> u64 {
        block_on(self.limiter.stats()).unwrap().remaining
    }

    /// The costs of the takes that passed, in their order.
    fn admitted(&self) -> Vec<u64> {
        self.admitted.lock().unwrap().clone()
    }

    /// Waits until background work has ended, and asserts that no caller waits and that `remaining` is left.
    fn end(self, remaining: u64) {
        join_tasks();
        assert_eq!(self.limiter.counts().waiting, 0);
        assert_eq!(self.remaining(), remaining);
    }
}

fn join<T>(task: JoinHandle<T>) -> T {
    block_on(task).unwrap()
}

/// Waits until a caller is admitted.
fn admit(caller: Caller) {
    join(caller).unwrap();
}

/// Quota for all returns in parts, at any time: each caller is admitted once, in the order of arrival.
pub(super) fn waiting_callers_are_admitted_once_in_order() {
    let fixture = Fixture::new(0);
    let callers = fixture.start_in_order(3);
    let parts = [1, 2, 3].map(|cost| fixture.start_give_back(cost));
    callers.into_iter().for_each(admit);
    parts.into_iter().for_each(join);
    assert_eq!(fixture.admitted(), [1, 2, 3]);
    fixture.end(0);
}

/// A reset at any time admits a caller that waits.
pub(super) fn reset_wakes_the_first_caller() {
    let fixture = Fixture::new(0);
    let caller = fixture.start(1);
    let limiter = fixture.limiter.clone();
    let reset = future::spawn(async move { limiter.reset().await });
    join(caller).unwrap();
    join(reset).unwrap();
    fixture.end(QUOTA - 1);
}

/// A caller that arrives while others wait does not overtake them.
pub(super) fn new_callers_do_not_overtake() {
    let fixture = Fixture::new(0);
    let first = fixture.start_in_order(1);
    let give_back = fixture.start_give_back(3);
    let second = fixture.start(2);
    first.into_iter().for_each(admit);
    join(second).unwrap();
    join(give_back);
    assert_eq!(fixture.admitted(), [1, 2]);
    fixture.end(0);
}

/// A caller is dropped while it waits, takes or has taken: the others are admitted in order, and its take is refunded.
pub(super) fn dropped_caller_passes_its_place_on() {
    for dropped in 0..3 {
        let fixture = Fixture::new(0);
        let mut callers = fixture.start_in_order(3);
        let dropped_caller = callers.remove(dropped);
        let cost = dropped as u64 + 1;
        let give_back = fixture.start_give_back(6 - cost);
        // Also late, when it takes or has taken.
        (0..thread_rng().gen_range(0..12)).for_each(|_| thread::yield_now());
        dropped_caller.abort();
        let is_admitted = block_on(dropped_caller).is_ok();
        if is_admitted {
            // The others then need its quota.
            join(fixture.start_give_back(cost));
        }
        callers.into_iter().for_each(admit);
        join(give_back);
        fixture.end(0);
    }
}

/// Callers whose time ends at any time take nothing, and the others are admitted.
pub(super) fn callers_that_time_out_take_nothing() {
    let fixture = Fixture::new(4);
    let callers: Vec<Caller> = (1..=3)
        .map(|cost| {
            let limiter = fixture.limiter.clone();
            // Longer than the store's time, so that the limiter waits.
            let max_wait = Duration::from_secs(2 * 86_400);
            future::spawn(async move { limiter.acquire_many_within(cost, max_wait).await })
        })
        .collect();
    let give_back = fixture.start_give_back(6);
    let results: Vec<_> = callers.into_iter().map(join).collect();
    join(give_back);
    let admitted: u64 = (1..).zip(&results).filter(|(_, r)| r.is_ok()).map(|(cost, _)| cost).sum();
    for result in &results {
        assert!(matches!(result, Ok(_) | Err(AcquireError::Exceeded(_))), "{result:?}");
    }
    assert_eq!(fixture.admitted().iter().sum::<u64>(), admitted);
    fixture.end(6 - admitted);
}

/// Callers that do not wait are refused while others wait, and take nothing.
pub(super) fn callers_without_patience_do_not_overtake() {
    let fixture = Fixture::new(0);
    let first = fixture.start_in_order(1);
    let give_back = fixture.start_give_back(1);
    let limiter = fixture.limiter.clone();
    let impatient = future::spawn(async move { limiter.try_acquire_many(2).await });
    first.into_iter().for_each(admit);
    assert!(join(impatient).is_err());
    join(give_back);
    assert_eq!(fixture.admitted(), [1]);
    fixture.end(0);
}
