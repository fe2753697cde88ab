//! Keeps the active overrides equal to those in Redis, and begins with the saved copy if Redis is unavailable.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tollgate_redis::{Directory, OverrideFollower, StoredOverrides};
use tracing::warn;

use crate::error::ServeError;
use crate::node::{NodeLimiter, RedisCopy};
use crate::settings::Settings;

/// Activates the overrides in Redis, now and after every change. If Redis is unavailable, begins with the copy.
pub(super) async fn follow(
    limiter: &Arc<NodeLimiter>,
    directory: &Directory,
    settings: &Settings,
    copy: Option<&Arc<RedisCopy>>,
) -> Result<OverrideFollower, ServeError> {
    if !limiter.store().is_degraded() {
        let activate = activation(limiter, copy);
        match directory.follow_overrides(activate).await {
            Ok(follower) => return Ok(follower),
            Err(error) if settings.redis.may_start_after(&error) => {
                limiter.store().start_degraded(limiter.observer().store(), &error);
            }
            Err(error) => {
                return Err(ServeError::new(format!("cannot read the overrides: {error}")));
            }
        }
    }
    let known = copy.map(|copy| copy.overrides()).unwrap_or_default();
    let activate = activation(limiter, copy);
    // The first call is with the overrides of the copy itself.
    let is_from_redis = AtomicBool::new(false);
    let limiter = Arc::clone(limiter);
    Ok(directory.follow_overrides_from(&known, move |stored| {
        match is_from_redis.swap(true, Ordering::Relaxed) {
            true => activate(stored),
            false => limiter.set_overrides(&stored.overrides),
        }
    }))
}

/// Returns the function that activates the overrides in Redis, and saves them in the copy.
fn activation(
    limiter: &Arc<NodeLimiter>,
    copy: Option<&Arc<RedisCopy>>,
) -> impl Fn(&StoredOverrides) + Send + Sync + 'static {
    let (limiter, copy) = (Arc::clone(limiter), copy.cloned());
    let reported = parking_lot::Mutex::new(0);
    move |stored: &StoredOverrides| {
        limiter.set_overrides(&stored.overrides);
        if let Some(copy) = &copy {
            copy.note_overrides(&stored.overrides);
        }
        let unreadable = stored.unreadable.len();
        if unreadable > std::mem::replace(&mut *reported.lock(), unreadable) {
            warn!(unreadable, "ignoring overrides that this version cannot read");
        }
    }
}
