//! Lanes: plans in the same lane may share a call.

use std::hash::{Hash, Hasher};
use std::ptr;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::Server;
use crate::slot::Slot;
use crate::sync::atomic::{AtomicUsize, Ordering};

/// A server, and which of its keys may share a call.
#[derive(Debug, Clone)]
pub(crate) struct Lane {
    pub(super) server: Arc<Server>,
    pub(super) scope: Scope,
}

/// The keys that may share a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Scope {
    /// All keys of a server without a cluster.
    Server,
    /// All keys of a cluster node.
    Node,
    /// The keys of one slot of a cluster.
    Slot(Slot),
}

impl Lane {
    pub(crate) const fn scope(&self) -> Scope {
        self.scope
    }

    /// Whether the server is connected and has not been silent for this time.
    pub(crate) fn is_replying(&self, max_silence: Duration) -> bool {
        self.server.link().is_replying(max_silence)
    }

    /// Returns the time since the server last replied, or had nothing to reply to. `None` without a connection.
    pub(crate) fn silence(&self, now: Instant) -> Option<Duration> {
        self.server.link().silence(now)
    }

    /// Records the plans of a call to a cluster node, and whether the node refuses several slots in one call.
    pub(crate) fn record(&self, decided: usize, undecided: usize, is_refused: bool) {
        if self.scope != Scope::Node {
            return;
        }
        let (batching, now) = (self.server.node_batching(), Instant::now());
        match is_refused {
            true => batching.disable(now),
            false => batching.record(decided, undecided, now),
        }
    }

    /// Counts a plan that waits for the server, unless `max` wait already. Returns whether it was counted.
    pub(crate) fn enter(&self, max: usize) -> bool {
        let waiting = self.waiting();
        let count = |count: usize| (count < max).then_some(count + 1);
        waiting.fetch_update(Ordering::Relaxed, Ordering::Relaxed, count).is_ok()
    }

    /// Counts plans that return to the queue.
    pub(crate) fn enter_again(&self, plans: usize) {
        self.waiting().fetch_add(plans, Ordering::Relaxed);
    }

    /// Removes plans from the count of waiting plans.
    pub(crate) fn leave(&self, plans: usize) {
        self.waiting().fetch_sub(plans, Ordering::Relaxed);
    }

    fn waiting(&self) -> &AtomicUsize {
        self.server.waiting_plans()
    }
}

#[cfg(tollgate_model)]
impl Lane {
    /// Returns the number of plans that wait for the server.
    pub(crate) fn waiting_count(&self) -> usize {
        self.waiting().load(Ordering::SeqCst)
    }
}

impl PartialEq for Lane {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.server, &other.server) && self.scope == other.scope
    }
}

impl Eq for Lane {}

impl Hash for Lane {
    fn hash<H: Hasher>(&self, state: &mut H) {
        ptr::hash(Arc::as_ptr(&self.server), state);
        self.scope.hash(state);
    }
}
