#![doc = include_str!("lib.md")]

pub mod algorithm;
mod costs;
mod decision;
mod fallback;
mod fields;
mod keyed;
pub mod lease;
mod limit;
#[cfg(feature = "policy")]
mod limiter;
mod local;
mod memory;
#[cfg(tollgate_model)]
pub mod models;
mod naming;
#[cfg(feature = "policy")]
pub mod net;
mod plan;
#[cfg(feature = "policy")]
pub mod policy;
#[cfg(feature = "policy")]
mod query;
mod quota;
mod request;
pub mod reservation;
mod response;
mod store;
mod subject;
mod sync;
mod time;
mod unit;

pub use algorithm::permit_id::PermitId;
pub use algorithm::reply::Verdict;
pub use algorithm::table::{Algorithm, LimitField};
pub use costs::{Costs, CostsError, CostsErrorKind, MAX_UNITS};
pub use decision::{Decision, HeldKey, OwnedDecision, Permit, PermitError, Source, Status};
pub use fallback::{
    BreakerState, FallbackStore, FallbackStoreBuilder, LocalDecisions, Outage, StoreEvent,
};
pub use keyed::{KeyedCall, KeyedLimiter};
pub use limit::{LeaseSize, Limit, LimitError, LimitSpec, RateText};
#[cfg(feature = "policy")]
pub use limiter::{
    ActivePolicy, ClientCounter, ClientId, ClientUsage, Explanation, LimitChange, Limiter,
    LimiterCall, LimiterError, Observation, Observer, Outcome, OverrideProposal, Receipt,
    Reservation, ReservationTerms, ReserveCall, ReserveError, ReserveOutcome, ResolvedQuery,
    RuleSelection, Series, SettleError, SingleRequest,
};
pub use local::{LocalLimiter, LocalLimiterBuilder, RateLimitExceeded};
pub use memory::{
    AtCap, DEFAULT_MAX_KEYS, DefaultHasher, MemoryStore, MemoryStoreBuilder, Occupancy,
    SnapshotError, SnapshotErrorKind,
};
pub use plan::{
    Distributed, Distribution, Key, MAX_TAKES, Mode, OnStoreLoss, Plan, PlanError, PlanErrorKind,
    Take, Verb,
};
#[cfg(feature = "policy")]
pub use policy::{
    OtherLimits, Override, OverrideCandidate, OverrideEffect, OverrideError, OverrideErrorKind,
    OverrideLimit, OverrideStorage, Overrides, Policy, PolicyError, PolicyErrorKind,
};
#[cfg(feature = "policy")]
pub use query::{Inline, InlineLimits, Query};
pub use quota::{Quota, QuotaError, QuotaErrorKind};
pub use request::{
    FactValue, Facts, FactsError, FactsErrorKind, MAX_DESCRIPTOR_LENGTH, MAX_FACT_LENGTH,
    MAX_FACTS, PathError, Request, normalize_path,
};
pub use response::{FieldValue, HeaderStyle, Refusal, RefusalStyle};
pub use store::{Cursor, DynStore, ListedKey, Listing, Page, Store, StoreError, StoreErrorKind};
pub use subject::{Subject, SubjectParts};
pub use time::{
    CalibratedClock, Clock, ManualClock, SystemClock, TickingClock, Timestamp, jittered, rounding,
};
pub use unit::Unit;

/// Compiles the examples of docs/LIBRARY.md.
#[cfg(all(doctest, feature = "policy"))]
#[doc = include_str!("../../../docs/LIBRARY.md")]
struct Library;
