//! Membership of this node in the fleet that shares its Redis: registration, heartbeats, and leaving.

use std::mem;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::time::sleep;
use tollgate::StoreError;
use tollgate_redis::{Directory, Node, NodeRecord, NodeState};
use tracing::{info, warn};

use crate::node::NodeContext;
use crate::node::duplicate_node::DuplicateNode;
use crate::node::live_node_count::LiveNodeCount;
use crate::settings::Settings;
use crate::shutdown::StageWaiter;

/// Delay after a failed heartbeat, unless the heartbeat interval is shorter.
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// How long reading overrides may fail before a warning.
const OVERRIDES_GRACE: Duration = Duration::from_secs(5);

/// Sends the heartbeats of this node.
#[derive(Debug)]
pub(crate) struct Membership {
    directory: Directory,
    node: NodeRecord,
    interval: Duration,
    lifetime: Duration,
    /// Whether failing heartbeats were logged.
    is_failure_logged: bool,
    /// Heartbeats failed in a row.
    failures: u32,
    live_nodes: LiveNodeCount,
    /// Whether a heartbeat has succeeded.
    is_registered: bool,
    duplicate: DuplicateNode,
    /// Start of the current period in which reading overrides fails although heartbeats succeed.
    overrides_failing_since: Option<Instant>,
}

impl Membership {
    /// Registers this node; `None` with the memory store, which is not shared. If registration fails, the node
    /// serves requests and retries.
    pub(crate) async fn register(context: &NodeContext, settings: &Settings) -> Option<Self> {
        let directory = context.backend().redis()?.directory();
        let node = NodeRecord {
            id: context.node_id().to_owned(),
            address: context.identity().address.to_string(),
            registered_at: context.identity().started,
        };
        let (interval, lifetime) = (settings.redis.heartbeat, settings.redis.node_lifetime);
        let mut membership = Self {
            directory,
            node,
            interval,
            lifetime,
            is_failure_logged: false,
            failures: 0,
            live_nodes: LiveNodeCount::new(lifetime, Instant::now()),
            is_registered: false,
            duplicate: DuplicateNode::default(),
            overrides_failing_since: None,
        };
        membership.beat(context).await;
        Some(membership)
    }

    /// Sends heartbeats until shutdown, then removes this node from the directory.
    pub(crate) async fn run(mut self, context: Arc<NodeContext>, mut shutdown: StageWaiter) {
        while !shutdown.is_reached() {
            let delay =
                if self.failures > 0 { self.interval.min(RETRY_DELAY) } else { self.interval };
            tokio::select! {
                () = shutdown.wait() => break,
                // In degraded mode probes test the store; heartbeats resume when it is back.
                () = sleep(delay) => if !context.is_degraded() { self.beat(&context).await },
            }
        }
        if let Err(error) = self.directory.leave(&self.node.id).await {
            warn!(%error, "node not deregistered at shutdown; other nodes show it as down");
        }
    }

    /// Sends one heartbeat, and updates warnings and the node count.
    async fn beat(&mut self, context: &NodeContext) {
        let result = self.send_heartbeat(context).await;
        self.log_result(context, &result);
        let is_ok = result.is_ok();
        context
            .warnings()
            .set_heartbeat(result.err().map(|error| format!("heartbeat failed: {error}")));
        self.check_overrides(context, is_ok);
        if is_ok {
            context.metrics().store().note_success();
            check_eviction(context).await;
        }
    }

    /// Updates the overrides warning. A lost Redis has its own warning. After an outage, overrides get time to be
    /// read again.
    fn check_overrides(&mut self, context: &NodeContext, is_heartbeat_ok: bool) {
        let error = context.overrides().last_error().filter(|_| is_heartbeat_ok);
        let since =
            error.as_ref().map(|_| self.overrides_failing_since.unwrap_or_else(Instant::now));
        self.overrides_failing_since = since;
        let is_lasting = since.is_some_and(|since| since.elapsed() >= OVERRIDES_GRACE);
        if is_heartbeat_ok && (error.is_none() || is_lasting) {
            context.warnings().set_overrides(error);
        }
    }

    async fn send_heartbeat(&mut self, context: &NodeContext) -> Result<(), StoreError> {
        // Read first: our heartbeat overwrites the record of another node with the same id.
        let nodes = self.directory.nodes().await?;
        let is_first = !self.is_registered;
        self.duplicate.update(&self.node, is_first, &nodes, self.lifetime, Instant::now());
        context.warnings().set_duplicate_node(self.duplicate.warning(&self.node));
        self.directory.heartbeat(&self.node, self.lifetime).await?;
        self.count_nodes(context, &nodes);
        self.is_registered = true;
        Ok(())
    }

    /// Updates the number of live nodes, which determines this node's share of each limit in degraded mode.
    fn count_nodes(&mut self, context: &NodeContext, nodes: &[Node]) {
        let is_other = |node: &&Node| node.state == NodeState::Up && node.id != self.node.id;
        let others = nodes.iter().filter(is_other).count();
        let is_down = |node: &&Node| node.state == NodeState::Down && node.id != self.node.id;
        context.metrics().note_nodes(others + 1, nodes.iter().filter(is_down).count());
        let up = u32::try_from(others).unwrap_or(u32::MAX).saturating_add(1);
        let live = NonZeroU32::new(self.live_nodes.update(up, self.interval, Instant::now()));
        if let (Some(store), Some(live)) = (context.backend().fallback(), live) {
            store.set_nodes(live);
        }
    }

    /// Logs when heartbeats start to fail and when they succeed again. A single failure is not logged, nor is a
    /// failure in degraded mode, which has its own log lines.
    fn log_result(&mut self, context: &NodeContext, result: &Result<(), StoreError>) {
        self.failures = if result.is_ok() { 0 } else { self.failures.saturating_add(1) };
        match result {
            Ok(()) if mem::take(&mut self.is_failure_logged) => info!("heartbeats succeed again"),
            Err(error)
                if self.failures > 1 && !self.is_failure_logged && !context.is_degraded() =>
            {
                self.is_failure_logged = true;
                warn!(
                    %error,
                    "heartbeats fail: other nodes will show this node as down and not count it; retrying"
                );
            }
            _ => {}
        }
    }
}

/// Updates the eviction warning; the setting of Redis may change while it runs.
async fn check_eviction(context: &NodeContext) {
    if let Some(redis) = context.backend().redis()
        && let Ok(policy) = redis.eviction_policy().await
    {
        context.warnings().set_eviction(policy.as_deref());
    }
}
