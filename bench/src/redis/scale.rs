//! Size of the Redis benchmarks.

use crate::load_mode::LoadMode;
use std::time::Duration;

/// The numbers of rounds, callers and keys, and the times.
#[derive(Debug, Clone, Copy)]
pub struct Scale {
    /// Rounds per measurement.
    pub rounds: u32,
    /// Time before each measured window.
    pub warm_up: Duration,
    /// Length of each measured window.
    pub window: Duration,
    /// Numbers of callers in the main comparison. The other measurements use the first number.
    pub callers: [u32; 2],
    /// Number of keys in measurements with many keys.
    pub keys: u32,
    /// Requests of `redis-benchmark` without pipelining, and the factor for pipelined runs.
    pub requests: [u32; 2],
    /// Number of logs whose memory is measured.
    pub logs: u32,
}

impl Scale {
    /// A full run; takes about ten minutes.
    pub const FULL: Self = Self {
        rounds: 3,
        warm_up: Duration::from_secs(1),
        window: Duration::from_secs(4),
        callers: [64, 256],
        keys: 100_000,
        requests: [200_000, 5],
        logs: 100,
    };

    /// A run of one or two minutes, to test the program. Do not quote its figures.
    pub const QUICK: Self = Self {
        warm_up: Duration::from_millis(100),
        window: Duration::from_millis(400),
        requests: [20_000, 5],
        logs: 10,
        ..Self::FULL
    };

    /// Returns a short run, for checks of which only the number of allowed requests matters.
    pub(super) fn check_mode(&self) -> LoadMode {
        LoadMode::Timed { warm_up: Duration::ZERO, window: self.warm_up }
    }

    pub(super) fn timed_mode(&self) -> LoadMode {
        LoadMode::Timed { warm_up: self.warm_up, window: self.window }
    }
}
