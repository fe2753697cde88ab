//! Work that continues after its caller is dropped.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use crate::sync::Handle;

type Work<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Runs the work immediately if it completes in one poll (memory store), otherwise as a spawned task. Without a
/// Tokio runtime, work that must wait is dropped: held slots then expire.
pub(crate) fn run_in_background(work: impl Future<Output = ()> + Send + 'static) {
    let mut work: Work<()> = Box::pin(work);
    let first_poll = work.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    if first_poll.is_pending() {
        spawn(work);
    }
}

fn spawn<T: Send + 'static>(work: Work<T>) {
    if let Ok(runtime) = Handle::try_current() {
        runtime.spawn(async move { drop(work.await) });
    }
}

/// A future that runs to completion even if it is dropped after its first poll. Its output is then dropped too, so
/// that a slot which the store was granting to a disconnected client is released.
pub(crate) struct RunToCompletion<T: Send + 'static> {
    work: Option<Work<T>>,
    is_started: bool,
}

impl<T: Send + 'static> RunToCompletion<T> {
    pub(crate) fn new(work: impl Future<Output = T> + Send + 'static) -> Self {
        Self { work: Some(Box::pin(work)), is_started: false }
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
        if let Some(work) = self.work.take().filter(|_| self.is_started) {
            spawn(work);
        }
    }
}
