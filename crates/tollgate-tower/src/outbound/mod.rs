//! Limiters around calls to others: wait for room instead of being refused by them.
//!
//! A [`NamedLimiter`] keeps to one quota, over memory for one process or over Redis for all that share it.
//! [`Limiters`] holds several by name, from code or from a policy file. [`blocking`] is for programs
//! without a runtime.
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

mod answers;
mod asking;
pub mod blocking;
mod builder;
mod counts;
mod error;
mod event;
mod limiter;
mod max_wait;
mod queue;
mod registry;
mod shared;

pub use answers::{Acquired, Checked, Stats};
pub use builder::NamedLimiterBuilder;
pub use counts::Counts;
pub use error::{AcquireError, UnknownLimiter};
pub use event::LimiterEvent;
pub use limiter::NamedLimiter;
pub use registry::{Limiters, LimitersBuilder};
