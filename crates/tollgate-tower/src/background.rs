//! What is done to its end though those who wanted it are gone.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use tokio::runtime::Handle;

type Work<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Does it now if that takes no waiting, as with memory; else as a task of its own. Without a runtime what must
/// wait is not done: slots then return by themselves.
pub(crate) fn detach(work: impl Future<Output = ()> + Send + 'static) {
    let mut work: Work<()> = Box::pin(work);
    let first = work.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    if first.is_pending() {
        go_on(work);
    }
}

fn go_on<T: Send + 'static>(work: Work<T>) {
    if let Ok(runtime) = Handle::try_current() {
        runtime.spawn(async move { drop(work.await) });
    }
}

/// Work that goes on when it is dropped halfway, so that what it comes to is dropped too and not lost: a slot
/// that a store was just giving to a client who is gone.
pub(crate) struct Carried<T: Send + 'static> {
    work: Option<Work<T>>,
    is_begun: bool,
}

impl<T: Send + 'static> Carried<T> {
    pub(crate) fn new(work: impl Future<Output = T> + Send + 'static) -> Self {
        Self { work: Some(Box::pin(work)), is_begun: false }
    }
}

impl<T: Send + 'static> Future for Carried<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        self.is_begun = true;
        let Some(work) = &mut self.work else { return Poll::Pending };
        let polled = work.as_mut().poll(context);
        if polled.is_ready() {
            self.work = None;
        }
        polled
    }
}

impl<T: Send + 'static> Drop for Carried<T> {
    fn drop(&mut self) {
        if let Some(work) = self.work.take().filter(|_| self.is_begun) {
            go_on(work);
        }
    }
}
