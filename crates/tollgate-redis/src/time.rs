//! The clock of decisions: an estimate of the server's time, or a test clock.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

use tollgate::Timestamp;

use crate::limit_code::micros;
use crate::script::TimeSource;

/// The clock of decisions.
#[derive(Debug)]
pub(crate) enum Time {
    /// The server's clock, estimated from its last reply.
    Server(ServerClock),
    /// A clock that a test sets.
    #[cfg(feature = "testing")]
    Manual(tollgate::ManualClock),
}

/// An estimate of the server's clock.
#[derive(Debug)]
pub(crate) struct ServerClock {
    created: Instant,
    /// The server's time at `created`, in microseconds.
    server_time: AtomicU64,
}

impl Time {
    /// The server's clock; until its first reply, this machine's.
    pub(crate) fn of_server() -> Self {
        let since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let server_time = AtomicU64::new(micros(since_epoch.unwrap_or(Duration::ZERO)));
        Self::Server(ServerClock { created: Instant::now(), server_time })
    }

    pub(crate) const fn source(&self) -> TimeSource {
        match self {
            Self::Server(_) => TimeSource::Server,
            #[cfg(feature = "testing")]
            Self::Manual(_) => TimeSource::Argument,
        }
    }

    /// Returns the time argument of scripts with a test clock.
    pub(crate) fn argument(&self) -> Option<Timestamp> {
        match self {
            Self::Server(_) => None,
            #[cfg(feature = "testing")]
            Self::Manual(clock) => Some(tollgate::Clock::now(clock)),
        }
    }

    /// Returns the estimated server time: accurate enough to select calendar windows.
    pub(crate) fn estimate(&self) -> Timestamp {
        match self {
            Self::Server(clock) => {
                let elapsed = micros(clock.created.elapsed());
                let server_time = clock.server_time.load(Ordering::Relaxed);
                Timestamp::from_micros(server_time.saturating_add(elapsed))
            }
            #[cfg(feature = "testing")]
            Self::Manual(clock) => tollgate::Clock::now(clock),
        }
    }

    /// Updates the estimate with the server time of a reply.
    pub(crate) fn update(&self, now: Timestamp) {
        match self {
            Self::Server(clock) => {
                let elapsed = micros(clock.created.elapsed());
                let server_time = now.as_micros().saturating_sub(elapsed);
                clock.server_time.store(server_time, Ordering::Relaxed);
            }
            #[cfg(feature = "testing")]
            Self::Manual(_) => {}
        }
    }
}
