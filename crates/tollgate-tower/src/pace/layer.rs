//! The tower layer for outbound clients.

use std::time::Duration;

use tower_layer::Layer;

use super::service::Pace;
use super::upstream_limiter::UpstreamLimiter;
use crate::outbound::NamedLimiter;

/// A tower layer that wraps an HTTP client in [`Pace`].
///
/// ```
/// use std::convert::Infallible;
/// use http::{Request, Response};
/// use tollgate::MemoryStore;
/// use tollgate::policy::NamedLimits;
/// use tollgate_tower::outbound::NamedLimiter;
/// use tollgate_tower::pace::PaceLayer;
/// use tower::{ServiceBuilder, ServiceExt, service_fn};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), tollgate_tower::pace::BoxError> {
/// let igdb = NamedLimiter::new(MemoryStore::new(), NamedLimits::igdb());
/// let client = ServiceBuilder::new().layer(PaceLayer::new(igdb.clone())).service_fn(
///     async |_: Request<String>| Ok::<_, Infallible>(Response::new("games".to_owned())),
/// );
/// let response = client.oneshot(Request::new(String::new())).await?;
/// assert_eq!(response.body(), "games");
/// assert_eq!(igdb.counts().acquired, 1);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct PaceLayer<S> {
    limiter: UpstreamLimiter<S>,
}

impl<S> Clone for PaceLayer<S> {
    fn clone(&self) -> Self {
        Self { limiter: self.limiter.clone() }
    }
}

impl<S> PaceLayer<S> {
    /// Creates a layer whose clients share this limiter.
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

impl<Svc, S> Layer<Svc> for PaceLayer<S> {
    type Service = Pace<Svc, S>;

    fn layer(&self, inner: Svc) -> Self::Service {
        Pace::new(inner, self.limiter.clone())
    }
}
