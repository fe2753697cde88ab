//! The live view: counts per second for the dashboard and `tollgate top`.
//!
//! Each frame is built once for all watchers, and not at all without watchers.

mod fleet;
mod frame;
mod policy_view;
mod publisher;
mod refused;
mod timeline;
mod view;
mod watcher;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use bytes::{Bytes, BytesMut};
use parking_lot::Mutex;
use serde::Serialize;
use tokio::sync::watch;
use tollgate::{Clock, MemoryStore, SystemClock, Timestamp};
use tollgate_redis::NodeState;

use fleet::Fleet;
use frame::{
    Frame, KnownNode, Node, NodeIdentity, Point, Points, Rates, Scope, Store, Thousandths,
};
use policy_view::PolicyView;
pub(crate) use publisher::run;
use refused::Refused;
use timeline::millis;
use view::View;
pub(crate) use watcher::Watcher;

use crate::node::NodeContext;
use crate::node::report::{NodeReport, NodeStatus, RefusedKey, merge_refused};

/// Maximum seconds per frame. Late reports may complete several seconds at a time.
const FRAME_POINTS: usize = 15;
/// Maximum seconds per history event, which bounds its length when there are many rules.
const HISTORY_POINTS: usize = 100;

/// State shared by all live streams of this node.
#[derive(Debug)]
pub(crate) struct Live {
    /// Reports of this node.
    own: Mutex<View>,
    current: Mutex<CurrentEvents>,
    ticks: watch::Sender<Tick>,
    watchers: Arc<AtomicU64>,
    /// Whether a watcher still needs the history.
    is_history_wanted: AtomicBool,
    /// The nodes of the fleet when Redis last listed them.
    known_nodes: Mutex<Vec<KnownNode>>,
    /// Redis time of the last node report, and when it arrived; `None` if it failed.
    redis_time: Mutex<Option<(Timestamp, Instant)>>,
}

/// Notifies watchers of a new frame or of the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tick {
    /// The number of frames published.
    Frame(u64),
    /// No more frames follow.
    Closed,
}

/// Whether to build the history event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum History {
    Include,
    Omit,
}

/// The encoded events that watchers send.
#[derive(Debug, Default)]
struct CurrentEvents {
    frame: Bytes,
    /// Present only if a watcher needs it.
    history: Option<Bytes>,
    policy: Bytes,
    scope: Option<Scope>,
}

impl Live {
    pub(crate) fn new() -> Self {
        let (ticks, _) = watch::channel(Tick::Frame(0));
        Self {
            own: Mutex::default(),
            current: Mutex::default(),
            ticks,
            watchers: Arc::default(),
            is_history_wanted: AtomicBool::default(),
            known_nodes: Mutex::default(),
            redis_time: Mutex::default(),
        }
    }

    /// Returns the number of open live streams.
    pub(crate) fn watchers(&self) -> usize {
        usize::try_from(self.watchers.load(Ordering::Relaxed)).unwrap_or(usize::MAX)
    }

    /// Sets the Redis time of the last node report; `None` if it failed.
    pub(crate) fn set_redis_time(&self, time: Option<Timestamp>) {
        *self.redis_time.lock() = time.map(|time| (time, Instant::now()));
    }

    /// Returns the estimated time of Redis; `None` if the last node report failed.
    pub(crate) fn redis_time(&self) -> Option<Timestamp> {
        self.redis_time.lock().map(|(time, at)| time + at.elapsed())
    }

    /// Adds a report of this node.
    pub(crate) fn add(&self, node: &str, until: Timestamp, report: &NodeReport) {
        let mut own = self.own.lock();
        own.add(node, until, report);
        own.drop_expired(until);
    }

    /// Publishes a frame to all watchers: of the fleet, or of this node only if `fleet` is `None`.
    pub(crate) fn publish(
        &self,
        context: &NodeContext,
        status: &NodeStatus,
        fleet: Option<&Fleet>,
    ) {
        let policy = policy_event(context);
        let scope = if fleet.is_some() { Scope::Fleet } else { Scope::Node };
        let is_new_scope = self.current.lock().scope != Some(scope);
        let is_wanted = self.is_history_wanted.swap(false, Ordering::Relaxed) || is_new_scope;
        let (own, mut known_nodes) = (self.own.lock(), self.known_nodes.lock());
        if let Some(fleet) = fleet {
            *known_nodes = fleet.known_nodes();
        }
        let mut draft = match fleet {
            Some(fleet) => fleet_draft(context, status, fleet),
            None => node_draft(context, status, &own),
        };
        draft.frame.known_nodes = &known_nodes;
        let events = draft.encode(if is_wanted { History::Include } else { History::Omit });
        drop((own, known_nodes));
        *self.current.lock() = CurrentEvents { policy, ..events };
        self.ticks.send_modify(|tick| {
            if let Tick::Frame(number) = tick {
                *number += 1;
            }
        });
    }

    /// Ends all live streams.
    pub(crate) fn close(&self) {
        self.ticks.send_replace(Tick::Closed);
    }
}

/// A frame before encoding, with the view that its history comes from.
struct Draft<'a> {
    now: Timestamp,
    view: &'a View,
    frame: Frame<'a>,
}

impl Draft<'_> {
    fn encode(self, history: History) -> CurrentEvents {
        let build_history = || {
            let seconds = self.view.complete_seconds(self.now, usize::MAX);
            let mut points = seconds.map(Point::new).peekable();
            let (mut events, mut first) = (BytesMut::new(), true);
            while first || points.peek().is_some() {
                let points = points.by_ref().take(HISTORY_POINTS).collect();
                events.extend_from_slice(&event("history", &Points { first, points }));
                first = false;
            }
            events.freeze()
        };
        CurrentEvents {
            frame: event("frame", &self.frame),
            history: (history == History::Include).then(build_history),
            policy: Bytes::new(),
            scope: Some(self.frame.scope),
        }
    }
}

fn fleet_draft<'a>(
    context: &'a NodeContext,
    status: &'a NodeStatus,
    fleet: &'a Fleet,
) -> Draft<'a> {
    let nodes = fleet.nodes.iter().map(|node| {
        let identity = NodeIdentity {
            id: &node.id,
            address: &node.address,
            state: if node.state == NodeState::Up { "Up" } else { "Down" },
            registered_at: node.registered_at,
            last_seen: node.last_seen,
            is_silent: node.is_silent,
        };
        Node::new(&identity, fleet.view.rate(&node.id, fleet.now), fleet.statuses.get(&node.id))
    });
    let refused = fleet.statuses.values().flat_map(|status| status.refused.iter().cloned());
    let frame = Frame {
        scope: Scope::Fleet,
        nodes: nodes.collect(),
        nodes_total: fleet.total_nodes,
        refused: with_overrides(context, merge_refused(refused)),
        ..frame(context, status, &fleet.view, fleet.now)
    };
    Draft { now: fleet.now, view: &fleet.view, frame }
}

fn node_draft<'a>(context: &'a NodeContext, status: &'a NodeStatus, own: &'a View) -> Draft<'a> {
    let (now, node) = (SystemClock::new().now(), context.identity());
    let identity = NodeIdentity {
        id: &node.id,
        address: &node.address_text,
        state: "Up",
        registered_at: node.started,
        last_seen: now,
        is_silent: false,
    };
    let frame = Frame {
        nodes: vec![Node::new(&identity, own.rate(&node.id, now), Some(status))],
        refused: with_overrides(context, status.refused.clone()),
        ..frame(context, status, own, now)
    };
    Draft { now, view: own, frame }
}

fn frame<'a>(
    context: &'a NodeContext,
    status: &'a NodeStatus,
    view: &'a View,
    now: Timestamp,
) -> Frame<'a> {
    Frame {
        t: millis(now),
        node: context.node_id(),
        scope: Scope::Node,
        points: view.complete_seconds(now, FRAME_POINTS).map(Point::new).collect(),
        now: Rates::of(&view.total(now)),
        requests: requests(context, view, now),
        store: store(context, status),
        nodes: Vec::new(),
        nodes_total: 1,
        refused: Vec::new(),
        known_nodes: &[],
        latest_event: context.events().version(),
    }
}

/// Returns the requests per second of each front end that this node has or that a node has reported.
fn requests<'a>(
    context: &NodeContext,
    view: &'a View,
    now: Timestamp,
) -> BTreeMap<&'a str, Thousandths> {
    let own = context.metrics().front_ends().listening().into_iter().map(|name| (name, 0));
    own.chain(view.requests(now)).map(|(name, rate)| (name, Thousandths(rate))).collect()
}

/// Adds whether the clients of refused keys have overrides.
fn with_overrides(context: &NodeContext, refused: Vec<RefusedKey>) -> Vec<Refused> {
    let active = context.limiter().active_policy();
    let view = |refused| Refused::new(refused, active.policy(), active.overrides());
    refused.into_iter().map(view).collect()
}

fn store<'a>(context: &'a NodeContext, status: &'a NodeStatus) -> Store<'a> {
    let info = context.store_info();
    let occupancy = context.backend().memory().map(MemoryStore::occupancy);
    let loss = context.metrics().store().loss();
    Store {
        kind: info.kind,
        address: info.address.as_deref(),
        server: info.server(),
        breaker: status.breaker.as_deref(),
        keys: occupancy.map(|occupancy| occupancy.keys),
        max_keys: occupancy.map(|occupancy| occupancy.max_keys),
        warning: status.warning.as_deref(),
        lost_since: loss.as_ref().map(|loss| millis(loss.since)),
        loss_reason: loss.map(|loss| loss.reason),
    }
}

fn policy_event(context: &NodeContext) -> Bytes {
    let active = context.limiter().active_policy();
    let file = context.policy_file().path().map(|path| path.display().to_string());
    event("policy", &PolicyView::new(active.policy(), file, context.policy_load()))
}

/// Encodes one server-sent event. The JSON contains no line break.
fn event(name: &str, data: &impl Serialize) -> Bytes {
    let data = serde_json::to_string(data).unwrap_or_default();
    format!("event: {name}\ndata: {data}\n\n").into()
}
