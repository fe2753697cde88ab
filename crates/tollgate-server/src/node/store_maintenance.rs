//! Periodic maintenance of the shared store: probes, and debits of an outage's admissions.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::time::{sleep, timeout};
use tollgate::{FallbackStore, jittered};
use tollgate_redis::RedisStore;
use tracing::warn;

use crate::node::NodeLimiter;
use crate::shutdown::StageWaiter;

/// Time limit for the last maintenance at shutdown.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(2);

/// Maintains a shared store until shutdown. With the memory store it returns immediately.
pub(crate) async fn run(limiter: Arc<NodeLimiter>, interval: Duration, mut shutdown: StageWaiter) {
    let Some(store) = limiter.store().fallback() else { return };
    while !shutdown.is_reached() {
        tokio::select! {
            () = shutdown.wait() => break,
            () = sleep(jittered(interval)) => {}
        }
        tokio::select! {
            // A long replay does not delay the exit. Debits that it has not sent stay in the outage ledger.
            () = time_out_at(shutdown.clone()) => break,
            () = store.maintain() => {}
        }
        let watch = limiter.observer().store();
        if !limiter.store().is_degraded() {
            watch.note_breaker_closed();
        }
        watch.log_ongoing(store.local_decisions(), Instant::now());
    }
    replay_the_rest(store).await;
}

/// Returns [`SHUTDOWN_TIMEOUT`] after the shutdown.
async fn time_out_at(mut shutdown: StageWaiter) {
    shutdown.wait().await;
    sleep(SHUTDOWN_TIMEOUT).await;
}

/// Debits the admissions of an outage before this node exits, and logs how many are lost.
async fn replay_the_rest(store: &FallbackStore<RedisStore>) {
    if store.keys_to_replay() > 0 {
        let _ = timeout(SHUTDOWN_TIMEOUT, store.maintain()).await;
    }
    let keys = store.keys_to_replay();
    if keys > 0 {
        warn!(
            keys,
            "admissions made without the store are lost: they were not debited in Redis before the process ended"
        );
    }
}
