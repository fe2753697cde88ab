//! A waker that ignores the wake-ups a task causes to itself.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Wake, Waker};

use futures_util::task::AtomicWaker;

/// Wakes a task, unless it is closed. A task that queues frames on its own connection closes the gate meanwhile, and polls
/// the connection afterwards in any case. Without the gate, the first frame would wake the task for another, empty poll.
pub(super) struct WakeGate {
    gate: Arc<Gate>,
    waker: Waker,
}

#[derive(Debug, Default)]
struct Gate {
    task: AtomicWaker,
    is_closed: AtomicBool,
}

impl WakeGate {
    pub(super) fn new() -> Self {
        let gate = Arc::<Gate>::default();
        Self { waker: Waker::from(Arc::clone(&gate)), gate }
    }

    /// Opens the gate for a task, before its connection is polled with the returned context. A wake-up that was ignored is
    /// not lost: what caused it happened before that poll.
    pub(super) fn open(&self, context: &Context<'_>) -> Context<'_> {
        self.gate.task.register(context.waker());
        self.gate.is_closed.store(false, Ordering::SeqCst);
        Context::from_waker(&self.waker)
    }

    /// Ignores wake-ups until the gate is opened. The task must do so before it returns.
    pub(super) fn close(&self) {
        self.gate.is_closed.store(true, Ordering::SeqCst);
    }
}

impl fmt::Debug for WakeGate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.gate.fmt(f)
    }
}

impl Wake for Gate {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.is_closed.load(Ordering::SeqCst) {
            self.task.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn only_an_open_gate_wakes_the_task() {
        let (count, gate) = (Arc::<Count>::default(), WakeGate::new());
        let task = Waker::from(Arc::clone(&count));
        let wakes = || count.0.load(Ordering::Relaxed);
        let connection = gate.open(&Context::from_waker(&task)).waker().clone();
        gate.close();
        connection.wake_by_ref();
        assert_eq!(wakes(), 0);
        let _ = gate.open(&Context::from_waker(&task));
        connection.wake_by_ref();
        assert_eq!(wakes(), 1);
    }
}
