//! Clocks. A store owns its clock, so that one decision has one time.

use std::fmt::Debug;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::time::{Timestamp, saturating_micros};

/// A source of time.
///
/// It need not be monotonic: if the clock steps back, each algorithm moves time stamps later than now to
/// now. A key is then refused for at most one refill, not for the whole step.
///
/// ```
/// use tollgate::{Clock, Timestamp};
///
/// #[derive(Debug)]
/// struct Stopped;
///
/// impl Clock for Stopped {
///     fn now(&self) -> Timestamp {
///         Timestamp::EPOCH
///     }
/// }
/// ```
pub trait Clock: Debug + Send + Sync {
    /// Returns the current time.
    fn now(&self) -> Timestamp;

    /// Returns the current time if this clock does not step back, and `None` (the default) if it may.
    ///
    /// Readings of several threads may be out of order by a few microseconds. A store reads such a clock before it locks a
    /// key, so that it does not wait for the reading while it holds the lock, and uses the latest time that the key has seen.
    /// A clock that steps back does so for every caller, so the store reads it with [`now`](Self::now), under the lock.
    #[inline]
    fn monotonic_now(&self) -> Option<Timestamp> {
        None
    }
}

/// System clock that ignores later changes of the wall clock.
///
/// It reads the wall clock once per process; after that, time advances with the monotonic clock. Setting
/// the machine's clock an hour ahead refills nothing.
///
/// ```
/// use tollgate::{Clock, SystemClock};
///
/// let clock = SystemClock::new();
/// let before = clock.now();
/// assert!(clock.now() >= before);
/// ```
#[derive(Debug, Clone, Copy)]
pub struct SystemClock {
    anchor: Instant,
    anchor_micros: u64,
}

impl SystemClock {
    /// Returns the process-wide system clock; all copies return the same time.
    #[must_use]
    pub fn new() -> Self {
        static SHARED: OnceLock<SystemClock> = OnceLock::new();
        *SHARED.get_or_init(|| Self {
            anchor: Instant::now(),
            // With a wall clock before 1970, time starts at the epoch and still advances.
            anchor_micros: SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .map_or(0, saturating_micros),
        })
    }

    /// Returns the nanoseconds since the Unix epoch.
    pub(super) fn nanos(&self) -> u64 {
        let elapsed = u64::try_from(self.anchor.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.anchor_micros.saturating_mul(1000).saturating_add(elapsed)
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SystemClock {
    #[inline]
    fn now(&self) -> Timestamp {
        let elapsed = self.anchor.elapsed();
        let micros = elapsed.as_secs() * 1_000_000 + u64::from(elapsed.subsec_micros());
        Timestamp::from_micros(self.anchor_micros + micros)
    }

    #[inline]
    fn monotonic_now(&self) -> Option<Timestamp> {
        Some(self.now())
    }
}

/// Minimum update interval of a [`TickingClock`]; a shorter one would occupy a whole core.
const MIN_STEP: Duration = Duration::from_micros(10);

/// System clock that a background thread updates, for callers that cannot afford a clock read per decision.
///
/// A read costs one memory load. In return, time advances in steps: a decision may use a time up to one
/// step old (more on an overloaded machine), which delays refills by that much and never grants them
/// early. The thread stops at the first step after the last copy is dropped.
///
/// ```
/// use std::time::Duration;
/// use tollgate::{Clock, TickingClock};
///
/// let clock = TickingClock::start(Duration::from_millis(1));
/// assert!(clock.now().as_micros() > 0);
/// ```
#[derive(Debug, Clone)]
pub struct TickingClock {
    micros: Arc<AtomicU64>,
}

impl TickingClock {
    /// Starts the thread that updates this clock every `step`, at least 10 µs.
    #[must_use]
    pub fn start(step: Duration) -> Self {
        let system = SystemClock::new();
        let micros = Arc::new(AtomicU64::new(system.now().as_micros()));
        let shared = Arc::downgrade(&micros);
        let step = step.max(MIN_STEP);
        thread::spawn(move || Self::tick(system, &shared, step));
        Self { micros }
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "this thread's only work is to wait for the next tick"
    )]
    fn tick(system: SystemClock, shared: &Weak<AtomicU64>, step: Duration) {
        while let Some(micros) = shared.upgrade() {
            micros.store(system.now().as_micros(), Ordering::Release);
            drop(micros);
            thread::sleep(step);
        }
    }
}

impl Clock for TickingClock {
    #[inline]
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(self.micros.load(Ordering::Acquire))
    }

    #[inline]
    fn monotonic_now(&self) -> Option<Timestamp> {
        Some(self.now())
    }
}

/// Clock for tests that changes only when set. Clones share one time.
///
/// ```
/// use std::time::Duration;
/// use tollgate::{Limit, LocalLimiter, ManualClock, Quota};
///
/// let clock = ManualClock::new();
/// let limiter = LocalLimiter::builder()
///     .limit(Limit::token_bucket(Quota::per_second(1))?)
///     .clock(clock.clone())
///     .build()?;
/// assert!(limiter.take("job").is_allowed());
/// assert!(!limiter.take("job").is_allowed());
/// clock.advance(Duration::from_secs(1));
/// assert!(limiter.take("job").is_allowed());
/// # Ok::<(), tollgate::QuotaError>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct ManualClock {
    micros: Arc<AtomicU64>,
}

impl ManualClock {
    /// Creates a clock at the Unix epoch.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a clock at `now`.
    #[must_use]
    pub fn at(now: Timestamp) -> Self {
        let clock = Self::new();
        clock.set(now);
        clock
    }

    /// Sets the time, which may be earlier than the current one.
    pub fn set(&self, now: Timestamp) {
        self.micros.store(now.as_micros(), Ordering::Release);
    }

    /// Advances the time by `by`.
    pub fn advance(&self, by: Duration) {
        self.set(self.now() + by);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(self.micros.load(Ordering::Acquire))
    }
}
