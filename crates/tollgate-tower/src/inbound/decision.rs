//! The decision that handlers can read from the request extensions.

use std::ops::Deref;
use std::sync::Arc;

use tollgate::OwnedDecision;

/// The decision about a request, in its extensions if the layer has
/// [`expose_decision`](crate::RateLimitLayerBuilder::expose_decision). Cheap to clone; dereferences to
/// [`OwnedDecision`].
///
/// With axum it is an extractor: `RateLimitDecision` responds with 500 if the layer did not decide the request,
/// `Option<RateLimitDecision>` is then `None`. The layer does not decide skipped requests, and requests that pass after
/// an error of the limiter.
///
/// ```
/// use axum::routing::get;
/// use tollgate::{Limiter, MemoryStore, Policy};
/// use tollgate_tower::{RateLimitDecision, RateLimitLayer};
///
/// async fn quota(decision: RateLimitDecision) -> String {
///     let limits = decision.statuses().map(|status| {
///         let (name, limit) = (status.limit().name(), status.limit().capacity());
///         format!("{name}: {} of {limit} left, full in {:?}", status.remaining(), status.reset_after())
///     });
///     format!("rule {}, degraded {}, {}", decision.rule(), decision.is_degraded(), limits.collect::<String>())
/// }
///
/// let limiter = Limiter::new(MemoryStore::new(), Policy::builtin());
/// let layer = RateLimitLayer::builder(limiter).expose_decision().build();
/// let app: axum::Router = axum::Router::new().route("/quota", get(quota)).layer(layer);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RateLimitDecision(Arc<OwnedDecision>);

impl RateLimitDecision {
    pub(super) fn new(decision: OwnedDecision) -> Self {
        Self(Arc::new(decision))
    }
}

impl Deref for RateLimitDecision {
    type Target = OwnedDecision;

    fn deref(&self) -> &OwnedDecision {
        &self.0
    }
}

#[cfg(feature = "axum")]
mod extractor {
    use std::convert::Infallible;

    use axum::extract::{FromRequestParts, OptionalFromRequestParts};
    use axum::response::{IntoResponse, Response};
    use http::StatusCode;
    use http::request::Parts;
    use thiserror::Error;

    use super::RateLimitDecision;

    /// Rejection of the extractor [`RateLimitDecision`]: the request has no decision. Responds with 500.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
    #[error("the request has no rate limit decision; add a RateLimitLayer with expose_decision()")]
    #[non_exhaustive]
    pub struct MissingDecision;

    impl IntoResponse for MissingDecision {
        fn into_response(self) -> Response {
            (StatusCode::INTERNAL_SERVER_ERROR, self.to_string()).into_response()
        }
    }

    impl<S: Send + Sync> FromRequestParts<S> for RateLimitDecision {
        type Rejection = MissingDecision;

        async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, MissingDecision> {
            parts.extensions.get().cloned().ok_or(MissingDecision)
        }
    }

    impl<S: Send + Sync> OptionalFromRequestParts<S> for RateLimitDecision {
        type Rejection = Infallible;

        async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Option<Self>, Infallible> {
            Ok(parts.extensions.get().cloned())
        }
    }
}

#[cfg(feature = "axum")]
pub use extractor::MissingDecision;
