#![doc = include_str!("lib.md")]

mod address;
mod builder;
mod call;
mod caller;
mod cluster;
mod coalesce;
mod connection;
mod directory;
mod eviction;
mod failure;
#[cfg(test)]
mod fixtures;
mod keys;
mod limit_code;
mod link;
mod list;
mod refusals;
mod resp;
mod route;
mod router;
mod script;
mod sentinel;
mod slot;
mod split;
mod store;
mod subscription;
mod target;
mod time;
mod tls;
mod watch;

pub use address::{Address, AddressError};
pub use builder::{
    DEFAULT_MAX_REFUSALS, DEFAULT_MAX_WAITING, DEFAULT_PREFIX, DEFAULT_TIMEOUT, PrefixError,
    RedisStoreBuilder,
};
pub use caller::Scripting;
pub use connection::ServerInfo;
pub use directory::{
    AuditEntry, Change, Directory, Event, Node, NodeRecord, NodeReport, NodeState, OutgoingReport,
    OverrideFollower, REPORT_HISTORY, ReportId, ReportPage, StoredOverrides,
};
pub use store::RedisStore;

/// The examples of the documentation compile.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/REDIS.md")]
struct Documentation;
