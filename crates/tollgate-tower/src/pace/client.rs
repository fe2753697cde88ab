//! Middleware of reqwest.

use std::time::Duration;

use async_trait::async_trait;
use http::Extensions;
use reqwest::{Request, Response};
use reqwest_middleware::{Error, Middleware, Next, Result};
use tollgate::Store;

use super::learn::Learner;
use crate::outbound::NamedLimiter;

/// Middleware of reqwest that waits for a limiter before each request.
///
/// Where requests are made nothing changes. What the limiter fails with is an
/// [`AcquireError`](crate::outbound::AcquireError) inside [`Error::Middleware`].
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
    learner: Learner<S>,
}

impl<S> Clone for PaceMiddleware<S> {
    fn clone(&self) -> Self {
        Self { learner: self.learner.clone() }
    }
}

impl<S> PaceMiddleware<S> {
    /// Requests that share this limiter.
    #[must_use]
    pub const fn new(limiter: NamedLimiter<S>) -> Self {
        Self { learner: Learner::new(limiter) }
    }

    /// The longest that an answer can pause the limiter for; an hour if nobody says, and never at zero.
    #[must_use]
    pub fn longest_pause(mut self, longest: Duration) -> Self {
        self.learner.longest_pause = longest;
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
        self.learner.acquire().await.map_err(Error::middleware)?;
        let response = next.run(request, extensions).await?;
        self.learner.learn(response.status(), response.headers()).await;
        Ok(response)
    }
}
