//! What this process knows of the server's clock.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

use tollgate::Timestamp;

use crate::limit_code::micros;
use crate::script::TimeSource;

/// Where decisions get their time from.
#[derive(Debug)]
pub(crate) enum Time {
    /// The server's clock, of which the last reading is remembered.
    Server(Remembered),
    /// A clock that a test sets.
    #[cfg(feature = "testing")]
    Manual(tollgate::ManualClock),
}

/// The server's time when it was last told, as if this process had begun then.
#[derive(Debug)]
pub(crate) struct Remembered {
    begun: Instant,
    /// The server's time when this process began to remember, in microseconds.
    at_begin: AtomicU64,
}

impl Time {
    /// The server's clock, believed to be this machine's until it tells.
    pub(crate) fn of_server() -> Self {
        let since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let at_begin = AtomicU64::new(micros(since_epoch.unwrap_or(Duration::ZERO)));
        Self::Server(Remembered { begun: Instant::now(), at_begin })
    }

    pub(crate) const fn source(&self) -> TimeSource {
        match self {
            Self::Server(_) => TimeSource::Server,
            #[cfg(feature = "testing")]
            Self::Manual(_) => TimeSource::Argument,
        }
    }

    /// What scripts are told, if they must be.
    pub(crate) fn told(&self) -> Option<Timestamp> {
        match self {
            Self::Server(_) => None,
            #[cfg(feature = "testing")]
            Self::Manual(clock) => Some(tollgate::Clock::now(clock)),
        }
    }

    /// About what the server's clock says. Good enough to choose windows of the calendar by.
    pub(crate) fn about_now(&self) -> Timestamp {
        match self {
            Self::Server(remembered) => {
                let elapsed = micros(remembered.begun.elapsed());
                let at_begin = remembered.at_begin.load(Ordering::Relaxed);
                Timestamp::from_micros(at_begin.saturating_add(elapsed))
            }
            #[cfg(feature = "testing")]
            Self::Manual(clock) => tollgate::Clock::now(clock),
        }
    }

    /// The server has just told its time.
    pub(crate) fn learn(&self, now: Timestamp) {
        match self {
            Self::Server(remembered) => {
                let elapsed = micros(remembered.begun.elapsed());
                let at_begin = now.as_micros().saturating_sub(elapsed);
                remembered.at_begin.store(at_begin, Ordering::Relaxed);
            }
            #[cfg(feature = "testing")]
            Self::Manual(_) => {}
        }
    }
}
