//! Events of a limiter, for logs and metrics.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tollgate::{RateLimitExceeded, StoreError};

/// An event of a limiter.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum LimiterEvent<'e> {
    /// A caller was admitted after a wait.
    Waited {
        /// The key of the limiter.
        key: &'e str,
        /// The time it waited.
        duration: Duration,
    },
    /// A caller was refused.
    Refused(&'e RateLimitExceeded),
    /// The limiter was paused in all processes that share its store.
    Paused {
        /// The key of the limiter.
        key: &'e str,
        /// The length of the pause.
        duration: Duration,
    },
    /// The limiter could not be paused because the store failed.
    PauseFailed {
        /// The key of the limiter.
        key: &'e str,
        /// The store error.
        error: &'e StoreError,
    },
}

/// The callback that receives the events.
#[derive(Clone)]
pub(super) struct EventCallback(Arc<dyn Fn(LimiterEvent<'_>) + Send + Sync>);

impl EventCallback {
    pub(super) fn new(callback: impl Fn(LimiterEvent<'_>) + Send + Sync + 'static) -> Self {
        Self(Arc::new(callback))
    }

    pub(super) fn call(&self, event: LimiterEvent<'_>) {
        (self.0)(event);
    }
}

/// Ignores all events.
impl Default for EventCallback {
    fn default() -> Self {
        Self::new(|_| {})
    }
}

impl fmt::Debug for EventCallback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EventCallback")
    }
}
