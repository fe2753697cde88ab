//! Callers over a store that is some way off: they come, go and are told things while it is asked.

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
/// The longest that the first of a queue sleeps, and what its timer may add.
const SOON: Duration = Duration::from_millis(5001);

/// What is asked of it is on the way for a moment, and so is the answer; for longer to a take, so that what
/// others ask meanwhile is answered before.
#[derive(Debug)]
pub(crate) struct Distant<S>(pub(crate) S);

async fn there_and_back<T>(happens: impl Future<Output = T>) -> T {
    yield_now().await;
    let answer = happens.await;
    yield_now().await;
    answer
}

impl<S: Store> Store for Distant<S> {
    async fn take<'a>(&self, plan: &Plan<'a>) -> Result<Decision<'a>, StoreError> {
        let decision = there_and_back(self.0.take(plan)).await;
        for _ in 0..3 {
            yield_now().await;
        }
        decision
    }

    async fn peek<'a>(&self, plan: &Plan<'a>) -> Result<Decision<'a>, StoreError> {
        there_and_back(self.0.peek(plan)).await
    }

    async fn refund<'a>(&self, plan: &Plan<'a>) -> Result<Decision<'a>, StoreError> {
        there_and_back(self.0.refund(plan)).await
    }

    async fn debit<'a>(&self, plan: &Plan<'a>, age: Duration) -> Result<Decision<'a>, StoreError> {
        there_and_back(self.0.debit(plan, age)).await
    }

    async fn pause(&self, key: &Key<'_>, length: Duration) -> Result<(), StoreError> {
        there_and_back(self.0.pause(key, length)).await
    }

    async fn reset(&self, key: &Key<'_>) -> Result<(), StoreError> {
        there_and_back(self.0.reset(key)).await
    }

    async fn release(&self, permit: &Permit) -> Result<bool, StoreError> {
        there_and_back(self.0.release(permit)).await
    }

    async fn renew(&self, permit: &Permit) -> Result<Option<Timestamp>, StoreError> {
        there_and_back(self.0.renew(permit)).await
    }

    async fn stats<'a>(&self, key: &Key<'a>) -> Result<Status<'a>, StoreError> {
        there_and_back(self.0.stats(key)).await
    }

    async fn list(&self, listing: &Listing) -> Result<Page, StoreError> {
        there_and_back(self.0.list(listing)).await
    }
}

type Far = Arc<FaultyStore<Distant<Memory>>>;
type Caller = JoinHandle<Result<Acquired, AcquireError>>;

fn far(limits: NamedLimits) -> (NamedLimiter<Far>, Far) {
    let store = Arc::new(FaultyStore::new(Distant(memory())));
    (NamedLimiter::new(Arc::clone(&store), limits), store)
}

fn callers(limiter: &NamedLimiter<Far>, count: u64) -> Vec<Caller> {
    let caller = |_| {
        let limiter = limiter.clone();
        tokio::spawn(async move { limiter.acquire().await })
    };
    (0..count).map(caller).collect()
}

/// Lets everybody do what can be done now, at the time it is.
async fn settle() {
    for _ in 0..200 {
        yield_now().await;
    }
}

/// Polls it so often at most, and drops it.
pub(crate) fn poll_and_drop<T>(times: usize, future: impl Future<Output = T>) -> Option<T> {
    let mut future = pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    (0..times).find_map(|_| match future.as_mut().poll(&mut context) {
        Poll::Ready(output) => Some(output),
        Poll::Pending => None,
    })
}

/// All of them were told of the hour, for all came before the first was answered.
#[tokio::test(start_paused = true)]
async fn a_reset_lets_all_through_who_asked_at_once() {
    let (limiter, _) = far(per_century(20));
    limiter.pause(HOUR).await.unwrap();
    let (callers, began) = (callers(&limiter, 10), Instant::now());
    settle().await;
    assert_eq!(limiter.counts().waiting, 10);
    limiter.reset().await.unwrap();
    // Nor is anybody refused by what was told before.
    limiter.acquire_within(SECOND).await.unwrap();
    settle().await;
    assert_eq!((limiter.counts().acquired, limiter.counts().waiting), (11, 0));
    for caller in callers {
        caller.await.unwrap().unwrap();
    }
    assert_eq!(limiter.try_acquire().await.unwrap().remaining, 8);
    assert_eq!(began.elapsed(), Duration::ZERO);
}

/// Wherever the caller is while the limiter is reset, between its question and its sleep too.
#[tokio::test(start_paused = true)]
async fn a_reset_is_not_missed_by_who_has_just_been_told() {
    for moments in 0..12 {
        let (limiter, _) = far(per_century(20));
        limiter.pause(HOUR).await.unwrap();
        let (caller, began) = (callers(&limiter, 1).remove(0), Instant::now());
        for _ in 0..moments {
            yield_now().await;
        }
        limiter.reset().await.unwrap();
        caller.await.unwrap().unwrap();
        assert_eq!(began.elapsed(), Duration::ZERO, "after {moments} moments");
    }
}

#[tokio::test(start_paused = true)]
async fn a_reset_by_another_process_is_seen_within_seconds() {
    let (limiter, store) = far(per_century(20));
    limiter.pause(HOUR).await.unwrap();
    let (callers, began) = (callers(&limiter, 10), Instant::now());
    sleep(12 * SECOND).await;
    // Until somebody has looked, what was told is what the others are told.
    assert_eq!(refusal(limiter.try_acquire().await).1, Some(HOUR - 12 * SECOND));
    let other = NamedLimiter::new(store, per_century(20));
    other.reset().await.unwrap();
    for caller in callers {
        caller.await.unwrap().unwrap();
    }
    assert!(began.elapsed() <= 12 * SECOND + SOON, "{:?}", began.elapsed());
}

/// What is asked early is asked in vain mostly, so it does no harm that nobody answers.
#[tokio::test(start_paused = true)]
async fn a_store_that_is_away_while_there_is_no_room_anyway_fails_nobody() {
    for trouble in [StoreFault::Unreachable, StoreFault::ReplyLost] {
        let (limiter, store) = far(per_second(4));
        limiter.pause(60 * SECOND).await.unwrap();
        let (caller, began) = (callers(&limiter, 1).remove(0), Instant::now());
        sleep(SECOND).await;
        let asked = store.calls();
        store.set(trouble);
        sleep(56 * SECOND).await;
        assert_eq!((store.calls() - asked, limiter.counts().waiting), (11, 1), "{trouble:?}");
        store.set(StoreFault::None);
        assert_eq!(caller.await.unwrap().unwrap().remaining, 3);
        let after = began.elapsed();
        assert!((60 * SECOND..=60 * SECOND + TICK).contains(&after), "{after:?}");
        assert_eq!((limiter.counts().acquired, limiter.counts().failed), (1, 0));
    }
}

/// When there should be room, that nobody answers is told.
#[tokio::test(start_paused = true)]
async fn a_store_that_is_away_when_there_should_be_room_is_an_error() {
    let (limiter, store) = far(per_second(4));
    limiter.pause(3 * SECOND).await.unwrap();
    let caller = callers(&limiter, 1).remove(0);
    sleep(SECOND).await;
    store.set(StoreFault::Unreachable);
    let error = caller.await.unwrap().unwrap_err();
    assert!(matches!(error, AcquireError::Unavailable(_)), "{error:?}");
    assert_eq!((limiter.counts().failed, limiter.counts().waiting), (1, 0));
}

/// Wherever the question and its answer were when the caller went.
#[tokio::test(start_paused = true)]
async fn a_dropped_acquire_takes_nothing_from_afar() {
    let mut ends = Vec::new();
    for times in 0..8 {
        let (limiter, store) = far(per(10, HOUR));
        let acquired = poll_and_drop(times, limiter.acquire_many(4));
        settle().await;
        let had = if acquired.is_some() { 4 } else { 0 };
        assert_eq!(limiter.stats().await.unwrap().count, had, "polled {times} times");
        // The question, what gives it back, and ours.
        ends.push((acquired.is_some(), store.calls()));
    }
    let (dropped, had) = ((false, 3), (true, 2));
    assert_eq!(ends[0], (false, 1));
    assert_eq!(ends[1..6], [dropped; 5]);
    assert_eq!(ends[6..], [had, had]);
}
