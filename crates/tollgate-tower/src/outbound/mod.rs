//! Outbound limiters: wait for quota before calling another service instead of being refused by it.
//!
//! A [`NamedLimiter`] enforces one quota, over memory for one process or over Redis for all processes that share it.
//! [`Limiters`] is a registry of limiters by name, from code or from a policy file. [`blocking`] is for programs without
//! an async runtime.
//!
//! ```
//! use tollgate::MemoryStore;
//! use tollgate::policy::NamedLimits;
//! use tollgate_tower::outbound::{AcquireError, NamedLimiter};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), AcquireError> {
//! let igdb = NamedLimiter::new(MemoryStore::new(), NamedLimits::igdb());
//! let acquired = igdb.acquire().await?;
//! assert_eq!(acquired.remaining, 3);
//! // … call the API …
//! # Ok(())
//! # }
//! ```

pub mod blocking;
mod builder;
mod cancel_safe_take;
mod counts;
mod error;
mod event;
mod limiter;
mod max_wait;
mod queue;
mod registry;
mod results;
mod shared;

pub use builder::NamedLimiterBuilder;
pub use counts::CallCounts;
pub use error::{AcquireError, UnknownLimiter};
pub use event::LimiterEvent;
pub use limiter::NamedLimiter;
pub use registry::{Limiters, LimitersBuilder};
pub use results::{Acquired, PeekResult, Stats};
