#![doc = include_str!("lib.md")]

pub mod algorithm;
mod clock;
mod decision;
mod error;
mod facts;
mod limit;
mod local;
mod memory;
mod naming;
mod plan;
#[cfg(feature = "policy")]
pub mod policy;
mod quota;
mod request;
mod store;
mod subject;
mod time;

pub use clock::{Clock, ManualClock, SystemClock, TickingClock};
pub use decision::{Decision, Source, Status, Verdict};
pub use error::{QuotaError, QuotaErrorKind};
pub use facts::{FactValue, Facts, FactsError, FactsErrorKind};
pub use limit::{Algorithm, Limit};
pub use local::{LocalLimiter, LocalLimiterBuilder, RateLimitExceeded};
pub use memory::{
    AtCap, DEFAULT_MAX_KEYS, DefaultHasher, MemoryStore, MemoryStoreBuilder, Occupancy,
};
pub use plan::{Key, MAX_TAKES, Mode, Plan, PlanError, PlanErrorKind, Take};
#[cfg(feature = "policy")]
pub use policy::{Policy, PolicyError, PolicyErrorKind};
pub use quota::Quota;
pub use request::Request;
pub use store::{Cursor, ListedKey, Listing, Page, Store, StoreError, StoreErrorKind};
pub use subject::{Subject, SubjectParts};
pub use time::Timestamp;

/// The examples of the README compile.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
