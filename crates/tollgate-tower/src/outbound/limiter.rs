//! The outbound limiter.

use std::sync::Arc;
use std::time::Duration;

use tollgate::policy::NamedLimits;
use tollgate::{Decision, Store};

use super::builder::NamedLimiterBuilder;
use super::counts::CallCounts;
use super::error::AcquireError;
use super::event::LimiterEvent;
use super::max_wait::MaxWait;
use super::results::{Acquired, PeekResult, Stats};
use super::shared::Shared;

/// A limiter for outbound calls, with one quota that several processes may share. Clones share the same limiter.
///
/// **Waiting is fair** among the callers of one limiter and its clones: they are served in arrival order. If no caller
/// waits, a new one calls the store immediately; otherwise it joins the queue, and only the first of the queue calls the
/// store. Between processes, the first take that reaches the store when quota is available wins.
///
/// **A dropped acquire takes nothing**, at any point. If the take was already sent over the network, a background task
/// awaits the reply and refunds it. This needs a running Tokio runtime; without it the take counts as spent until it
/// leaves the window.
///
/// Waiting needs a Tokio runtime with time enabled.
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
    /// Creates a limiter with these limits over a store.
    #[must_use]
    pub fn new(store: S, limits: NamedLimits) -> Self {
        Self::builder(store, limits).build()
    }

    /// Returns a builder, for example to set an event callback.
    #[must_use]
    pub fn builder(store: S, limits: NamedLimits) -> NamedLimiterBuilder<S> {
        NamedLimiterBuilder::new(store, limits)
    }

    pub(super) fn from_shared(shared: Arc<Shared<S>>) -> Self {
        Self { shared }
    }

    /// Returns the name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.shared.limits.name()
    }

    /// Returns the key under which the store counts.
    #[must_use]
    pub fn key(&self) -> &str {
        self.shared.limits.key()
    }

    /// Returns the limits and the mode.
    #[must_use]
    pub fn limits(&self) -> &NamedLimits {
        &self.shared.limits
    }

    /// Returns the call counts of this process.
    #[must_use]
    pub fn counts(&self) -> CallCounts {
        self.shared.counters.counts(self.shared.queue.waiting())
    }
}

impl<S: Store + 'static> NamedLimiter<S> {
    /// Takes 1, and waits for it if the limiter's mode allows.
    ///
    /// # Errors
    /// The limit is exceeded and the mode does not allow the necessary wait, or the store failed.
    pub async fn acquire(&self) -> Result<Acquired, AcquireError> {
        self.acquire_many(1).await
    }

    /// Takes `n` together; otherwise like [`acquire`](Self::acquire).
    ///
    /// # Errors
    /// As [`acquire`](Self::acquire). An `n` above the limit is refused immediately, without `retry_after`.
    pub async fn acquire_many(&self, n: u64) -> Result<Acquired, AcquireError> {
        self.shared.acquire(n, MaxWait::from_mode(self.shared.limits.mode())).await
    }

    /// Takes 1 and waits at most `max_wait`, in any mode. If the necessary wait is longer, it is refused immediately.
    /// The time that the store takes to reply is not included; the store's own time-out bounds it.
    ///
    /// # Errors
    /// As [`acquire`](Self::acquire).
    pub async fn acquire_within(&self, max_wait: Duration) -> Result<Acquired, AcquireError> {
        self.acquire_many_within(1, max_wait).await
    }

    /// Takes `n` together; otherwise like [`acquire_within`](Self::acquire_within).
    ///
    /// # Errors
    /// As [`acquire`](Self::acquire).
    pub async fn acquire_many_within(
        &self,
        n: u64,
        max_wait: Duration,
    ) -> Result<Acquired, AcquireError> {
        self.shared.acquire(n, MaxWait::from_now(max_wait)).await
    }

    /// Takes 1 or is refused immediately, in any mode. It does not overtake waiting callers.
    ///
    /// # Errors
    /// The limit is exceeded, other callers are waiting, or the store failed.
    pub async fn try_acquire(&self) -> Result<Acquired, AcquireError> {
        self.try_acquire_many(1).await
    }

    /// Takes `n` together; otherwise like [`try_acquire`](Self::try_acquire).
    ///
    /// # Errors
    /// As [`try_acquire`](Self::try_acquire).
    pub async fn try_acquire_many(&self, n: u64) -> Result<Acquired, AcquireError> {
        self.shared.acquire(n, MaxWait::None).await
    }

    /// Returns whether a take of 1 would succeed now; takes nothing.
    ///
    /// # Errors
    /// The store failed.
    pub async fn peek(&self) -> Result<PeekResult, AcquireError> {
        let plan = self.shared.limits.plan(1);
        Ok(PeekResult::from_decision(&self.shared.store.peek(&plan).await?))
    }

    /// Returns the figures of the limit with the least remaining.
    ///
    /// # Errors
    /// The store failed.
    pub async fn stats(&self) -> Result<Stats, AcquireError> {
        let stats = self.stats_per_limit().await?;
        // A limiter has at least one limit.
        Ok(stats.into_iter().min_by_key(|stats| stats.remaining).unwrap_or(NO_LIMIT))
    }

    /// Returns the figures of every limit, in order.
    ///
    /// # Errors
    /// The store failed.
    pub async fn stats_per_limit(&self) -> Result<Vec<Stats>, AcquireError> {
        let plan = self.shared.limits.plan(0);
        let decision: Decision<'_> = self.shared.store.peek(&plan).await?;
        Ok(decision.statuses().iter().map(Stats::from_status).collect())
    }

    /// Resets the usage of the key and ends pauses, in all processes.
    ///
    /// # Errors
    /// The store failed.
    pub async fn reset(&self) -> Result<(), AcquireError> {
        for counter in self.shared.limits.counters() {
            self.shared.store.reset(&counter).await?;
        }
        self.shared.queue.retry_now();
        Ok(())
    }

    /// Refuses all calls for this duration, in all processes. A shorter pause does not end a longer one.
    ///
    /// # Errors
    /// The store failed.
    pub async fn pause(&self, duration: Duration) -> Result<(), AcquireError> {
        let (key, on_event) = (self.key(), &self.shared.on_event);
        for counter in self.shared.limits.counters() {
            if let Err(error) = self.shared.store.pause(&counter, duration).await {
                on_event.call(LimiterEvent::PauseFailed { key, error: &error });
                return Err(error.into());
            }
        }
        on_event.call(LimiterEvent::Paused { key, duration });
        Ok(())
    }
}

#[cfg(tollgate_model)]
impl<S: Store + 'static> NamedLimiter<S> {
    /// Refunds as a dropped acquire does.
    pub(crate) async fn give_back(&self, cost: u64) {
        let plan = self.shared.limits.plan(cost);
        drop(self.shared.store.refund(&plan).await);
        self.shared.queue.retry_now();
    }
}

const NO_LIMIT: Stats = Stats { count: 0, limit: 0, window: Duration::ZERO, remaining: 0 };
