//! The directory: data of a deployment that is not counted. Nodes, overrides, audit, change events, event log, history.

mod audit;
mod changes;
mod event_log;
mod history;
mod node_reports;
mod nodes;
mod outgoing_report;
mod override_follower;
mod overrides;
mod stream;

use std::sync::Arc;

use tollgate::StoreError;

pub use audit::AuditEntry;
pub use changes::{Change, Event};
pub use event_log::{EVENT_HISTORY, LoggedEvent, MAX_EVENTS, OutgoingEvent};
pub use history::{Interval, OutgoingInterval};
pub use node_reports::{NodeReport, REPORT_HISTORY, ReportId, ReportPage};
pub use nodes::{Node, NodeRecord, NodeState};
pub use outgoing_report::{OutgoingFigures, OutgoingReport, ReportReply};
pub use override_follower::OverrideFollower;
pub use overrides::StoredOverrides;

use crate::call::Call;
use crate::failure::Failure;
use crate::keys::Keys;
use crate::resp::{Command, Reply};
use crate::router::Router;
use crate::script::Entry;
use crate::subscription::SharedSubscription;
use crate::time::Time;

/// The data of a deployment that is not counted, in the same Redis and with the same key prefix.
///
/// ```no_run
/// use std::time::Duration;
/// use tollgate::Timestamp;
/// use tollgate_redis::{Address, NodeRecord, NodeState, OutgoingReport, RedisStore};
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let directory = RedisStore::new(Address::local()).directory();
/// let node = NodeRecord {
///     id: "web-1".to_owned(),
///     address: "10.0.0.7:8080".to_owned(),
///     registered_at: Timestamp::EPOCH,
/// };
/// let lifetime = Duration::from_secs(30);
/// let report = OutgoingReport { node: &node, lifetime, events: &[], figures: None };
/// directory.report(&report).await?;
/// assert_eq!(directory.nodes().await?[0].state, NodeState::Up);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Directory {
    router: Arc<Router>,
    time: Arc<Time>,
    keys: Keys,
    events: Arc<SharedSubscription>,
}

impl Directory {
    pub(crate) const fn new(
        router: Arc<Router>,
        time: Arc<Time>,
        keys: Keys,
        events: Arc<SharedSubscription>,
    ) -> Self {
        Self { router, time, keys, events }
    }

    /// Runs one program in a call of its own.
    async fn run(
        &self,
        entry: Entry,
        keys: Vec<Vec<u8>>,
        arguments: Vec<Vec<u8>>,
    ) -> Result<Reply, StoreError> {
        let reply = self.router.run(Call { entry, keys, arguments }).await;
        reply.map_err(Failure::into_store_error)
    }

    /// Sends a command to the server of a key.
    async fn request(&self, key: &str, command: Command) -> Result<Reply, StoreError> {
        let reply = self.router.request(key.as_bytes(), command).await;
        reply.map_err(Failure::into_store_error)
    }
}
