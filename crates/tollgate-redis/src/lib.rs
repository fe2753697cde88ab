#![doc = include_str!("lib.md")]

mod address;
mod builder;
mod call;
mod cluster;
mod coalesce;
mod connection;
mod cross_slot;
mod directory;
mod eviction;
mod failure;
#[cfg(test)]
mod fixtures;
mod keys;
mod limit_code;
mod link;
mod list;
mod program_runner;
mod refusal_cache;
mod resp;
mod route;
mod router;
mod script;
mod sentinel;
mod shared_subscription;
mod slot;
mod store;
mod subscription;
mod target;
mod time;
mod tls;

pub use address::{Address, AddressError};
pub use builder::{
    DEFAULT_MAX_REFUSALS, DEFAULT_MAX_WAITING, DEFAULT_PREFIX, DEFAULT_TIMEOUT, PrefixError,
    RedisStoreBuilder,
};
pub use connection::ServerInfo;
pub use directory::{
    AuditEntry, Change, Directory, Event, Node, NodeRecord, NodeReport, NodeState, OutgoingReport,
    OverrideFollower, REPORT_HISTORY, ReportId, ReportPage, StoredOverrides,
};
pub use program_runner::Scripting;
pub use store::RedisStore;
/// The version of `rustls` for [`RedisStoreBuilder::tls_config`].
pub use tokio_rustls::rustls;

/// Compiles the examples in `docs/REDIS.md`.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/REDIS.md")]
struct Documentation;
