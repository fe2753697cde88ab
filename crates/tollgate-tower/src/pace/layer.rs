//! The layer.

use std::time::Duration;

use tower_layer::Layer;

use super::learn::Learner;
use super::service::Pace;
use crate::outbound::NamedLimiter;

/// Puts a [`Pace`] around clients.
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
/// let answer = client.oneshot(Request::new(String::new())).await?;
/// assert_eq!(answer.body(), "games");
/// assert_eq!(igdb.counts().acquired, 1);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct PaceLayer<S> {
    learner: Learner<S>,
}

impl<S> Clone for PaceLayer<S> {
    fn clone(&self) -> Self {
        Self { learner: self.learner.clone() }
    }
}

impl<S> PaceLayer<S> {
    /// Clients that share this limiter.
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

impl<Svc, S> Layer<Svc> for PaceLayer<S> {
    type Service = Pace<Svc, S>;

    fn layer(&self, inner: Svc) -> Self::Service {
        Pace::new(inner, self.learner.clone())
    }
}
