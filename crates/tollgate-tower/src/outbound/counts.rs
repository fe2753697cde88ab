//! What came of the calls of one limiter in this process.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// What came of the calls of one limiter, since it was made.
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
pub struct Counts {
    /// How many were let through, at once or after a wait.
    pub acquired: u64,
    /// How many of these had to wait.
    pub waited: u64,
    /// How many were refused, at once or because their patience ended.
    pub refused: u64,
    /// How many got no answer from the store.
    pub failed: u64,
    /// How many wait now.
    pub waiting: usize,
    /// How long those who waited did so on average; zero if none has.
    pub mean_wait: Duration,
    /// How long the most patient of them did.
    pub longest_wait: Duration,
}

/// The same as it grows.
#[derive(Debug, Default)]
pub(super) struct Tally {
    acquired: AtomicU64,
    waited: AtomicU64,
    refused: AtomicU64,
    failed: AtomicU64,
    /// Microseconds of all waits together, and of the longest.
    total_wait: AtomicU64,
    longest_wait: AtomicU64,
}

impl Tally {
    pub(super) fn acquired(&self, waited: Option<Duration>) {
        self.acquired.fetch_add(1, Ordering::Relaxed);
        let Some(waited) = waited else { return };
        let micros = u64::try_from(waited.as_micros()).unwrap_or(u64::MAX);
        self.total_wait.fetch_add(micros, Ordering::Relaxed);
        self.longest_wait.fetch_max(micros, Ordering::Relaxed);
        self.waited.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn refused(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn failed(&self) {
        self.failed.fetch_add(1, Ordering::Relaxed);
    }

    /// The figures, beside how many wait.
    pub(super) fn counts(&self, waiting: usize) -> Counts {
        let get = |figure: &AtomicU64| figure.load(Ordering::Relaxed);
        let waited = get(&self.waited);
        let mean = get(&self.total_wait).checked_div(waited).unwrap_or_default();
        Counts {
            acquired: get(&self.acquired),
            waited,
            refused: get(&self.refused),
            failed: get(&self.failed),
            waiting,
            mean_wait: Duration::from_micros(mean),
            longest_wait: Duration::from_micros(get(&self.longest_wait)),
        }
    }
}
