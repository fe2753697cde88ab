//! What a program may want to log of a limiter.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tollgate::{RateLimitExceeded, StoreError};

/// Something that happened to callers of a limiter.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum LimiterEvent<'e> {
    /// A caller was let through after a wait.
    Waited {
        /// The key of the limiter.
        key: &'e str,
        /// How long it waited.
        length: Duration,
    },
    /// A caller was refused.
    Refused(&'e RateLimitExceeded),
    /// Nobody is let through for a while, in any process.
    Paused {
        /// The key of the limiter.
        key: &'e str,
        /// For how long.
        length: Duration,
    },
    /// That should be so, and the store could not be told.
    PauseFailed {
        /// The key of the limiter.
        key: &'e str,
        /// Why not.
        error: &'e StoreError,
    },
}

/// Who hears of it.
#[derive(Clone)]
pub(super) struct Listener(Arc<dyn Fn(LimiterEvent<'_>) + Send + Sync>);

impl Listener {
    pub(super) fn new(hear: impl Fn(LimiterEvent<'_>) + Send + Sync + 'static) -> Self {
        Self(Arc::new(hear))
    }

    pub(super) fn tell(&self, event: LimiterEvent<'_>) {
        (self.0)(event);
    }
}

/// Nobody.
impl Default for Listener {
    fn default() -> Self {
        Self::new(|_| {})
    }
}

impl fmt::Debug for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Listener")
    }
}
