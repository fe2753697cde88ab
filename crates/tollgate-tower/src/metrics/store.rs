//! Failures of a store with a fallback.

use ::metrics::{counter, describe_gauge, gauge};
use tollgate::StoreEvent;

pub(super) const BACKEND_ERRORS: &str = "rate_limit_backend_errors_total";
const BREAKER_STATE: &str = "tollgate_breaker_state";

/// Records an event of a [`FallbackStore`](tollgate::FallbackStore): failed calls and the state of the breaker. The
/// observer does not see these failures, because the fallback decides in place of the store.
///
/// ```
/// use tollgate::{FallbackStore, MemoryStore};
/// use tollgate_tower::metrics::record_store_event;
///
/// # let redis = MemoryStore::new();
/// let store = FallbackStore::builder(redis).on_event(|event| record_store_event(&event)).build();
/// ```
pub fn record_store_event(event: &StoreEvent<'_>) {
    match event {
        StoreEvent::Failed(_) => counter!(BACKEND_ERRORS).increment(1),
        StoreEvent::Lost { .. } => record_breaker_state(1.0),
        StoreEvent::Restored(_) => record_breaker_state(0.0),
        _ => {}
    }
}

fn record_breaker_state(state: f64) {
    describe_gauge!(BREAKER_STATE, "State of the store's circuit breaker: 0 closed, 1 open.");
    gauge!(BREAKER_STATE).set(state);
}
