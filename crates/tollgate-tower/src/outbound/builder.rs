//! The builder of an outbound limiter.

use std::sync::Arc;

use tollgate::policy::NamedLimits;

use super::counts::Counters;
use super::event::{EventCallback, LimiterEvent};
use super::limiter::NamedLimiter;
use super::queue::Queue;
use super::shared::Shared;
#[cfg(feature = "metrics")]
use crate::metrics::OutboundMetrics;

/// Builder of a [`NamedLimiter`].
///
/// ```
/// use tollgate::MemoryStore;
/// use tollgate::policy::NamedLimits;
/// use tollgate_tower::outbound::{LimiterEvent, NamedLimiter};
///
/// let limiter = NamedLimiter::builder(MemoryStore::new(), NamedLimits::spotify())
///     .on_event(|event| {
///         if let LimiterEvent::Waited { key, duration } = event {
///             println!("{key}: waited {duration:?}");
///         }
///     })
///     .build();
/// assert_eq!(limiter.name(), "spotify");
/// ```
#[derive(Debug)]
pub struct NamedLimiterBuilder<S> {
    store: S,
    limits: NamedLimits,
    on_event: EventCallback,
    counters: Counters,
}

impl<S> NamedLimiterBuilder<S> {
    pub(super) fn new(store: S, limits: NamedLimits) -> Self {
        let counters = Counters::default();
        Self { store, limits, on_event: EventCallback::default(), counters }
    }

    /// Sets a callback for waits, refusals and pauses. It must not block.
    #[must_use]
    pub fn on_event(self, callback: impl Fn(LimiterEvent<'_>) + Send + Sync + 'static) -> Self {
        self.with_callback(EventCallback::new(callback))
    }

    pub(super) fn with_callback(self, on_event: EventCallback) -> Self {
        Self { on_event, ..self }
    }

    /// Records calls and waits with the `metrics` facade, labelled with the name of the limiter.
    ///
    /// ```
    /// use tollgate::MemoryStore;
    /// use tollgate::policy::NamedLimits;
    /// use tollgate_tower::outbound::NamedLimiter;
    ///
    /// let limiter =
    ///     NamedLimiter::builder(MemoryStore::new(), NamedLimits::igdb()).record_metrics().build();
    /// ```
    #[cfg(feature = "metrics")]
    #[must_use]
    pub fn record_metrics(mut self) -> Self {
        self.counters.metrics = Some(OutboundMetrics::new(self.limits.name()));
        self
    }

    /// Builds the limiter.
    #[must_use]
    pub fn build(self) -> NamedLimiter<S> {
        let Self { store, limits, on_event, counters } = self;
        let queue = Queue::default();
        NamedLimiter::from_shared(Arc::new(Shared { store, limits, queue, counters, on_event }))
    }
}
