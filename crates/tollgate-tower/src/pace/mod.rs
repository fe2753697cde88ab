//! Clients that wait for their limiter instead of being refused, and learn from refusals.
//!
//! [`PaceLayer`] goes around any client that is a tower service of HTTP requests; with the feature `reqwest`,
//! `PaceMiddleware` goes into reqwest's. Both wait for a [`NamedLimiter`](crate::outbound::NamedLimiter)
//! before each request, so nothing changes where requests are made.
//!
//! If the other side still answers 429 or 503 and says for how long, the limiter is paused in its store: no
//! process that shares it calls before. It is heeded from `Retry-After` (seconds or a date), else `RateLimit`
//! (the IETF draft's `"burst";r=0;t=30`), else `RateLimit-Reset` or `X-RateLimit-Reset` when nothing remains.
//! What makes no sense pauses nothing, and no pause is longer than an hour unless told otherwise. The answer
//! reaches the caller as it came: whether to try again is the caller's to decide.

#[cfg(feature = "reqwest")]
mod client;
mod layer;
mod learn;
mod limit_field;
mod service;
mod upstream;

#[cfg(feature = "reqwest")]
pub use client::PaceMiddleware;
pub use layer::PaceLayer;
pub use learn::DEFAULT_LONGEST_PAUSE;
pub use service::{BoxError, Pace};
