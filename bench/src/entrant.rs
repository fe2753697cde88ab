//! Who takes part.

use std::time::Duration;

use throttlecrab::{AdaptiveStore, PeriodicStore, ProbabilisticStore};
use tollgate::{LocalLimiter, TickingClock};

use crate::Outcome;
use crate::floor::Floor;
use crate::limiter;
use crate::timed_run::Contestant;

/// A limiter in one configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Entrant {
    /// tollgate as it comes.
    Tollgate,
    /// tollgate with a clock that ticks every millisecond.
    Ticking,
    /// governor keyed by `String`, as it comes.
    Governor,
    /// throttlecrab's default store.
    Adaptive,
    /// throttlecrab's store that cleans once a minute.
    Periodic,
    /// throttlecrab's store that cleans once in so many calls.
    Probabilistic,
    /// No limiter: the least that a decision could cost.
    Floor,
}

impl Entrant {
    /// Everyone, in the order of the tables.
    pub const ALL: [Self; 7] = [
        Self::Tollgate,
        Self::Ticking,
        Self::Governor,
        Self::Adaptive,
        Self::Periodic,
        Self::Probabilistic,
        Self::Floor,
    ];

    /// Its name in tables and on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tollgate => "tollgate",
            Self::Ticking => "tollgate, ticking clock",
            Self::Governor => "governor",
            Self::Adaptive => "throttlecrab adaptive",
            Self::Periodic => "throttlecrab periodic",
            Self::Probabilistic => "throttlecrab probabilistic",
            Self::Floor => "floor",
        }
    }

    /// How many decisions its passes have, of so many. throttlecrab is several times slower than the
    /// rest and nobody's yardstick: the time is better spent on more rounds.
    #[must_use]
    pub const fn decisions(self, of: u32) -> u32 {
        match self {
            Self::Adaptive | Self::Periodic | Self::Probabilistic => of / 3,
            Self::Tollgate | Self::Ticking | Self::Governor | Self::Floor => of,
        }
    }

    /// A new one for about so many keys.
    ///
    /// Only throttlecrab and the floor want to know the number; throttlecrab's other settings are those of its documentation.
    ///
    /// # Errors
    /// A quota that it does not take.
    pub fn build(self, keys: u32) -> Outcome<Box<dyn Contestant>> {
        let keys = keys as usize;
        Ok(match self {
            Self::Tollgate => Box::new(LocalLimiter::new(limiter::limit()?)),
            Self::Ticking => {
                let clock = TickingClock::start(Duration::from_millis(1));
                let builder = LocalLimiter::builder().limit(limiter::limit()?);
                Box::new(builder.clock(clock).build()?)
            }
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
                // By default it looks through the whole map once in a thousand calls.
                let store = ProbabilisticStore::builder().capacity(keys);
                let store = store.cleanup_probability(10_000);
                Box::new(limiter::throttlecrab(store.build()))
            }
            Self::Floor => Box::new(Floor::new(keys)),
        })
    }
}
