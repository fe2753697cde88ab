//! Whether a cluster node accepts keys of several slots in one call.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// Number of plans that a node must leave undecided, without deciding any, before calls contain one slot each.
/// While a slot migrates, a node leaves the plans of that slot undecided.
const MAX_UNDECIDED: usize = 256;

/// Time until calls contain several slots again, to find out whether the node accepts them now.
const RETRY_AFTER: Duration = Duration::from_secs(60);

/// Whether calls to a node may contain several slots.
#[derive(Debug, Default)]
pub(super) struct NodeBatching {
    /// Whether `state` is worth a look.
    is_suspect: AtomicBool,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Plans that the node left undecided since it last decided one.
    undecided: usize,
    disabled_until: Option<Instant>,
}

impl NodeBatching {
    pub(super) fn is_enabled(&self, now: Instant) -> bool {
        if !self.is_suspect.load(Ordering::Relaxed) {
            return true;
        }
        self.state.lock().disabled_until.is_none_or(|until| until <= now)
    }

    /// The node refuses several slots in one call.
    pub(super) fn disable(&self, now: Instant) {
        let mut state = self.state.lock();
        (state.undecided, state.disabled_until) = (0, Some(now + RETRY_AFTER));
        self.is_suspect.store(true, Ordering::Relaxed);
    }

    /// Records the plans of a call.
    pub(super) fn record(&self, decided: usize, undecided: usize, now: Instant) {
        if undecided == 0 && !self.is_suspect.load(Ordering::Relaxed) {
            return;
        }
        let mut state = self.state.lock();
        state.undecided = if decided > 0 { 0 } else { state.undecided + undecided };
        self.is_suspect.store(true, Ordering::Relaxed);
        if state.undecided >= MAX_UNDECIDED {
            drop(state);
            self.disable(now);
        } else if state.undecided == 0 && state.disabled_until.is_none_or(|until| until <= now) {
            state.disabled_until = None;
            self.is_suspect.store(false, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn node_that_decides_no_plan_gets_one_slot_per_call_for_a_while() {
        let (batching, now) = (NodeBatching::default(), Instant::now());
        batching.record(0, MAX_UNDECIDED - 1, now);
        assert!(batching.is_enabled(now));
        batching.record(0, 1, now);
        assert!(!batching.is_enabled(now));
        assert!(batching.is_enabled(now + RETRY_AFTER));
    }

    #[test]
    fn migrating_slot_does_not_disable_node_batching() {
        let (batching, now) = (NodeBatching::default(), Instant::now());
        for _ in 0..10 {
            batching.record(1, MAX_UNDECIDED - 1, now);
        }
        assert!(batching.is_enabled(now));
        batching.record(5, 0, now);
        assert!(!batching.is_suspect.load(Ordering::Relaxed));
    }

    #[test]
    fn refusal_disables_node_batching_immediately() {
        let (batching, now) = (NodeBatching::default(), Instant::now());
        batching.disable(now);
        assert!(!batching.is_enabled(now));
        // A call that was sent before.
        batching.record(3, 0, now);
        assert!(!batching.is_enabled(now));
    }
}
