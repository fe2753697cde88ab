//! Callers that arrive, leave or are woken while a store call is in progress.

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tokio::task::{JoinHandle, yield_now};
use tokio::time::{Instant, sleep};
use tollgate::policy::NamedLimits;
use tollgate::{Decision, Key, Listing, Page, Permit, Plan, Status, Store, StoreError, Timestamp};
use tollgate_testkit::faulty_store::{FaultyStore, StoreFault};
use tollgate_tower::outbound::{AcquireError, Acquired, NamedLimiter};

use crate::outbound_fixture::{
    Memory, SECOND, TICK, memory, per, per_century, per_second, refusal,
};

const HOUR: Duration = Duration::from_secs(3600);
/// The maximum sleep of the first caller in the queue, plus the timer resolution.
const MAX_SLEEP: Duration = Duration::from_millis(5001);

/// A store with latency: requests and replies each need one scheduler round. Takes need more, so that later calls are
/// answered first.
#[derive(Debug)]
pub(crate) struct RemoteStore<S>(pub(crate) S);

async fn round_trip<T>(call: impl Future<Output = T>) -> T {
    yield_now().await;
    let reply = call.await;
    yield_now().await;
    reply
}

impl<S: Store> Store for RemoteStore<S> {
    async fn take<'a>(&self, plan: &Plan<'a>) -> Result<Decision<'a>, StoreError> {
        let decision = round_trip(self.0.take(plan)).await;
        for _ in 0..3 {
            yield_now().await;
        }
        decision
    }

    async fn peek<'a>(&self, plan: &Plan<'a>) -> Result<Decision<'a>, StoreError> {
        round_trip(self.0.peek(plan)).await
    }

    async fn refund<'a>(&self, plan: &Plan<'a>) -> Result<Decision<'a>, StoreError> {
        round_trip(self.0.refund(plan)).await
    }

    async fn debit<'a>(&self, plan: &Plan<'a>, age: Duration) -> Result<Decision<'a>, StoreError> {
        round_trip(self.0.debit(plan, age)).await
    }

    async fn pause(&self, key: &Key<'_>, length: Duration) -> Result<(), StoreError> {
        round_trip(self.0.pause(key, length)).await
    }

    async fn reset(&self, key: &Key<'_>) -> Result<(), StoreError> {
        round_trip(self.0.reset(key)).await
    }

    async fn release(&self, permit: &Permit) -> Result<bool, StoreError> {
        round_trip(self.0.release(permit)).await
    }

    async fn renew(&self, permit: &Permit) -> Result<Option<Timestamp>, StoreError> {
        round_trip(self.0.renew(permit)).await
    }

    async fn stats<'a>(&self, key: &Key<'a>) -> Result<Status<'a>, StoreError> {
        round_trip(self.0.stats(key)).await
    }

    async fn list(&self, listing: &Listing) -> Result<Page, StoreError> {
        round_trip(self.0.list(listing)).await
    }
}

type SharedRemote = Arc<FaultyStore<RemoteStore<Memory>>>;
type Caller = JoinHandle<Result<Acquired, AcquireError>>;

fn remote_limiter(limits: NamedLimits) -> (NamedLimiter<SharedRemote>, SharedRemote) {
    let store = Arc::new(FaultyStore::new(RemoteStore(memory())));
    (NamedLimiter::new(Arc::clone(&store), limits), store)
}

fn callers(limiter: &NamedLimiter<SharedRemote>, count: u64) -> Vec<Caller> {
    let caller = |_| {
        let limiter = limiter.clone();
        tokio::spawn(async move { limiter.acquire().await })
    };
    (0..count).map(caller).collect()
}

/// Runs all tasks that are ready, without advancing the time.
async fn run_tasks() {
    for _ in 0..200 {
        yield_now().await;
    }
}

/// Polls a future at most this many times and drops it.
pub(crate) fn poll_and_drop<T>(times: usize, future: impl Future<Output = T>) -> Option<T> {
    let mut future = pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    (0..times).find_map(|_| match future.as_mut().poll(&mut context) {
        Poll::Ready(output) => Some(output),
        Poll::Pending => None,
    })
}

/// All callers received the retry time of an hour, because all called before the first reply.
#[tokio::test(start_paused = true)]
async fn reset_admits_all_waiting_callers() {
    let (limiter, _) = remote_limiter(per_century(20));
    limiter.pause(HOUR).await.unwrap();
    let (callers, start) = (callers(&limiter, 10), Instant::now());
    run_tasks().await;
    assert_eq!(limiter.counts().waiting, 10);
    limiter.reset().await.unwrap();
    // The old retry time refuses no later caller.
    limiter.acquire_within(SECOND).await.unwrap();
    run_tasks().await;
    assert_eq!((limiter.counts().acquired, limiter.counts().waiting), (11, 0));
    for caller in callers {
        caller.await.unwrap().unwrap();
    }
    assert_eq!(limiter.try_acquire().await.unwrap().remaining, 8);
    assert_eq!(start.elapsed(), Duration::ZERO);
}

/// At any point of the caller, also between its call and its sleep.
#[tokio::test(start_paused = true)]
async fn reset_is_not_missed_between_reply_and_sleep() {
    for rounds in 0..12 {
        let (limiter, _) = remote_limiter(per_century(20));
        limiter.pause(HOUR).await.unwrap();
        let (caller, start) = (callers(&limiter, 1).remove(0), Instant::now());
        for _ in 0..rounds {
            yield_now().await;
        }
        limiter.reset().await.unwrap();
        caller.await.unwrap().unwrap();
        assert_eq!(start.elapsed(), Duration::ZERO, "after {rounds} rounds");
    }
}

#[tokio::test(start_paused = true)]
async fn reset_by_another_process_is_noticed_within_5_s() {
    let (limiter, store) = remote_limiter(per_century(20));
    limiter.pause(HOUR).await.unwrap();
    let (callers, start) = (callers(&limiter, 10), Instant::now());
    sleep(12 * SECOND).await;
    // Until the next attempt, other callers receive the old retry time.
    assert_eq!(refusal(limiter.try_acquire().await).1, Some(HOUR - 12 * SECOND));
    let other = NamedLimiter::new(store, per_century(20));
    other.reset().await.unwrap();
    for caller in callers {
        caller.await.unwrap().unwrap();
    }
    assert!(start.elapsed() <= 12 * SECOND + MAX_SLEEP, "{:?}", start.elapsed());
}

/// Early attempts usually fail anyway, so a store error is ignored.
#[tokio::test(start_paused = true)]
async fn store_error_in_early_attempt_is_ignored() {
    for fault in [StoreFault::Unreachable, StoreFault::ReplyLost] {
        let (limiter, store) = remote_limiter(per_second(4));
        limiter.pause(60 * SECOND).await.unwrap();
        let (caller, start) = (callers(&limiter, 1).remove(0), Instant::now());
        sleep(SECOND).await;
        let calls_before = store.calls();
        store.set(fault);
        sleep(56 * SECOND).await;
        assert_eq!((store.calls() - calls_before, limiter.counts().waiting), (11, 1), "{fault:?}");
        store.set(StoreFault::None);
        assert_eq!(caller.await.unwrap().unwrap().remaining, 3);
        let after = start.elapsed();
        assert!((60 * SECOND..=60 * SECOND + TICK).contains(&after), "{after:?}");
        assert_eq!((limiter.counts().acquired, limiter.counts().failed), (1, 0));
    }
}

#[tokio::test(start_paused = true)]
async fn store_error_when_quota_is_due_is_returned() {
    let (limiter, store) = remote_limiter(per_second(4));
    limiter.pause(3 * SECOND).await.unwrap();
    let caller = callers(&limiter, 1).remove(0);
    sleep(SECOND).await;
    store.set(StoreFault::Unreachable);
    let error = caller.await.unwrap().unwrap_err();
    assert!(matches!(error, AcquireError::Unavailable(_)), "{error:?}");
    assert_eq!((limiter.counts().failed, limiter.counts().waiting), (1, 0));
}

/// At any point of the call and its reply.
#[tokio::test(start_paused = true)]
async fn dropped_acquire_takes_nothing_from_remote_store() {
    let mut results = Vec::new();
    for times in 0..8 {
        let (limiter, store) = remote_limiter(per(10, HOUR));
        let acquired = poll_and_drop(times, limiter.acquire_many(4));
        run_tasks().await;
        let acquired_amount = if acquired.is_some() { 4 } else { 0 };
        assert_eq!(limiter.stats().await.unwrap().count, acquired_amount, "polled {times} times");
        // The take, its refund, and our stats call.
        results.push((acquired.is_some(), store.calls()));
    }
    let (dropped, kept) = ((false, 3), (true, 2));
    assert_eq!(results[0], (false, 1));
    assert_eq!(results[1..6], [dropped; 5]);
    assert_eq!(results[6..], [kept, kept]);
}
