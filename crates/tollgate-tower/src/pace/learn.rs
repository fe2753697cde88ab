//! A limiter, and what the other side's refusals teach it.

use std::time::{Duration, SystemTime};

use http::{HeaderMap, StatusCode};
use tollgate::Store;

use super::upstream::wanted_pause;
use crate::background::Carried;
use crate::outbound::{AcquireError, Acquired, NamedLimiter};

/// The longest pause that is heeded unless another is chosen: an hour. Whoever answers could otherwise stop a
/// client for years.
pub const DEFAULT_LONGEST_PAUSE: Duration = Duration::from_secs(3600);

/// A limiter that learns.
#[derive(Debug)]
pub(super) struct Learner<S> {
    limiter: NamedLimiter<S>,
    pub(super) longest_pause: Duration,
}

impl<S> Clone for Learner<S> {
    fn clone(&self) -> Self {
        Self { limiter: self.limiter.clone(), longest_pause: self.longest_pause }
    }
}

impl<S> Learner<S> {
    pub(super) const fn new(limiter: NamedLimiter<S>) -> Self {
        Self { limiter, longest_pause: DEFAULT_LONGEST_PAUSE }
    }
}

impl<S: Store + 'static> Learner<S> {
    pub(super) async fn acquire(&self) -> Result<Acquired, AcquireError> {
        self.limiter.acquire().await
    }

    /// Pauses the limiter if an answer says so.
    pub(super) async fn learn(&self, status: StatusCode, headers: &HeaderMap) {
        let Some(pause) = wanted_pause(status, headers, SystemTime::now()) else { return };
        let pause = pause.min(self.longest_pause);
        if !pause.is_zero() {
            let limiter = self.limiter.clone();
            // The others must hear of it also if this caller goes before the store has. If it fails, the answer
            // is still the caller's; the limiter's listener hears of it.
            let _ = Carried::new(async move { limiter.pause(pause).await }).await;
        }
    }
}
