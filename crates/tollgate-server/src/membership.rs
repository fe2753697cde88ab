//! This node among the others that share its Redis: it says that it is up, again and again, and that it
//! leaves.

use std::mem;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::time::sleep;
use tollgate::StoreError;
use tollgate_redis::{Directory, Node, NodeRecord, NodeState};
use tracing::{info, warn};

use crate::api::admin::OverrideStore;
use crate::app::App;
use crate::duplicate_node::DuplicateNode;
use crate::live_node_count::LiveNodeCount;
use crate::settings::Settings;
use crate::shutdown::StageWaiter;

/// How long after a heartbeat that failed the next one is tried, unless heartbeats are more frequent.
const RETRY: Duration = Duration::from_secs(1);

/// For how long overrides may be behind before anybody hears of it.
const TROUBLE: Duration = Duration::from_secs(5);

/// The heartbeat of this node.
#[derive(Debug)]
pub(crate) struct Membership {
    directory: Directory,
    node: NodeRecord,
    every: Duration,
    lifetime: Duration,
    /// Whether the log has that they fail.
    is_told: bool,
    /// How many heartbeats have failed in a row.
    failures: u32,
    live_nodes: LiveNodeCount,
    /// Whether it has said once that it is up.
    is_known: bool,
    duplicate: DuplicateNode,
    /// Since when overrides cannot be followed though Redis answers.
    troubled: Option<Instant>,
}

impl Membership {
    /// Registers this node; none on memory, which nobody shares. Where that fails the node serves all the
    /// same, and is registered as soon as it can be.
    pub(crate) async fn begin(app: &App, settings: &Settings) -> Option<Self> {
        let directory = app.backend().redis()?.directory();
        let node = NodeRecord {
            id: app.node_id().to_owned(),
            address: app.node().address.to_string(),
            registered_at: app.node().started,
        };
        let (every, lifetime) = (settings.redis.heartbeat, settings.redis.node_lifetime);
        let mut this = Self {
            directory,
            node,
            every,
            lifetime,
            is_told: false,
            failures: 0,
            live_nodes: LiveNodeCount::new(lifetime, Instant::now()),
            is_known: false,
            duplicate: DuplicateNode::default(),
            troubled: None,
        };
        this.beat(app).await;
        Some(this)
    }

    /// Says that this node is up until the end, and then that it leaves.
    pub(crate) async fn keep(mut self, app: Arc<App>, mut end: StageWaiter) {
        while !end.is_reached() {
            let rest = if self.failures > 0 { self.every.min(RETRY) } else { self.every };
            tokio::select! {
                () = end.wait() => break,
                // A lost store is looked after by probes, and hears of this node when it is back.
                () = sleep(rest) => if !app.is_degraded() { self.beat(&app).await },
            }
        }
        if let Err(error) = self.directory.leave(&self.node.id).await {
            warn!(reason = %error, "this node could not say that it leaves; it will count as down");
        }
    }

    async fn beat(&mut self, app: &App) {
        let result = self.say_up(app).await;
        self.tell(app, &result);
        let is_up = result.is_ok();
        app.warnings().set_heartbeat(result.err().map(|error| error.to_string()));
        self.look_at_overrides(app, is_up);
        if is_up {
            app.metrics().store().note_answer();
            look_for_eviction(app).await;
        }
    }

    /// A Redis that is lost is told of elsewhere, and one that is just back has not been asked yet.
    fn look_at_overrides(&mut self, app: &App, is_up: bool) {
        let trouble = app.override_store().and_then(OverrideStore::last_error).filter(|_| is_up);
        let since = trouble.as_ref().map(|_| self.troubled.unwrap_or_else(Instant::now));
        self.troubled = since;
        let lasts = since.is_some_and(|since| since.elapsed() >= TROUBLE);
        if is_up && (trouble.is_none() || lasts) {
            app.warnings().set_overrides(trouble);
        }
    }

    async fn say_up(&mut self, app: &App) -> Result<(), StoreError> {
        // Before this node is among them: it would hide another of its id.
        let nodes = self.directory.nodes().await?;
        self.duplicate.look(&self.node, !self.is_known, &nodes, self.lifetime, Instant::now());
        app.warnings().set_duplicate_node(self.duplicate.warning(&self.node));
        self.directory.heartbeat(&self.node, self.lifetime).await?;
        self.count(app, &nodes);
        self.is_known = true;
        Ok(())
    }

    /// Among so many nodes limits are divided while the store is lost.
    fn count(&mut self, app: &App, nodes: &[Node]) {
        let is_other = |node: &&Node| node.state == NodeState::Up && node.id != self.node.id;
        let others = nodes.iter().filter(is_other).count();
        let is_down = |node: &&Node| node.state == NodeState::Down && node.id != self.node.id;
        app.metrics().note_nodes(others + 1, nodes.iter().filter(is_down).count());
        let all = u32::try_from(others).unwrap_or(u32::MAX).saturating_add(1);
        let all = NonZeroU32::new(self.live_nodes.count(all, self.every, Instant::now()));
        if let (Some(store), Some(nodes)) = (app.backend().fallback(), all) {
            store.set_nodes(nodes);
        }
    }

    /// Says once that heartbeats fail, and once that they no longer do. One that fails may be mere chance, and
    /// of a store that is lost the log has more.
    fn tell(&mut self, app: &App, result: &Result<(), StoreError>) {
        self.failures = if result.is_ok() { 0 } else { self.failures.saturating_add(1) };
        match result {
            Ok(()) if mem::take(&mut self.is_told) => info!("this node says again that it is up"),
            Err(error) if self.failures > 1 && !self.is_told && !app.is_degraded() => {
                self.is_told = true;
                warn!(reason = %error, "this node cannot say that it is up; it keeps trying");
            }
            _ => {}
        }
    }
}

/// Whether Redis evicts keys may change while it runs.
async fn look_for_eviction(app: &App) {
    if let Some(redis) = app.backend().redis()
        && let Ok(policy) = redis.eviction_policy().await
    {
        app.warnings().set_eviction(policy.as_deref());
    }
}
