//! The in-process limiters that are compared.

use std::time::Duration;

use throttlecrab::{AdaptiveStore, PeriodicStore, ProbabilisticStore};
use tollgate::{LocalLimiter, TickingClock};

use crate::Outcome;
use crate::floor::Floor;
use crate::limiter;
use crate::timed_run::TimedLimiter;

/// A limiter with one configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Candidate {
    /// tollgate with its defaults.
    Tollgate,
    /// tollgate with a `TickingClock` of 1 ms.
    Ticking,
    /// tollgate with its defaults, returning only the verdict as governor does.
    Verdict,
    /// governor with `String` keys and its defaults.
    Governor,
    /// throttlecrab's default store.
    Adaptive,
    /// throttlecrab's store that removes expired keys once a minute.
    Periodic,
    /// throttlecrab's store that removes expired keys once per 10 000 calls on average.
    Probabilistic,
    /// A lower bound: the minimal work of a decision. See [`Floor`].
    Floor,
}

impl Candidate {
    /// All candidates, in the order of the tables.
    pub const ALL: [Self; 8] = [
        Self::Tollgate,
        Self::Ticking,
        Self::Verdict,
        Self::Governor,
        Self::Adaptive,
        Self::Periodic,
        Self::Probabilistic,
        Self::Floor,
    ];

    /// The name in tables and on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tollgate => "tollgate",
            Self::Ticking => "tollgate, ticking clock",
            Self::Verdict => "tollgate, verdict only",
            Self::Governor => "governor",
            Self::Adaptive => "throttlecrab adaptive",
            Self::Periodic => "throttlecrab periodic",
            Self::Probabilistic => "throttlecrab probabilistic",
            Self::Floor => "floor",
        }
    }

    /// Returns the number of decisions per run, given the default number. throttlecrab gets a
    /// third: it is several times slower and no target refers to it, so the time is spent on more
    /// rounds instead.
    #[must_use]
    pub const fn decisions(self, of: u32) -> u32 {
        match self {
            Self::Adaptive | Self::Periodic | Self::Probabilistic => of / 3,
            Self::Tollgate | Self::Ticking | Self::Verdict | Self::Governor | Self::Floor => of,
        }
    }

    /// Returns the number of rounds, given the default number: at most 3 for throttlecrab, for the same reason.
    #[must_use]
    pub const fn rounds(self, of: u32) -> u32 {
        match self {
            Self::Adaptive | Self::Periodic | Self::Probabilistic if of > 3 => 3,
            _ => of,
        }
    }

    /// Creates the limiter for about `keys` keys.
    ///
    /// Only throttlecrab and the floor use the number. throttlecrab's other settings follow its
    /// documentation.
    ///
    /// # Errors
    /// The limiter rejects the quota.
    pub fn build(self, keys: u32) -> Outcome<Box<dyn TimedLimiter>> {
        let keys = keys as usize;
        Ok(match self {
            Self::Tollgate => Box::new(LocalLimiter::new(limiter::limit()?)),
            Self::Ticking => {
                let clock = TickingClock::start(Duration::from_millis(1));
                let builder = LocalLimiter::builder().limit(limiter::limit()?);
                Box::new(builder.clock(clock).build()?)
            }
            Self::Verdict => Box::new(limiter::VerdictOnly(LocalLimiter::new(limiter::limit()?))),
            Self::Governor => Box::new(limiter::governor()?),
            Self::Adaptive => {
                let store = AdaptiveStore::builder().capacity(keys);
                Box::new(limiter::throttlecrab(store.build()))
            }
            Self::Periodic => {
                let store = PeriodicStore::builder().capacity(keys);
                Box::new(limiter::throttlecrab(store.build()))
            }
            Self::Probabilistic => {
                // The default scans the whole map once per 1000 calls.
                let store = ProbabilisticStore::builder().capacity(keys);
                let store = store.cleanup_probability(10_000);
                Box::new(limiter::throttlecrab(store.build()))
            }
            Self::Floor => Box::new(Floor::new(keys)),
        })
    }
}
