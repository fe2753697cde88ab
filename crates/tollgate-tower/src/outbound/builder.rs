//! How a limiter is made.

use std::sync::Arc;

use tollgate::policy::NamedLimits;

use super::counts::Tally;
use super::event::{LimiterEvent, Listener};
use super::limiter::NamedLimiter;
use super::queue::Queue;
use super::shared::Shared;

/// A [`NamedLimiter`] in the making.
///
/// ```
/// use tollgate::MemoryStore;
/// use tollgate::policy::NamedLimits;
/// use tollgate_tower::outbound::{LimiterEvent, NamedLimiter};
///
/// let limiter = NamedLimiter::builder(MemoryStore::new(), NamedLimits::spotify())
///     .on_event(|event| {
///         if let LimiterEvent::Waited { key, length } = event {
///             println!("{key}: waited {length:?}");
///         }
///     })
///     .build();
/// assert_eq!(limiter.name(), "spotify");
/// ```
#[derive(Debug)]
pub struct NamedLimiterBuilder<S> {
    store: S,
    limits: NamedLimits,
    listener: Listener,
}

impl<S> NamedLimiterBuilder<S> {
    pub(super) fn new(store: S, limits: NamedLimits) -> Self {
        Self { store, limits, listener: Listener::default() }
    }

    /// Who hears of waits, refusals and pauses. It must not block.
    #[must_use]
    pub fn on_event(self, hear: impl Fn(LimiterEvent<'_>) + Send + Sync + 'static) -> Self {
        self.heard_by(Listener::new(hear))
    }

    pub(super) fn heard_by(self, listener: Listener) -> Self {
        Self { listener, ..self }
    }

    /// The limiter.
    #[must_use]
    pub fn build(self) -> NamedLimiter<S> {
        let Self { store, limits, listener } = self;
        let (queue, tally) = (Queue::default(), Tally::default());
        NamedLimiter::of(Arc::new(Shared { store, limits, queue, tally, listener }))
    }
}
