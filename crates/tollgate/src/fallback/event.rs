//! Events for operators: failed calls, the start of an outage, its end.

use std::fmt;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use crate::store::StoreError;

/// An event between a [`FallbackStore`](super::FallbackStore) and its stores.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum StoreEvent<'e> {
    /// A call to the shared store failed. Sent once per call.
    Failed(&'e StoreError),
    /// A call was not sent to the shared store, because too many calls of this process wait for it, although it
    /// replies. The request is shed. Sent once per call.
    Overloaded(&'e StoreError),
    /// A call to the local store failed. Sent once per call. A [`MemoryStore`](crate::MemoryStore) never fails.
    LocalFailed(&'e StoreError),
    /// The breaker opened: this node decides without the shared store.
    Lost {
        /// Number of consecutive failures.
        failures: u32,
        /// Last failure.
        reason: &'e StoreError,
        /// Number of nodes that limits are divided by during the outage.
        nodes: NonZeroU32,
    },
    /// The breaker closed. The admissions of the outage have been debited, or are being debited.
    Restored(Outage),
}

/// Figures of one outage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Outage {
    /// Time during which the breaker was not closed.
    pub lasted: Duration,
    /// Number of requests admitted without the shared store.
    pub admitted: u64,
    /// Number of requests refused without the shared store.
    pub refused: u64,
    /// Number of keys whose admissions were debited in the shared store.
    pub keys_replayed: u64,
    /// Number of keys with admissions that were not debited or may not have been: the reply to a debit was lost, the
    /// value of the key is unreadable, or the outage ledger was full.
    pub keys_dropped: u64,
}

/// Callback that receives the events.
#[derive(Clone)]
pub(super) struct Listener(Arc<dyn Fn(StoreEvent<'_>) + Send + Sync>);

impl Listener {
    pub(super) fn new(callback: impl Fn(StoreEvent<'_>) + Send + Sync + 'static) -> Self {
        Self(Arc::new(callback))
    }

    pub(super) fn notify(&self, event: StoreEvent<'_>) {
        (self.0)(event);
    }
}

/// Ignores all events.
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
