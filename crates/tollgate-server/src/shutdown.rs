//! The stages of a shutdown (requested, drain skipped, finished), and the readiness of this node.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::futures::Notified;
use tokio::sync::{Notify, watch};

/// A stage of the shutdown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    Running,
    /// First signal: not ready, still serving.
    Requested,
    /// Second signal: the drain time is skipped.
    DrainSkipped,
    /// All requests are complete.
    Finished,
}

/// Whether this node should receive requests.
#[derive(Debug, Default)]
pub(crate) struct Readiness {
    is_ready: AtomicBool,
    changed: Notify,
}

impl Readiness {
    pub(crate) fn is_ready(&self) -> bool {
        self.is_ready.load(Ordering::Relaxed)
    }

    pub(crate) fn set_ready(&self) {
        self.set(true);
    }

    pub(crate) fn set_not_ready(&self) {
        self.set(false);
    }

    fn set(&self, is_ready: bool) {
        self.is_ready.store(is_ready, Ordering::Relaxed);
        self.changed.notify_waiters();
    }

    /// Waits for the next change. Changes are noticed from the first poll, or from `enable`.
    pub(crate) fn changed(&self) -> Notified<'_> {
        self.changed.notified()
    }
}

/// The shutdown state of the process.
#[derive(Debug)]
pub(crate) struct Shutdown {
    stage: watch::Sender<Stage>,
}

/// Waits for a shutdown stage.
#[derive(Debug, Clone)]
pub(crate) struct StageWaiter {
    stage: watch::Receiver<Stage>,
    target: Stage,
}

impl Shutdown {
    /// Starts the shutdown on SIGTERM and SIGINT.
    pub(crate) fn on_signals() -> io::Result<Self> {
        let (mut terminate, mut interrupt) =
            (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
        let (stage, _) = watch::channel(Stage::Running);
        let requested = stage.clone();
        tokio::spawn(async move {
            for stage in [Stage::Requested, Stage::DrainSkipped] {
                tokio::select! {
                    _ = terminate.recv() => {}
                    _ = interrupt.recv() => {}
                }
                advance(&requested, stage);
            }
        });
        Ok(Self { stage })
    }

    /// Returns a waiter for the first signal.
    pub(crate) fn requested(&self) -> StageWaiter {
        StageWaiter { stage: self.stage.subscribe(), target: Stage::Requested }
    }

    /// Returns a waiter for the second signal.
    pub(crate) fn drain_skipped(&self) -> StageWaiter {
        StageWaiter { stage: self.stage.subscribe(), target: Stage::DrainSkipped }
    }

    /// Returns a waiter for the end of all requests.
    pub(crate) fn finished(&self) -> StageWaiter {
        StageWaiter { stage: self.stage.subscribe(), target: Stage::Finished }
    }

    /// Records that all requests are complete.
    pub(crate) fn finish(&self) {
        advance(&self.stage, Stage::Finished);
    }
}

fn advance(stage: &watch::Sender<Stage>, to: Stage) {
    stage.send_if_modified(|stage| {
        let advances = *stage < to;
        *stage = to.max(*stage);
        advances
    });
}

impl StageWaiter {
    /// Waits until the stage is reached.
    pub(crate) async fn wait(&mut self) {
        let target = self.target;
        // An error means that the sender was dropped, so the server has stopped.
        let _ = self.stage.wait_for(|stage| *stage >= target).await;
    }

    /// Returns whether the stage is reached.
    pub(crate) fn is_reached(&self) -> bool {
        *self.stage.borrow() >= self.target
    }
}
