//! Concurrency slots held while a request is served.

use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::task::AbortHandle;
use tollgate::{Limiter, Observer, Outcome, Permit, Store};

use crate::background::run_in_background;

/// Slots taken by a decision: their permit and their time to live.
pub(super) struct AcquiredSlots {
    permit: Permit,
    ttl: Duration,
}

impl AcquiredSlots {
    pub(super) fn from_outcome(outcome: &Outcome<'_, '_>) -> Option<Self> {
        let permit = outcome.permit.clone()?;
        let expires_at = outcome.expires_at?.as_micros();
        let ttl = expires_at.saturating_sub(outcome.decision.at().as_micros());
        Some(Self { permit, ttl: Duration::from_micros(ttl) })
    }
}

/// Renews held concurrency slots and releases them when dropped: at the end of the response body, or when the client
/// disconnects.
pub(super) struct SlotGuard {
    release: Option<Box<dyn FnOnce() + Send + Sync>>,
    renewal: Option<AbortHandle>,
}

impl SlotGuard {
    pub(super) fn new<S, O>(limiter: &Arc<Limiter<S, O>>, slots: AcquiredSlots) -> Self
    where
        S: Store + 'static,
        O: Observer + 'static,
    {
        let AcquiredSlots { permit, ttl } = slots;
        let renewal = Handle::try_current().ok().map(|runtime| {
            let renewal = renew(Arc::clone(limiter), permit.clone(), ttl / 3);
            runtime.spawn(renewal).abort_handle()
        });
        let limiter = Arc::clone(limiter);
        let release =
            move || run_in_background(async move { drop(limiter.release(&permit).await) });
        Self { release: Some(Box::new(release)), renewal }
    }
}

/// Renews the permit periodically, for requests that take longer than the time to live of their slots.
async fn renew<S: Store, O: Observer>(
    limiter: Arc<Limiter<S, O>>,
    permit: Permit,
    interval: Duration,
) {
    // A ttl below 3 µs would result in a busy loop.
    let interval = interval.max(Duration::from_millis(1));
    loop {
        tokio::time::sleep(interval).await;
        if let Ok(None) = limiter.renew(&permit).await {
            return;
        }
    }
}

impl Drop for SlotGuard {
    fn drop(&mut self) {
        if let Some(renewal) = &self.renewal {
            renewal.abort();
        }
        if let Some(release) = self.release.take() {
            release();
        }
    }
}
