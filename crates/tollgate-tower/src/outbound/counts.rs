//! Call counters of one limiter in this process.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

#[cfg(feature = "metrics")]
use crate::metrics::OutboundMetrics;

/// The number of calls of one limiter by result, since it was built.
///
/// ```
/// use tollgate::MemoryStore;
/// use tollgate::policy::NamedLimits;
/// use tollgate_tower::outbound::NamedLimiter;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let limiter = NamedLimiter::new(MemoryStore::new(), NamedLimits::musicbrainz());
/// assert!(limiter.try_acquire().await.is_ok());
/// assert!(limiter.try_acquire().await.is_err());
/// let counts = limiter.counts();
/// assert_eq!((counts.acquired, counts.waited, counts.refused), (1, 0, 1));
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct CallCounts {
    /// Calls admitted, immediately or after a wait.
    pub acquired: u64,
    /// Admitted calls that had to wait.
    pub waited: u64,
    /// Calls refused, immediately or after their maximum wait.
    pub refused: u64,
    /// Calls that failed because of a store error.
    pub failed: u64,
    /// Calls waiting now.
    pub waiting: usize,
    /// Mean wait of the admitted calls that waited; zero if none did.
    pub mean_wait: Duration,
    /// Longest wait of an admitted call.
    pub max_wait: Duration,
}

/// The counters behind [`CallCounts`].
#[derive(Debug, Default)]
pub(super) struct Counters {
    acquired: AtomicU64,
    waited: AtomicU64,
    refused: AtomicU64,
    failed: AtomicU64,
    /// Sum of all waits in microseconds.
    total_wait: AtomicU64,
    /// Longest wait in microseconds.
    max_wait: AtomicU64,
    /// Also receives every count.
    #[cfg(feature = "metrics")]
    pub(super) metrics: Option<OutboundMetrics>,
}

impl Counters {
    pub(super) fn add_acquired(&self, waited: Option<Duration>) {
        self.acquired.fetch_add(1, Ordering::Relaxed);
        #[cfg(feature = "metrics")]
        if let Some(metrics) = &self.metrics {
            metrics.record_acquired(waited);
        }
        let Some(waited) = waited else { return };
        let micros = u64::try_from(waited.as_micros()).unwrap_or(u64::MAX);
        self.total_wait.fetch_add(micros, Ordering::Relaxed);
        self.max_wait.fetch_max(micros, Ordering::Relaxed);
        self.waited.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn add_refused(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
        #[cfg(feature = "metrics")]
        if let Some(metrics) = &self.metrics {
            metrics.record_refused();
        }
    }

    pub(super) fn add_failed(&self) {
        self.failed.fetch_add(1, Ordering::Relaxed);
        #[cfg(feature = "metrics")]
        if let Some(metrics) = &self.metrics {
            metrics.record_failed();
        }
    }

    /// Returns the current counts.
    pub(super) fn counts(&self, waiting: usize) -> CallCounts {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let waited = get(&self.waited);
        let mean = get(&self.total_wait).checked_div(waited).unwrap_or_default();
        CallCounts {
            acquired: get(&self.acquired),
            waited,
            refused: get(&self.refused),
            failed: get(&self.failed),
            waiting,
            mean_wait: Duration::from_micros(mean),
            max_wait: Duration::from_micros(get(&self.max_wait)),
        }
    }
}
