#![doc = include_str!("lib.md")]

mod address;
mod call;
mod coalesce;
mod connection;
mod directory;
mod failure;
#[cfg(test)]
mod fixtures;
mod keys;
mod limit_code;
mod link;
#[cfg(tollgate_model)]
pub mod models;
mod resp;
mod router;
mod script;
mod slot;
mod store;
mod subscription;
mod sync;
mod time;

pub use address::{Address, AddressError};
pub use coalesce::together;
pub use connection::ServerInfo;
pub use directory::{
    AuditEntry, Change, Directory, EVENT_HISTORY, Event, Interval, LoggedEvent, MAX_EVENTS, Node,
    NodeRecord, NodeReport, NodeState, OutgoingEvent, OutgoingFigures, OutgoingInterval,
    OutgoingReport, OverrideFollower, REPORT_HISTORY, ReportId, ReportPage, ReportReply,
    StoredOverrides,
};
pub use router::Scripting;
pub use store::{
    DEFAULT_MAX_LEASES, DEFAULT_MAX_REFUSALS, DEFAULT_MAX_WAITING, DEFAULT_PREFIX, DEFAULT_TIMEOUT,
    PrefixError, RedisStore, RedisStoreBuilder,
};
/// The version of `rustls` for [`RedisStoreBuilder::tls_config`].
pub use tokio_rustls::rustls;

/// Compiles the examples in `docs/REDIS.md`.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/REDIS.md")]
struct Documentation;
