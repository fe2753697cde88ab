//! Slots that a request holds while it is served.

use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::task::AbortHandle;
use tollgate::{Limiter, Observer, Outcome, Permit, Store};

use crate::background::detach;

/// Slots as they were taken: their permit, and how long they last by themselves.
pub(super) struct Slots {
    permit: Permit,
    lasts: Duration,
}

impl Slots {
    pub(super) fn of(outcome: &Outcome<'_, '_>) -> Option<Self> {
        let permit = outcome.permit.clone()?;
        let until = outcome.expires_at?.as_micros();
        let lasts = until.saturating_sub(outcome.decision.at().as_micros());
        Some(Self { permit, lasts: Duration::from_micros(lasts) })
    }
}

/// Slots of concurrency limits. They are kept for as long as this is, and given back when it is dropped: when
/// the body ends, or the client goes away.
pub(super) struct Held {
    release: Option<Box<dyn FnOnce() + Send + Sync>>,
    renewal: Option<AbortHandle>,
}

impl Held {
    pub(super) fn new<S, O>(limiter: &Arc<Limiter<S, O>>, slots: Slots) -> Self
    where
        S: Store + 'static,
        O: Observer + 'static,
    {
        let Slots { permit, lasts } = slots;
        let renewal = Handle::try_current().ok().map(|runtime| {
            let renewal = renew(Arc::clone(limiter), permit.clone(), lasts / 3);
            runtime.spawn(renewal).abort_handle()
        });
        let limiter = Arc::clone(limiter);
        let release = move || detach(async move { drop(limiter.release(&permit).await) });
        Self { release: Some(Box::new(release)), renewal }
    }
}

/// Keeps slots while a request takes longer than they last by themselves.
async fn renew<S: Store, O: Observer>(
    limiter: Arc<Limiter<S, O>>,
    permit: Permit,
    every: Duration,
) {
    // A slot that lasts no time at all cannot be kept.
    let every = every.max(Duration::from_millis(1));
    loop {
        tokio::time::sleep(every).await;
        if let Ok(None) = limiter.renew(&permit).await {
            return;
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if let Some(renewal) = &self.renewal {
            renewal.abort();
        }
        if let Some(release) = self.release.take() {
            release();
        }
    }
}
