//! How long a load goes on.

use std::time::Duration;

/// How long it goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Work {
    /// Until every key has asked once.
    Fill,
    /// Some time that does not count, then some that does, with keys drawn at random.
    Timed {
        /// What does not count.
        warm_up: Duration,
        /// What does.
        window: Duration,
    },
}
