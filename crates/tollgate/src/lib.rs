#![doc = include_str!("lib.md")]

pub mod algorithm;
#[cfg(feature = "policy")]
mod asked;
mod clock;
mod decision;
mod error;
mod facts;
mod fallback;
mod fields;
mod headers;
mod jitter;
mod lease;
mod limit;
#[cfg(feature = "policy")]
mod limiter;
mod listing;
mod local;
mod memory;
mod naming;
#[cfg(feature = "policy")]
pub mod net;
mod plan;
#[cfg(feature = "policy")]
pub mod policy;
mod policy_name;
mod quota;
mod refusal;
mod request;
pub mod round_up;
mod scope;
mod shape;
mod share;
mod sharing;
mod status;
mod store;
mod subject;
#[cfg(feature = "policy")]
mod taken;
mod time;

#[cfg(feature = "policy")]
pub use asked::{Applied, Asked, Inline};
pub use clock::{Clock, ManualClock, SystemClock, TickingClock};
pub use decision::{Decision, Source, Verdict};
pub use error::{QuotaError, QuotaErrorKind};
pub use facts::{FactValue, Facts, FactsError, FactsErrorKind, MAX_FACT_LENGTH, MAX_FACTS};
pub use fallback::{Alone, BreakerState, FallbackStore, FallbackStoreBuilder, Outage, StoreEvent};
pub use headers::{FieldValue, HeaderStyle};
pub use jitter::jittered;
pub use lease::{HeldKey, Lease, LeaseError, LeaseId};
pub use limit::Limit;
#[cfg(feature = "policy")]
pub use limiter::{Current, Explained, Limiter, LimiterError, Observed, Observer, Outcome, Verb};
pub use listing::{Cursor, ListedKey, Listing, Page};
pub use local::{LocalLimiter, LocalLimiterBuilder, RateLimitExceeded};
pub use memory::{
    AtCap, DEFAULT_MAX_KEYS, DefaultHasher, MemoryStore, MemoryStoreBuilder, Occupancy,
    SnapshotError, SnapshotErrorKind,
};
pub use plan::{Key, MAX_TAKES, Mode, Plan, PlanError, PlanErrorKind, Take};
#[cfg(feature = "policy")]
pub use policy::{
    Override, OverrideEffect, OverrideError, OverrideErrorKind, Overrides, OwnLimit, Policy,
    PolicyError, PolicyErrorKind,
};
pub use quota::Quota;
pub use refusal::{Refusal, RefusalStyle};
pub use request::Request;
pub use scope::Algorithm;
pub use sharing::{Distributed, OnStoreLoss, Sharing};
pub use status::Status;
pub use store::{Store, StoreError, StoreErrorKind};
pub use subject::{Subject, SubjectParts};
#[cfg(feature = "policy")]
pub use taken::Taken;
pub use time::Timestamp;

/// The examples of the documentation compile.
#[cfg(all(doctest, feature = "policy"))]
#[doc = include_str!("../../../docs/LIBRARY.md")]
struct Library;
