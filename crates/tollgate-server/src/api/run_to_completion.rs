//! Work that continues after its caller is dropped.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::runtime::Handle;

type Work<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// A future that runs to completion even if it is dropped after its first poll. Its output is then dropped too, so
/// that a permit which the store was granting to a disconnected client is released.
///
/// It is polled by its caller until then: concurrent checks reach the store in the order of their first polls.
pub(super) struct RunToCompletion<T: Send + 'static> {
    work: Option<Work<T>>,
    is_started: bool,
}

impl<T: Send + 'static> RunToCompletion<T> {
    pub(super) fn new(work: impl Future<Output = T> + Send + 'static) -> Self {
        Self { work: Some(Box::pin(work)), is_started: false }
    }
}

impl<T: Send + 'static> fmt::Debug for RunToCompletion<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunToCompletion").field("is_started", &self.is_started).finish()
    }
}

impl<T: Send + 'static> Future for RunToCompletion<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        self.is_started = true;
        let Some(work) = &mut self.work else { return Poll::Pending };
        let polled = work.as_mut().poll(context);
        if polled.is_ready() {
            self.work = None;
        }
        polled
    }
}

impl<T: Send + 'static> Drop for RunToCompletion<T> {
    fn drop(&mut self) {
        let work = self.work.take().filter(|_| self.is_started);
        // Without a runtime the process ends.
        if let (Some(work), Ok(runtime)) = (work, Handle::try_current()) {
            runtime.spawn(async move { drop(work.await) });
        }
    }
}
