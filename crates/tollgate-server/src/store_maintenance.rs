//! Looking after the store, beside the answering.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::time::{sleep, timeout};
use tollgate::jittered;

use crate::app::App;
use crate::shutdown::StageWaiter;

/// How long the store is told of what was spent when this node ends.
const LAST: Duration = Duration::from_secs(2);

/// Looks after a store that nodes share, until the end.
pub(crate) async fn keep(app: Arc<App>, every: Duration, mut end: StageWaiter) {
    let Some(store) = app.backend().fallback() else { return };
    while !end.is_reached() {
        tokio::select! {
            () = end.wait() => {}
            () = sleep(jittered(every)) => {}
        }
        // At the end too: what was spent alone should be known to the others. But nobody waits for long then.
        if end.is_reached() {
            let _ = timeout(LAST, store.maintain()).await;
            return;
        }
        store.maintain().await;
        let watch = app.metrics().store();
        if !app.is_degraded() {
            watch.note_breaker_closed();
        }
        watch.remind(store.local_decisions(), Instant::now());
    }
}
