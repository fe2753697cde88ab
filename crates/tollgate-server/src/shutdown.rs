//! The way to the end: asked to stop, draining, finished.

use std::io;

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

/// How far the end has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    Running,
    /// A signal has come: not ready, still answering.
    Requested,
    /// A second signal has come: no more waiting for those who have not asked.
    Hurried,
    /// Every request is answered.
    Finished,
}

/// Knows when to stop, and tells everyone.
#[derive(Debug)]
pub(crate) struct Shutdown {
    stage: watch::Sender<Stage>,
}

/// Waits for a stage.
#[derive(Debug, Clone)]
pub(crate) struct StageWaiter {
    stage: watch::Receiver<Stage>,
    wanted: Stage,
}

impl Shutdown {
    /// Stops on SIGTERM and SIGINT.
    pub(crate) fn on_signals() -> io::Result<Self> {
        let (mut terminate, mut interrupt) =
            (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
        let (stage, _) = watch::channel(Stage::Running);
        let requested = stage.clone();
        tokio::spawn(async move {
            for stage in [Stage::Requested, Stage::Hurried] {
                tokio::select! {
                    _ = terminate.recv() => {}
                    _ = interrupt.recv() => {}
                }
                advance(&requested, stage);
            }
        });
        Ok(Self { stage })
    }

    /// When it is asked for.
    pub(crate) fn requested(&self) -> StageWaiter {
        StageWaiter { stage: self.stage.subscribe(), wanted: Stage::Requested }
    }

    /// When it is asked for once more.
    pub(crate) fn hurried(&self) -> StageWaiter {
        StageWaiter { stage: self.stage.subscribe(), wanted: Stage::Hurried }
    }

    /// When every request is answered.
    pub(crate) fn finished(&self) -> StageWaiter {
        StageWaiter { stage: self.stage.subscribe(), wanted: Stage::Finished }
    }

    /// Every request is answered.
    pub(crate) fn finish(&self) {
        advance(&self.stage, Stage::Finished);
    }
}

fn advance(stage: &watch::Sender<Stage>, to: Stage) {
    stage.send_if_modified(|stage| {
        let earlier = *stage < to;
        *stage = to.max(*stage);
        earlier
    });
}

impl StageWaiter {
    /// Waits for it.
    pub(crate) async fn wait(&mut self) {
        let wanted = self.wanted;
        // An error means that the sender is gone, which is the end as well.
        let _ = self.stage.wait_for(|stage| *stage >= wanted).await;
    }

    /// Whether it has come.
    pub(crate) fn is_reached(&self) -> bool {
        *self.stage.borrow() >= self.wanted
    }
}
