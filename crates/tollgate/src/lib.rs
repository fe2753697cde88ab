#![doc = include_str!("lib.md")]

pub mod algorithm;
mod clock;
mod decision;
mod error;
mod fields;
mod lease;
mod limit;
mod listing;
mod local;
mod memory;
mod naming;
mod plan;
mod quota;
mod scope;
mod shape;
mod store;
mod subject;
mod time;

pub use clock::{Clock, ManualClock, SystemClock, TickingClock};
pub use decision::{Decision, Source, Status, Verdict};
pub use error::{QuotaError, QuotaErrorKind};
pub use lease::{HeldKey, Lease, LeaseError, LeaseId};
pub use limit::Limit;
pub use listing::{Cursor, ListedKey, Listing, Page};
pub use local::{LocalLimiter, LocalLimiterBuilder, RateLimitExceeded};
pub use memory::{
    AtCap, DEFAULT_MAX_KEYS, DefaultHasher, MemoryStore, MemoryStoreBuilder, Occupancy,
    SnapshotError, SnapshotErrorKind,
};
pub use plan::{Key, MAX_TAKES, Mode, Plan, PlanError, PlanErrorKind, Take};
pub use quota::Quota;
pub use scope::Algorithm;
pub use store::{Store, StoreError, StoreErrorKind};
pub use subject::Subject;
pub use time::Timestamp;

/// The examples of the README compile.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
