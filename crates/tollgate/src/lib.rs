#![doc = include_str!("lib.md")]

pub mod algorithm;
mod clock;
mod decision;
mod distribution;
mod dyn_store;
mod error;
mod facts;
mod fallback;
mod fields;
mod headers;
mod jitter;
mod keyed;
mod limit;
#[cfg(feature = "policy")]
mod limiter;
mod listing;
mod local;
mod memory;
mod naming;
#[cfg(feature = "policy")]
pub mod net;
mod owned_decision;
mod permit;
mod plan;
#[cfg(feature = "policy")]
pub mod policy;
mod policy_name;
#[cfg(feature = "policy")]
mod query;
mod quota;
#[cfg(feature = "policy")]
mod receipt;
mod refusal;
mod request;
pub mod rounding;
mod status;
mod store;
mod subject;
mod time;
mod verb;

pub use clock::{Clock, ManualClock, SystemClock, TickingClock};
pub use decision::{Decision, Source, Verdict};
pub use distribution::{Distributed, Distribution, OnStoreLoss};
pub use dyn_store::DynStore;
pub use error::{QuotaError, QuotaErrorKind};
pub use facts::{FactValue, Facts, FactsError, FactsErrorKind, MAX_FACT_LENGTH, MAX_FACTS};
pub use fallback::{
    BreakerState, FallbackStore, FallbackStoreBuilder, LocalDecisions, Outage, StoreEvent,
};
pub use headers::{FieldValue, HeaderStyle};
pub use jitter::jittered;
pub use keyed::{KeyedCall, KeyedLimiter};
pub use limit::{Algorithm, Limit};
#[cfg(feature = "policy")]
pub use limiter::{
    ActivePolicy, ClientCounter, ClientId, ClientUsage, Explanation, Limiter, LimiterCall,
    LimiterError, Observation, Observer, Outcome,
};
pub use listing::{Cursor, ListedKey, Listing, Page};
pub use local::{LocalLimiter, LocalLimiterBuilder, RateLimitExceeded};
pub use memory::{
    AtCap, DEFAULT_MAX_KEYS, DefaultHasher, MemoryStore, MemoryStoreBuilder, Occupancy,
    SnapshotError, SnapshotErrorKind,
};
pub use owned_decision::OwnedDecision;
pub use permit::{HeldKey, Permit, PermitError, PermitId};
pub use plan::{Key, MAX_TAKES, Mode, Plan, PlanError, PlanErrorKind, Take};
#[cfg(feature = "policy")]
pub use policy::{
    Override, OverrideEffect, OverrideError, OverrideErrorKind, OverrideLimit, OverrideStorage,
    Overrides, Policy, PolicyError, PolicyErrorKind,
};
#[cfg(feature = "policy")]
pub use query::{Inline, Query, ResolvedQuery};
pub use quota::Quota;
#[cfg(feature = "policy")]
pub use receipt::Receipt;
pub use refusal::{Refusal, RefusalStyle};
pub use request::Request;
pub use status::Status;
pub use store::{Store, StoreError, StoreErrorKind};
pub use subject::{Subject, SubjectParts};
pub use time::Timestamp;
pub use verb::Verb;

/// Compiles the examples of docs/LIBRARY.md.
#[cfg(all(doctest, feature = "policy"))]
#[doc = include_str!("../../../docs/LIBRARY.md")]
struct Library;
