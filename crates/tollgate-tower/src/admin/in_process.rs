//! Overrides kept in this process.

use std::fmt;
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::task::AbortHandle;
use tollgate::{
    Clock, Limiter, Observer, Override, OverrideStorage, Overrides, Store, StoreError, Subject,
    SystemClock,
};

/// Maximum sleep until the next expiry, because the wall clock may be set.
const MAX_SLEEP: Duration = Duration::from_secs(60);

/// An [`OverrideStorage`] that keeps overrides in a limiter of this process. They are lost when the process exits, and
/// audit entries are not kept.
pub struct InProcessOverrides<S, O: Observer = ()> {
    limiter: Arc<Limiter<S, O>>,
    /// Locked while overrides are changed. Contains the task that removes the next expired override.
    expiry_task: Arc<Mutex<Option<AbortHandle>>>,
}

impl<S, O: Observer> fmt::Debug for InProcessOverrides<S, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InProcessOverrides").finish_non_exhaustive()
    }
}

impl<S: Store, O: Observer> InProcessOverrides<S, O> {
    /// Keeps overrides in this limiter.
    #[must_use]
    pub fn new(limiter: Arc<Limiter<S, O>>) -> Self {
        Self { limiter, expiry_task: Arc::default() }
    }
}

impl<S, O: Observer> Drop for InProcessOverrides<S, O> {
    fn drop(&mut self) {
        if let Some(task) = self.expiry_task.lock().take() {
            task.abort();
        }
    }
}

impl<S, O> OverrideStorage for InProcessOverrides<S, O>
where
    S: Store + 'static,
    O: Observer + 'static,
{
    async fn set_overrides(
        &self,
        client: &Subject,
        overrides: &[Override],
        _audit_entry: &str,
    ) -> Result<(), StoreError> {
        let with = |all: Overrides, new: &Override| all.with(client, new.clone());
        self.change(|current| overrides.iter().fold(current.clone(), with));
        Ok(())
    }

    async fn remove_overrides(
        &self,
        client: &Subject,
        rule: Option<&str>,
        _audit_entry: &str,
    ) -> Result<bool, StoreError> {
        let mut removed = 0;
        self.change(|current| {
            let next = current.without(client, rule);
            removed = current.len() - next.len();
            next
        });
        Ok(removed > 0)
    }

    async fn record_audit(&self, _audit_entry: &str) -> Result<(), StoreError> {
        Ok(())
    }
}

impl<S, O> InProcessOverrides<S, O>
where
    S: Store + 'static,
    O: Observer + 'static,
{
    /// Replaces the overrides, and restarts the task that removes the next expired one.
    fn change(&self, change: impl FnOnce(&Overrides) -> Overrides) {
        let mut task = self.expiry_task.lock();
        let active = self.limiter.active_policy();
        let current = active.overrides().without_expired(SystemClock::new().now());
        let next = change(&current);
        self.limiter.set_overrides(&next);
        if let Some(previous) = task.take() {
            previous.abort();
        }
        if next.next_expiry().is_some()
            && let Ok(runtime) = Handle::try_current()
        {
            let lock = Arc::downgrade(&self.expiry_task);
            let expiry = remove_expired(Arc::downgrade(&self.limiter), lock);
            *task = Some(runtime.spawn(expiry).abort_handle());
        }
    }
}

/// Removes overrides when they expire, until none is left that expires.
async fn remove_expired<S: Store, O: Observer>(
    limiter: Weak<Limiter<S, O>>,
    lock: Weak<Mutex<Option<AbortHandle>>>,
) {
    loop {
        let next_wait = {
            let (Some(limiter), Some(lock)) = (limiter.upgrade(), lock.upgrade()) else { return };
            let _guard = lock.lock();
            let now = SystemClock::new().now();
            let active = limiter.active_policy();
            let current = active.overrides().without_expired(now);
            if current.len() < active.overrides().len() {
                limiter.set_overrides(&current);
            }
            let Some(expiry) = current.next_expiry() else { return };
            Duration::from_micros(expiry.as_micros().saturating_sub(now.as_micros()))
        };
        tokio::time::sleep(next_wait.min(MAX_SLEEP)).await;
    }
}
