//! The live view: what the nodes counted, second by second, for the dashboard and for `tollgate top`.
//!
//! One moment is put together once, however many watch, and none while nobody does.

mod fleet;
mod frame;
mod timeline;
mod view;
mod watcher;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use bytes::{Bytes, BytesMut};
use parking_lot::Mutex;
use serde::Serialize;
use tokio::sync::watch;
use tollgate::{Clock, MemoryStore, SystemClock, Timestamp};
use tollgate_redis::NodeState;

pub(crate) use fleet::Fleet;
use frame::{Frame, Node, Now, Point, Points, PolicyView, Scope, Store, Who};
use timeline::millis;
use view::View;
pub(crate) use watcher::Watcher;

use crate::app::App;
use crate::node_report::{NodeReport, NodeStatus, most_refused};

/// The most seconds of a frame: so many may have been told of only now.
const FRAME_POINTS: usize = 15;
/// The most of one event of the history, lest it be long where there are many rules.
const HISTORY_POINTS: usize = 100;

/// What is shown.
#[derive(Debug)]
pub(crate) struct Live {
    /// What this node counted itself.
    own: Mutex<View>,
    shown: Mutex<Shown>,
    moments: watch::Sender<Moment>,
    watchers: Arc<AtomicU64>,
    /// Whether someone has not seen the last minutes yet.
    is_history_wanted: AtomicBool,
}

/// Tells those who watch what there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Moment {
    /// So many were shown.
    Nth(u64),
    /// There will be no more.
    Closed,
}

/// Whether someone has not seen the last minutes yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum History {
    Wanted,
    Known,
}

/// The moment that is shown.
#[derive(Debug, Default)]
struct Shown {
    frame: Bytes,
    /// Only where someone has not seen it.
    history: Option<Bytes>,
    policy: Bytes,
    scope: Option<Scope>,
}

impl Live {
    pub(crate) fn new() -> Self {
        let (moments, _) = watch::channel(Moment::Nth(0));
        Self {
            own: Mutex::default(),
            shown: Mutex::default(),
            moments,
            watchers: Arc::default(),
            is_history_wanted: AtomicBool::default(),
        }
    }

    /// How many watch.
    pub(crate) fn watchers(&self) -> usize {
        usize::try_from(self.watchers.load(Ordering::Relaxed)).unwrap_or(usize::MAX)
    }

    /// Adds what this node counted.
    pub(crate) fn add(&self, node: &str, until: Timestamp, pulse: &NodeReport) {
        let mut own = self.own.lock();
        own.add(node, until, pulse);
        own.forget(until);
    }

    /// Shows a moment: of the fleet, or of this node alone.
    pub(crate) fn show(&self, app: &App, status: &NodeStatus, fleet: Option<&Fleet>) {
        let policy = policy_event(app);
        let scope = if fleet.is_some() { Scope::Fleet } else { Scope::Node };
        let is_other = self.shown.lock().scope != Some(scope);
        let is_wanted = self.is_history_wanted.swap(false, Ordering::Relaxed) || is_other;
        let own = self.own.lock();
        let shown = match fleet {
            Some(fleet) => of_fleet(app, status, fleet),
            None => of_node(app, status, &own),
        };
        let shown = shown.with_history(if is_wanted { History::Wanted } else { History::Known });
        drop(own);
        *self.shown.lock() = Shown { policy, ..shown };
        self.moments.send_modify(|moment| {
            if let Moment::Nth(number) = moment {
                *number += 1;
            }
        });
    }

    /// There is nothing more to see.
    pub(crate) fn close(&self) {
        self.moments.send_replace(Moment::Closed);
    }
}

/// The frame, and the last minutes for who has not seen them.
struct Drawn<'a> {
    now: Timestamp,
    view: &'a View,
    frame: Frame<'a>,
}

impl Drawn<'_> {
    fn with_history(self, with: History) -> Shown {
        let history = || {
            let mut points = self.view.whole(self.now, usize::MAX).map(Point::new).peekable();
            let (mut events, mut first) = (BytesMut::new(), true);
            while first || points.peek().is_some() {
                let points = points.by_ref().take(HISTORY_POINTS).collect();
                events.extend_from_slice(&event("history", &Points { first, points }));
                first = false;
            }
            events.freeze()
        };
        Shown {
            frame: event("frame", &self.frame),
            history: (with == History::Wanted).then(history),
            policy: Bytes::new(),
            scope: Some(self.frame.scope),
        }
    }
}

fn of_fleet<'a>(app: &'a App, status: &'a NodeStatus, fleet: &'a Fleet) -> Drawn<'a> {
    let nodes = fleet.nodes.iter().map(|node| {
        let who = Who {
            id: &node.id,
            address: &node.address,
            state: if node.state == NodeState::Up { "Up" } else { "Down" },
            registered_at: node.registered_at,
        };
        Node::new(&who, fleet.view.rate(&node.id, fleet.now), fleet.statuses.get(&node.id))
    });
    let refused = fleet.statuses.values().flat_map(|told| told.refused.iter().cloned());
    let frame = Frame {
        scope: Scope::Fleet,
        nodes: nodes.collect(),
        nodes_total: fleet.all_nodes,
        refused: most_refused(refused),
        ..frame(app, status, &fleet.view, fleet.now)
    };
    Drawn { now: fleet.now, view: &fleet.view, frame }
}

fn of_node<'a>(app: &'a App, status: &'a NodeStatus, own: &'a View) -> Drawn<'a> {
    let (now, node) = (SystemClock::new().now(), app.node());
    let who =
        Who { id: &node.id, address: &node.address_text, state: "Up", registered_at: node.started };
    let frame = Frame {
        nodes: vec![Node::new(&who, own.rate(&node.id, now), Some(status))],
        refused: status.refused.clone(),
        ..frame(app, status, own, now)
    };
    Drawn { now, view: own, frame }
}

fn frame<'a>(app: &'a App, status: &'a NodeStatus, view: &'a View, now: Timestamp) -> Frame<'a> {
    Frame {
        t: millis(now),
        node: app.node_id(),
        scope: Scope::Node,
        points: view.whole(now, FRAME_POINTS).map(Point::new).collect(),
        now: Now::of(&view.total(now)),
        store: store(app, status),
        nodes: Vec::new(),
        nodes_total: 1,
        refused: Vec::new(),
    }
}

fn store<'a>(app: &'a App, status: &'a NodeStatus) -> Store<'a> {
    let about = app.store_info();
    let occupancy = app.backend().memory().map(MemoryStore::occupancy);
    Store {
        kind: about.kind,
        address: about.address.as_deref(),
        server: about.server.as_deref(),
        breaker: status.breaker.as_deref(),
        keys: occupancy.map(|occupancy| occupancy.keys),
        max_keys: occupancy.map(|occupancy| occupancy.max_keys),
        warning: status.warning.as_deref(),
    }
}

fn policy_event(app: &App) -> Bytes {
    let current = app.limiter().active_policy();
    let file = app.policy_file().path().map(|path| path.display().to_string());
    event("policy", &PolicyView::new(current.policy(), file, app.policy_load()))
}

/// One event of the stream. JSON has no line breaks of its own.
fn event(name: &str, data: &impl Serialize) -> Bytes {
    let data = serde_json::to_string(data).unwrap_or_default();
    format!("event: {name}\ndata: {data}\n\n").into()
}
