//! Waiting for the shutdown of a connection beside its other events.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use super::Drain;

/// Waits for a drain. A wait for the signal itself locks a list that all connections share, so it is started once and not
/// each time the connection waits for input.
pub(crate) struct DrainWatch {
    drain: Drain,
    requested: Pin<Box<dyn Future<Output = ()> + Send>>,
    /// The waker that the signal wakes.
    registered: Option<Waker>,
}

impl DrainWatch {
    pub(crate) fn new(drain: Drain) -> Self {
        let mut waiting = drain.clone();
        let requested = Box::pin(async move { waiting.requested().await });
        Self { drain, requested, registered: None }
    }

    /// Ready when the connection should close after its request in progress.
    pub(crate) fn poll_requested(&mut self, context: &mut Context<'_>) -> Poll<()> {
        // Also detects a signal whose wake-up was used for another event.
        if self.drain.is_requested() {
            return Poll::Ready(());
        }
        if self.registered.as_ref().is_some_and(|waker| waker.will_wake(context.waker())) {
            return Poll::Pending;
        }
        self.registered = Some(context.waker().clone());
        self.requested.as_mut().poll(context)
    }
}

impl fmt::Debug for DrainWatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DrainWatch").field("drain", &self.drain).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use tokio::sync::{oneshot, watch};

    use super::*;

    #[tokio::test]
    async fn signal_wakes_a_task_that_has_waited_before() {
        let (sender, (waiting, has_waited)) = (watch::Sender::new(()), oneshot::channel());
        let mut drain = DrainWatch::new(Drain::new(sender.subscribe()));
        let task = tokio::spawn(async move {
            let mut waiting = Some(waiting);
            poll_fn(|context| {
                for _ in 0..2 {
                    if drain.poll_requested(context).is_ready() {
                        return Poll::Ready(());
                    }
                }
                waiting.take().map(|waiting| waiting.send(()));
                Poll::Pending
            })
            .await;
            assert!(poll_fn(|context| Poll::Ready(drain.poll_requested(context))).await.is_ready());
        });
        has_waited.await.expect("the task waits");
        drop(sender);
        task.await.expect("the task ends");
    }
}
