//! Where "now" comes from. A store owns its clock, so one decision has one time.

use std::fmt::Debug;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::time::{Timestamp, saturating_micros};

/// A source of time.
///
/// It need not be monotonic: every algorithm survives a clock that steps back. What was recorded in
/// the future moves to the present, so a key is refused for at most one refill, not for the step.
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
    /// The time now.
    fn now(&self) -> Timestamp;
}

/// The time of this machine, immune to changes of its wall clock.
///
/// The wall clock is read once per process; from there on time advances with the monotonic clock.
/// Setting the machine's clock an hour ahead refills nothing.
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
    /// The process's one system clock: all its copies tell the same time.
    #[must_use]
    pub fn new() -> Self {
        static SHARED: OnceLock<SystemClock> = OnceLock::new();
        *SHARED.get_or_init(|| Self {
            anchor: Instant::now(),
            // A wall clock before 1970 still gives a usable, advancing time.
            anchor_micros: SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .map_or(0, saturating_micros),
        })
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
}

/// A thread that never waited would be a core lost.
const SHORTEST_STEP: Duration = Duration::from_micros(10);

/// The system clock read by a background thread, for those to whom reading it at every decision is
/// too slow.
///
/// Reading it costs a memory load. In exchange time advances in steps: a decision may see a time as
/// old as the step (longer when the machine is starved), which delays room by as much and never
/// grants it early. The thread ends at the first step after the last copy is dropped.
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
    /// Starts the thread that moves this clock every `step`, or every 10 µs if that is longer.
    #[must_use]
    pub fn start(step: Duration) -> Self {
        let system = SystemClock::new();
        let micros = Arc::new(AtomicU64::new(system.now().as_micros()));
        let shared = Arc::downgrade(&micros);
        let step = step.max(SHORTEST_STEP);
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
}

/// A clock that stands still until a test moves it. Clones move together.
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
    /// A clock standing at the Unix epoch.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A clock standing at `now`.
    #[must_use]
    pub fn at(now: Timestamp) -> Self {
        let clock = Self::new();
        clock.set(now);
        clock
    }

    /// Moves to `now`, which may be earlier than the time before.
    pub fn set(&self, now: Timestamp) {
        self.micros.store(now.as_micros(), Ordering::Release);
    }

    /// Moves forward.
    pub fn advance(&self, by: Duration) {
        self.set(self.now() + by);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(self.micros.load(Ordering::Acquire))
    }
}
