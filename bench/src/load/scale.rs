//! Size of the benchmarks of RESP and gRPC.

use std::time::Duration;

use crate::load_mode::LoadMode;

/// The numbers of rounds, connections and keys, and the times.
#[derive(Debug, Clone, Copy)]
pub struct Scale {
    /// Rounds per measurement.
    pub rounds: u32,
    /// Time before each measured window.
    pub warm_up: Duration,
    /// Length of each measured window.
    pub window: Duration,
    /// Number of connections.
    pub connections: u32,
    /// Number of keys.
    pub keys: u32,
}

impl Scale {
    /// A full run; takes up to five minutes.
    pub const FULL: Self = Self {
        rounds: 5,
        warm_up: Duration::from_millis(500),
        window: Duration::from_secs(3),
        connections: 50,
        keys: 100_000,
    };

    /// A run of one minute, to test the program. Do not quote its figures.
    pub const QUICK: Self = Self {
        rounds: 3,
        warm_up: Duration::from_millis(200),
        window: Duration::from_secs(1),
        ..Self::FULL
    };

    /// Returns the timed run of each round.
    #[must_use]
    pub fn timed_mode(&self) -> LoadMode {
        LoadMode::Timed { warm_up: self.warm_up, window: self.window }
    }
}
