//! The reqwest middleware.

use std::time::Duration;

use async_trait::async_trait;
use http::Extensions;
use reqwest::{Request, Response};
use reqwest_middleware::{Error, Middleware, Next, Result};
use tollgate::Store;

use super::upstream_limiter::UpstreamLimiter;
use crate::outbound::NamedLimiter;

/// reqwest middleware that acquires a limiter before each request.
///
/// Call sites do not change. A failed acquire is an [`AcquireError`](crate::outbound::AcquireError) inside
/// [`Error::Middleware`].
///
/// ```
/// use reqwest_middleware::ClientBuilder;
/// use tollgate::MemoryStore;
/// use tollgate::policy::NamedLimits;
/// use tollgate_tower::outbound::NamedLimiter;
/// use tollgate_tower::pace::PaceMiddleware;
///
/// let limiter = NamedLimiter::new(MemoryStore::new(), NamedLimits::musicbrainz());
/// let client = ClientBuilder::new(reqwest::Client::new())
///     .with(PaceMiddleware::new(limiter))
///     .build();
/// let request = client.get("https://musicbrainz.org/ws/2/artist");
/// ```
#[derive(Debug)]
pub struct PaceMiddleware<S> {
    limiter: UpstreamLimiter<S>,
}

impl<S> Clone for PaceMiddleware<S> {
    fn clone(&self) -> Self {
        Self { limiter: self.limiter.clone() }
    }
}

impl<S> PaceMiddleware<S> {
    /// Creates middleware whose requests share this limiter.
    #[must_use]
    pub const fn new(limiter: NamedLimiter<S>) -> Self {
        Self { limiter: UpstreamLimiter::new(limiter) }
    }

    /// Sets the maximum pause that a response can cause; the default is one hour. Zero disables pauses.
    #[must_use]
    pub fn max_pause(mut self, max: Duration) -> Self {
        self.limiter.max_pause = max;
        self
    }
}

#[async_trait]
impl<S: Store + 'static> Middleware for PaceMiddleware<S> {
    async fn handle(
        &self,
        request: Request,
        extensions: &mut Extensions,
        next: Next<'_>,
    ) -> Result<Response> {
        self.limiter.acquire().await.map_err(Error::middleware)?;
        let response = next.run(request, extensions).await?;
        self.limiter.apply_response(response.status(), response.headers()).await;
        Ok(response)
    }
}
