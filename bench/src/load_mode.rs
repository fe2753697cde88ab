//! Mode of a load generator.

use std::time::Duration;

/// What a load generator does and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoadMode {
    /// Sends one request per key.
    Fill,
    /// Sends requests with random keys for a fixed time.
    Timed {
        /// Time before the measured window.
        warm_up: Duration,
        /// Length of the measured window.
        window: Duration,
    },
}
