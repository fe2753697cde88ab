//! HTTP clients that wait for an outbound limiter and pause when the upstream service refuses.
//!
//! [`PaceLayer`] wraps any HTTP client that is a tower service; with the feature `reqwest`, `PaceMiddleware` does the
//! same for reqwest. Both acquire a [`NamedLimiter`](crate::outbound::NamedLimiter) before each request, so call sites do
//! not change.
//!
//! If the upstream service responds with 429 or 503 and a time to wait, the limiter is paused in its store, for all
//! processes that share it. The time comes from `Retry-After` (seconds or a date), else `RateLimit` (the IETF draft,
//! `"burst";r=0;t=30`), else `RateLimit-Reset` or `X-RateLimit-Reset` if the remaining amount is 0. Invalid values are
//! ignored, and a pause lasts at most one hour by default. The caller receives the response unchanged and decides
//! whether to retry.

mod layer;
mod limit_field;
#[cfg(feature = "reqwest")]
mod middleware;
mod retry_headers;
mod service;
mod upstream_limiter;

pub use layer::PaceLayer;
#[cfg(feature = "reqwest")]
pub use middleware::PaceMiddleware;
pub use service::{BoxError, Pace};
pub use upstream_limiter::DEFAULT_MAX_PAUSE;
