//! The directory: data of a deployment that is not counted. Nodes, overrides, audit, change events.

mod audit;
mod changes;
mod node_reports;
mod nodes;
mod override_follower;
mod overrides;
mod stream;

use std::sync::Arc;

pub use audit::AuditEntry;
pub use changes::{Change, Event};
pub use node_reports::{NodeReport, OutgoingReport, REPORT_HISTORY, ReportId, ReportPage};
pub use nodes::{Node, NodeRecord, NodeState};
pub use override_follower::OverrideFollower;
pub use overrides::StoredOverrides;

use crate::store::Shared;

/// The data of a deployment that is not counted, in the same Redis and with the same key prefix.
///
/// ```no_run
/// use std::time::Duration;
/// use tollgate::Timestamp;
/// use tollgate_redis::{Address, NodeRecord, NodeState, RedisStore};
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let directory = RedisStore::new(Address::local()).directory();
/// let node = NodeRecord {
///     id: "web-1".to_owned(),
///     address: "10.0.0.7:8080".to_owned(),
///     registered_at: Timestamp::EPOCH,
/// };
/// directory.heartbeat(&node, Duration::from_secs(30)).await?;
/// assert_eq!(directory.nodes().await?[0].state, NodeState::Up);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Directory {
    shared: Arc<Shared>,
}

impl Directory {
    pub(crate) const fn new(shared: Arc<Shared>) -> Self {
        Self { shared }
    }
}
