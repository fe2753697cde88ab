//! What an operator should hear of.

use std::fmt;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use crate::store::StoreError;

/// Something that happened between a [`FallbackStore`](super::FallbackStore) and its store.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum StoreEvent<'e> {
    /// The store was asked and did not answer. Told once for each question.
    Failed(&'e StoreError),
    /// It is no longer asked: this node decides alone.
    Lost {
        /// How often it failed in a row.
        failures: u32,
        /// How it failed last.
        reason: &'e StoreError,
        /// Among how many nodes limits are divided meanwhile.
        nodes: NonZeroU32,
    },
    /// It is asked again, and has been told what was spent meanwhile, or is being told.
    Restored(Outage),
}

/// What came of a time without the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Outage {
    /// How long the store was not asked.
    pub lasted: Duration,
    /// How many requests passed without it.
    pub admitted: u64,
    /// How many were refused without it.
    pub refused: u64,
    /// For how many keys the store was told what was spent.
    pub keys_replayed: u64,
    /// For how many it could not be told, or there was no room to remember them.
    pub keys_dropped: u64,
}

/// Who hears of it.
#[derive(Clone)]
pub(super) struct Listener(Arc<dyn Fn(StoreEvent<'_>) + Send + Sync>);

impl Listener {
    pub(super) fn new(hear: impl Fn(StoreEvent<'_>) + Send + Sync + 'static) -> Self {
        Self(Arc::new(hear))
    }

    pub(super) fn tell(&self, event: StoreEvent<'_>) {
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
