//! One limiter of outbound calls.

use std::sync::Arc;
use std::time::Duration;

use tollgate::policy::NamedLimits;
use tollgate::{Decision, Store};

use super::answers::{Acquired, Checked, Stats};
use super::builder::NamedLimiterBuilder;
use super::counts::Counts;
use super::error::AcquireError;
use super::event::LimiterEvent;
use super::max_wait::Patience;
use super::shared::Shared;

/// Keeps the calls of this program to one quota, which others may share. A clone is the same limiter.
///
/// **Waiting is fair** among the callers of one limiter and its clones: who came first is first. Who finds
/// nobody waiting asks the store at once; the others queue, and only the first of the queue asks. Between
/// processes the store decides, by who asks first when there is room.
///
/// **An acquire that is dropped takes nothing**, wherever it was. If its question was already on the way to a
/// store over the network, the answer is awaited in the background and what was taken is given back. That
/// needs the runtime: where it is gone, what was sent counts as spent until it leaves the window.
///
/// Waiting needs a Tokio runtime with time.
///
/// ```
/// use std::time::Duration;
/// use tollgate::policy::NamedLimits;
/// use tollgate::{Limit, MemoryStore, Quota};
/// use tollgate_tower::outbound::NamedLimiter;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let limit = Limit::sliding_window(Quota::new(2, Duration::from_millis(50)))?;
/// let limiter = NamedLimiter::new(MemoryStore::new(), NamedLimits::new("search:api", limit)?);
/// for _ in 0..3 {
///     limiter.acquire_within(Duration::from_secs(30)).await?;
/// }
/// assert_eq!(limiter.counts().acquired, 3);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct NamedLimiter<S> {
    shared: Arc<Shared<S>>,
}

impl<S> Clone for NamedLimiter<S> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<S> NamedLimiter<S> {
    /// A limiter of these limits over this store.
    #[must_use]
    pub fn new(store: S, limits: NamedLimits) -> Self {
        Self::builder(store, limits).build()
    }

    /// A limiter with somebody who hears what happens.
    #[must_use]
    pub fn builder(store: S, limits: NamedLimits) -> NamedLimiterBuilder<S> {
        NamedLimiterBuilder::new(store, limits)
    }

    pub(super) fn of(shared: Arc<Shared<S>>) -> Self {
        Self { shared }
    }

    /// What it is called.
    #[must_use]
    pub fn name(&self) -> &str {
        self.shared.limits.name()
    }

    /// What it counts under.
    #[must_use]
    pub fn key(&self) -> &str {
        self.shared.limits.key()
    }

    /// Its limits and its mode.
    #[must_use]
    pub fn limits(&self) -> &NamedLimits {
        &self.shared.limits
    }

    /// What came of its calls so far, in this process.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.shared.tally.counts(self.shared.queue.waiting())
    }
}

impl<S: Store + 'static> NamedLimiter<S> {
    /// Takes one: waits for it or is refused, as the limiter's mode says.
    ///
    /// # Errors
    /// There is no room and the mode does not let it wait (as long as it takes), or the store could not be
    /// asked.
    pub async fn acquire(&self) -> Result<Acquired, AcquireError> {
        self.acquire_many(1).await
    }

    /// Takes `n` at once, as [`acquire`](Self::acquire) takes one.
    ///
    /// # Errors
    /// As [`acquire`](Self::acquire). More than the limit ever holds is refused at once, without `retry_after`.
    pub async fn acquire_many(&self, n: u64) -> Result<Acquired, AcquireError> {
        self.shared.acquire(n, Patience::of(self.shared.limits.mode())).await
    }

    /// Takes one, and waits at most so long for it, whatever the mode. If that will not be enough, it is
    /// refused at once. The time a store takes to answer is bounded by the store, and not part of this.
    ///
    /// # Errors
    /// As [`acquire`](Self::acquire).
    pub async fn acquire_within(&self, longest: Duration) -> Result<Acquired, AcquireError> {
        self.acquire_many_within(1, longest).await
    }

    /// Takes `n` at once, as [`acquire_within`](Self::acquire_within) takes one.
    ///
    /// # Errors
    /// As [`acquire`](Self::acquire).
    pub async fn acquire_many_within(
        &self,
        n: u64,
        longest: Duration,
    ) -> Result<Acquired, AcquireError> {
        self.shared.acquire(n, Patience::lasting(longest)).await
    }

    /// Takes one or is refused, at once, whatever the mode. It does not overtake those who wait.
    ///
    /// # Errors
    /// There is no room, others wait for it, or the store could not be asked.
    pub async fn try_acquire(&self) -> Result<Acquired, AcquireError> {
        self.try_acquire_many(1).await
    }

    /// Takes `n` at once, as [`try_acquire`](Self::try_acquire) takes one.
    ///
    /// # Errors
    /// As [`try_acquire`](Self::try_acquire).
    pub async fn try_acquire_many(&self, n: u64) -> Result<Acquired, AcquireError> {
        self.shared.acquire(n, Patience::None).await
    }

    /// Tells whether there is room for one, and takes nothing.
    ///
    /// # Errors
    /// The store could not be asked.
    pub async fn peek(&self) -> Result<Checked, AcquireError> {
        let plan = self.shared.limits.plan(1);
        Ok(Checked::of(&self.shared.store.peek(&plan).await?))
    }

    /// The figures of the limit with the least left.
    ///
    /// # Errors
    /// The store could not be asked.
    pub async fn stats(&self) -> Result<Stats, AcquireError> {
        let each = self.stats_of_each().await?;
        // A limiter has a limit, so there is a least.
        Ok(each.into_iter().min_by_key(|stats| stats.remaining).unwrap_or(NO_LIMIT))
    }

    /// The figures of each limit, in their order.
    ///
    /// # Errors
    /// The store could not be asked.
    pub async fn stats_of_each(&self) -> Result<Vec<Stats>, AcquireError> {
        let plan = self.shared.limits.plan(0);
        let decision: Decision<'_> = self.shared.store.peek(&plan).await?;
        Ok(decision.statuses().iter().map(Stats::of).collect())
    }

    /// Forgets everything recorded for the key, pauses too, in all processes.
    ///
    /// # Errors
    /// The store could not be asked.
    pub async fn reset(&self) -> Result<(), AcquireError> {
        for counter in self.shared.limits.counters() {
            self.shared.store.reset(&counter).await?;
        }
        self.shared.queue.look_again();
        Ok(())
    }

    /// Lets nobody through for so long, in any process. A shorter pause does not end a longer one.
    ///
    /// # Errors
    /// The store could not be asked.
    pub async fn pause(&self, length: Duration) -> Result<(), AcquireError> {
        let (key, listener) = (self.key(), &self.shared.listener);
        for counter in self.shared.limits.counters() {
            if let Err(error) = self.shared.store.pause(&counter, length).await {
                listener.tell(LimiterEvent::PauseFailed { key, error: &error });
                return Err(error.into());
            }
        }
        listener.tell(LimiterEvent::Paused { key, length });
        Ok(())
    }
}

const NO_LIMIT: Stats = Stats { count: 0, limit: 0, window: Duration::ZERO, remaining: 0 };
