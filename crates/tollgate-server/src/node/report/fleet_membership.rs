//! Membership of this node in the fleet that shares its Redis: its reports, the live node count, and leaving.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tollgate::{Clock, FallbackStore, StoreError, SystemClock, Timestamp};
use tollgate_redis::{
    Directory, NodeRecord, OutgoingEvent, OutgoingFigures, OutgoingReport, RedisStore, ReportReply,
};
use tracing::warn;

use super::report_health::ReportHealth;
use crate::node::duplicate_node::DuplicateNode;
use crate::node::live_node_count::{LiveNodeCount, NodeCounts};
use crate::node::{NodeContext, RedisCopy};
use crate::settings::RedisSettings;

/// Maximum time between two reports of this node without an interruption, in report intervals.
const MAX_GAP_INTERVALS: u32 = 3;
/// A gap up to this is never an interruption: with short intervals, a busy machine would cause many.
const MIN_MAX_GAP: Duration = Duration::from_secs(3);

/// Sends the reports of this node to Redis, one call each.
#[derive(Debug)]
pub(super) struct FleetMembership {
    directory: Directory,
    node: NodeRecord,
    interval: Duration,
    lifetime: Duration,
    live_nodes: LiveNodeCount,
    /// Whether a report has succeeded.
    is_registered: bool,
    /// Redis time of the last successful report, and when its reply arrived.
    redis_time: Option<(Timestamp, Instant)>,
    duplicate: DuplicateNode,
    health: ReportHealth,
    copy: Option<Arc<RedisCopy>>,
}

impl FleetMembership {
    pub(super) fn new(
        context: &NodeContext,
        store: &FallbackStore<RedisStore>,
        settings: &RedisSettings,
        copy: Option<Arc<RedisCopy>>,
    ) -> Self {
        let identity = context.identity();
        let node = NodeRecord {
            id: identity.id.clone(),
            address: identity.address_text.clone(),
            registered_at: identity.started,
        };
        Self {
            directory: store.store().directory(),
            node,
            interval: settings.report,
            lifetime: settings.node_lifetime,
            live_nodes: LiveNodeCount::new(settings.node_lifetime, store.nodes().get()),
            is_registered: false,
            redis_time: None,
            duplicate: DuplicateNode::default(),
            health: ReportHealth::default(),
            copy,
        }
    }

    /// Sends one report, which registers or confirms this node, and updates warnings and the node count. Returns
    /// whether the report succeeded.
    pub(super) async fn report(
        &mut self,
        context: &NodeContext,
        events: &[OutgoingEvent<'_>],
        figures: Option<OutgoingFigures<'_>>,
    ) -> bool {
        let report = OutgoingReport { node: &self.node, lifetime: self.lifetime, events, figures };
        let reply = self.directory.report(&report).await;
        match &reply {
            Ok(reply) => self.accept(context, reply),
            Err(_) => self.skip_report(context),
        }
        self.health.update(context, reply.as_ref().err()).await;
        reply.is_ok()
    }

    /// Notes that a report failed, or is not sent because Redis is lost. In degraded mode, probes test the store.
    pub(super) fn skip_report(&mut self, context: &NodeContext) {
        self.live_nodes.interrupt();
        context.live().set_redis_time(None);
    }

    /// Returns the estimated time of Redis, also during an outage.
    pub(super) fn redis_time(&self) -> Timestamp {
        let estimate = self.redis_time.map(|(time, at)| time + at.elapsed());
        estimate.unwrap_or_else(|| SystemClock::new().now())
    }

    /// Returns whether a report has succeeded.
    pub(super) const fn is_registered(&self) -> bool {
        self.is_registered
    }

    /// Removes this node from the directory, if it is there.
    pub(super) async fn leave(&self) {
        if !self.is_registered {
            return;
        }
        let result: Result<(), StoreError> = self.directory.leave(&self.node).await;
        if let Err(error) = result {
            warn!(%error, "node not deregistered at shutdown; other nodes show it as down");
        }
    }

    /// Updates the duplicate warning and the number of live nodes, which determines this node's share of each limit
    /// in degraded mode.
    fn accept(&mut self, context: &NodeContext, reply: &ReportReply) {
        let (now, is_first) = (Instant::now(), !self.is_registered);
        let previous = reply.previous.as_ref();
        self.duplicate.update(&self.node, is_first, previous, self.lifetime, now);
        context.warnings().set_duplicate_node(self.duplicate.warning(&self.node));
        self.is_registered = true;
        self.redis_time = Some((reply.at, now));
        context.events().set_shared_events(reply.events);
        context.live().set_redis_time(Some(reply.at));
        context.metrics().note_nodes(reply.up, reply.down);
        let counts = NodeCounts {
            up: reply.up,
            departures: reply.departures,
            is_continuous: self.is_continuous(reply),
        };
        let live = NonZeroU32::new(self.live_nodes.update(counts, now));
        if let (Some(store), Some(live)) = (context.backend().fallback(), live) {
            store.set_nodes(live);
            if let Some(copy) = &self.copy {
                copy.note_nodes(live, now);
            }
        }
    }

    /// Returns whether Redis has the previous report of this node, and it is recent. Otherwise Redis was unavailable,
    /// has lost data or was replaced, its clock has stepped, or this node was suspended.
    fn is_continuous(&self, reply: &ReportReply) -> bool {
        reply.previous.as_ref().is_some_and(|previous| {
            let max_gap = (self.interval * MAX_GAP_INTERVALS).max(MIN_MAX_GAP);
            let max = previous.last_seen + max_gap;
            (previous.last_seen..=max).contains(&reply.at)
        })
    }
}
