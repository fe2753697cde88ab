//! The numbers of a model: a small limit, few nodes, few faults. All times are ticks.

use std::time::Duration;

use tollgate::algorithm::Parameters;
use tollgate::{Limit, Quota};

/// One tick in the time of the product. It stands for any length of time.
pub(crate) const TICK: Duration = Duration::from_micros(1);

/// Largest number of nodes.
pub(crate) const MAX_NODES: usize = 3;

/// Small numbers, for which all states are explored.
#[derive(Debug, Clone)]
pub(crate) struct Numbers {
    /// The limit with which the store counts.
    pub(crate) limit: Limit,
    /// The window within which admissions count; not used for a token bucket.
    pub(crate) window: u8,
    /// Time of a lease.
    pub(crate) hold: u8,
    /// Largest amount of a lease.
    pub(crate) max_amount: u8,
    /// Number of nodes, at most [`MAX_NODES`].
    pub(crate) nodes: usize,
    /// Number of pauses, suspensions and clock steps in a run. Crashes, resets, losses and delays have no limit.
    pub(crate) disturbances: u8,
    /// Number of failovers in a run.
    pub(crate) failovers: u8,
}

impl Numbers {
    /// A bucket of this burst that refills one token in `grains` ticks.
    pub(crate) fn token_bucket(burst: u64, grains: u64, hold: u8) -> Self {
        let limit = Limit::token_bucket(Quota::new(1, ticks(grains)).burst(burst));
        Self::new(limit.expect("a valid limit"), 0, hold)
    }

    /// A window that opens with its first take.
    pub(crate) fn fixed_window(count: u64, window: u8, hold: u8) -> Self {
        let limit = Limit::fixed_window(Quota::new(count, ticks(window.into())));
        Self::new(limit.expect("a valid limit"), window, hold)
    }

    /// A log, in which the store counts every take for `hold` longer than the window, as under a leased limit.
    pub(crate) fn sliding_window(count: u64, window: u8, hold: u8) -> Self {
        Self::log(count, window + hold, (window, hold))
    }

    /// A log, in which the store counts every take for the window only: a broken rule.
    pub(crate) fn sliding_window_without_hold(count: u64, window: u8, hold: u8) -> Self {
        Self::log(count, window, (window, hold))
    }

    fn log(count: u64, length: u8, (window, hold): (u8, u8)) -> Self {
        let limit = Limit::sliding_window(Quota::new(count, ticks(length.into())));
        Self::new(limit.expect("a valid limit"), window, hold)
    }

    fn new(limit: Limit, window: u8, hold: u8) -> Self {
        Self { limit, window, hold, max_amount: 2, nodes: 2, disturbances: 0, failovers: 0 }
    }

    pub(crate) fn with_nodes(self, nodes: usize) -> Self {
        Self { nodes: nodes.min(MAX_NODES), ..self }
    }

    pub(crate) fn with_disturbances(self, disturbances: u8) -> Self {
        Self { disturbances, ..self }
    }

    pub(crate) fn with_failovers(self, failovers: u8) -> Self {
        Self { failovers, ..self }
    }

    /// The refill of a token bucket: grains in a tick, and grains of a token.
    pub(crate) fn rate(&self) -> Option<(u64, u64)> {
        match self.limit.parameters() {
            Parameters::TokenBucket(bucket) => Some(bucket.rate()),
            _ => None,
        }
    }

    pub(crate) fn hold(&self) -> Duration {
        ticks(self.hold.into())
    }
}

pub(crate) fn ticks(ticks: u64) -> Duration {
    Duration::from_micros(ticks)
}

/// Returns a number that is small because the limit is.
pub(crate) fn small(number: u64) -> u8 {
    u8::try_from(number).expect("a small number")
}
