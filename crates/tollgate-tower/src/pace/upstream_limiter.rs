//! A limiter that pauses when the upstream service refuses requests.

use std::time::{Duration, SystemTime};

use http::{HeaderMap, StatusCode};
use tollgate::Store;

use super::retry_headers::requested_pause;
use crate::background::RunToCompletion;
use crate::outbound::{AcquireError, Acquired, NamedLimiter};

/// Default maximum pause: one hour. Without a maximum, a response could stop a client for years.
pub const DEFAULT_MAX_PAUSE: Duration = Duration::from_secs(3600);

/// A limiter and the maximum pause that a response can cause.
#[derive(Debug)]
pub(super) struct UpstreamLimiter<S> {
    limiter: NamedLimiter<S>,
    pub(super) max_pause: Duration,
}

impl<S> Clone for UpstreamLimiter<S> {
    fn clone(&self) -> Self {
        Self { limiter: self.limiter.clone(), max_pause: self.max_pause }
    }
}

impl<S> UpstreamLimiter<S> {
    pub(super) const fn new(limiter: NamedLimiter<S>) -> Self {
        Self { limiter, max_pause: DEFAULT_MAX_PAUSE }
    }
}

impl<S: Store + 'static> UpstreamLimiter<S> {
    pub(super) async fn acquire(&self) -> Result<Acquired, AcquireError> {
        self.limiter.acquire().await
    }

    /// Pauses the limiter if the response requests it.
    pub(super) async fn apply_response(&self, status: StatusCode, headers: &HeaderMap) {
        let Some(pause) = requested_pause(status, headers, SystemTime::now()) else { return };
        let pause = pause.min(self.max_pause);
        if !pause.is_zero() {
            let limiter = self.limiter.clone();
            // The pause must reach the other processes even if this caller is dropped. If it fails, the caller still
            // receives its response, and the limiter reports `LimiterEvent::PauseFailed`.
            let _ = RunToCompletion::new(async move { limiter.pause(pause).await }).await;
        }
    }
}
