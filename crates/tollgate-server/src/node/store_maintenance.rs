//! Periodic maintenance of the shared store: probes, and debits of an outage's admissions.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::time::{sleep, timeout};
use tollgate::jittered;

use crate::node::NodeLimiter;
use crate::shutdown::StageWaiter;

/// Time limit for the last maintenance at shutdown.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(2);

/// Maintains a shared store until shutdown. With the memory store it returns immediately.
pub(crate) async fn run(limiter: Arc<NodeLimiter>, interval: Duration, mut shutdown: StageWaiter) {
    let Some(store) = limiter.store().fallback() else { return };
    while !shutdown.is_reached() {
        tokio::select! {
            () = shutdown.wait() => {}
            () = sleep(jittered(interval)) => {}
        }
        // Maintains at shutdown too, for a limited time, so that Redis learns of local admissions.
        if shutdown.is_reached() {
            let _ = timeout(SHUTDOWN_TIMEOUT, store.maintain()).await;
            return;
        }
        store.maintain().await;
        let watch = limiter.observer().store();
        if !limiter.store().is_degraded() {
            watch.note_breaker_closed();
        }
        watch.log_ongoing(store.local_decisions(), Instant::now());
    }
}
