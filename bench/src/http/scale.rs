//! How much is measured over HTTP.

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
    /// Connections, each with one request on its way.
    pub connections: u32,
    /// How many keys there are where nothing else is said.
    pub keys: u32,
    /// How many there are where the number of keys is the question.
    pub growth: &'static [u32],
    /// How many rules, where that is the question.
    pub rules: [u32; 2],
}

impl Scale {
    /// Some ten minutes, of which filling in the most keys takes a third.
    pub const FULL: Self = Self {
        rounds: 3,
        warm_up: Duration::from_secs(1),
        window: Duration::from_secs(5),
        connections: 50,
        keys: 100_000,
        growth: &[1_000, 100_000, 1_000_000, 10_000_000],
        rules: [1, 10_000],
    };

    /// A minute; enough to see that everything works, not to quote.
    pub const QUICK: Self = Self {
        warm_up: Duration::from_millis(200),
        window: Duration::from_secs(1),
        growth: &[1_000, 100_000],
        ..Self::FULL
    };

    pub(super) fn work(&self) -> Work {
        Work::Timed { warm_up: self.warm_up, window: self.window }
    }
}
