//! Size of the HTTP benchmarks.

use crate::load_mode::LoadMode;
use std::time::Duration;

/// The numbers of rounds, connections and keys, and the times.
#[derive(Debug, Clone, Copy)]
pub struct Scale {
    /// Rounds per measurement.
    pub rounds: u32,
    /// Time before each measured window.
    pub warm_up: Duration,
    /// Length of each measured window.
    pub window: Duration,
    /// Connections, each with one request in flight.
    pub connections: u32,
    /// Default number of keys.
    pub keys: u32,
    /// Numbers of keys in the measurement by number of keys.
    pub key_counts: &'static [u32],
    /// Numbers of rules in the measurement by policy.
    pub rules: [u32; 2],
}

impl Scale {
    /// A full run; takes about five minutes. `growth` measures ten million keys.
    pub const FULL: Self = Self {
        rounds: 5,
        warm_up: Duration::from_millis(500),
        window: Duration::from_secs(2),
        connections: 50,
        keys: 100_000,
        key_counts: &[1_000, 100_000, 1_000_000],
        rules: [1, 10_000],
    };

    /// A run of one minute, to test the program. Do not quote its figures.
    pub const QUICK: Self = Self {
        warm_up: Duration::from_millis(200),
        window: Duration::from_secs(1),
        key_counts: &[1_000, 100_000],
        ..Self::FULL
    };

    pub(super) fn timed_mode(&self) -> LoadMode {
        LoadMode::Timed { warm_up: self.warm_up, window: self.window }
    }
}
