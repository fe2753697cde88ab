//! How much is measured of Redis.

use crate::work::Work;
use std::time::Duration;

/// The counts and times of a run.
#[derive(Debug, Clone, Copy)]
pub struct Scale {
    /// How often each figure is taken.
    pub rounds: u32,
    /// What goes before each and does not count.
    pub warm_up: Duration,
    /// How long each takes.
    pub window: Duration,
    /// How many callers there are, where that is the question; the first number also where it is not.
    pub callers: [u32; 2],
    /// How many keys, where there is not one.
    pub keys: u32,
    /// How many requests `redis-benchmark` makes without a pipeline, and how many times more with one.
    pub requests: [u32; 2],
    /// How many logs are weighed.
    pub logs: u32,
}

impl Scale {
    /// Some ten minutes.
    pub const FULL: Self = Self {
        rounds: 3,
        warm_up: Duration::from_secs(1),
        window: Duration::from_secs(4),
        callers: [64, 256],
        keys: 100_000,
        requests: [200_000, 5],
        logs: 100,
    };

    /// A minute or two; enough to see that everything works, not to quote.
    pub const QUICK: Self = Self {
        warm_up: Duration::from_millis(100),
        window: Duration::from_millis(400),
        requests: [20_000, 5],
        logs: 10,
        ..Self::FULL
    };

    /// Short, since only what passes is of interest.
    pub(super) fn proof(&self) -> Work {
        Work::Timed { warm_up: Duration::ZERO, window: self.warm_up }
    }

    pub(super) fn work(&self) -> Work {
        Work::Timed { warm_up: self.warm_up, window: self.window }
    }
}
