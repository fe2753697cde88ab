//! A take that is given back if nobody is there any more to use it.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::runtime::Handle;
use tollgate::{Store, StoreError};

use super::answers::Answer;
use super::shared::Shared;

type Take = Pin<Box<dyn Future<Output = Result<Answer, StoreError>> + Send>>;

/// A take under way. It owns all it needs, so that it can outlive who asked.
///
/// Dropped before its end, it may have been sent already: then the rest runs on the runtime, and what was
/// taken is given back. Memory takes in one poll, so there is never a rest.
pub(super) struct Asking<S: Store + 'static> {
    shared: Arc<Shared<S>>,
    cost: u64,
    take: Option<Take>,
    is_begun: bool,
}

impl<S: Store + 'static> Asking<S> {
    pub(super) fn new(shared: &Arc<Shared<S>>, cost: u64) -> Self {
        let asked = Arc::clone(shared);
        let take: Take = Box::pin(async move {
            let plan = asked.limits.plan(cost);
            let decision = asked.store.take(&plan).await?;
            Ok(Answer::of(&decision))
        });
        Self { shared: Arc::clone(shared), cost, take: Some(take), is_begun: false }
    }
}

impl<S: Store + 'static> Future for Asking<S> {
    type Output = Result<Answer, StoreError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.is_begun = true;
        let Some(take) = &mut self.take else { return Poll::Pending };
        let answer = ready!(take.as_mut().poll(context));
        self.take = None;
        Poll::Ready(answer)
    }
}

impl<S: Store + 'static> Drop for Asking<S> {
    fn drop(&mut self) {
        let Some(take) = self.take.take().filter(|_| self.is_begun) else { return };
        // Without a runtime nobody can run the rest: what was sent counts as spent.
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(give_back(take, Arc::clone(&self.shared), self.cost));
        }
    }
}

async fn give_back<S: Store>(take: Take, shared: Arc<Shared<S>>, cost: u64) {
    let was_taken = take.await.is_ok_and(|answer| answer.verdict.is_allowed());
    if was_taken {
        // If the store cannot be told, it counts as spent: too little passes, never too much.
        let _ = shared.store.refund(&shared.limits.plan(cost)).await;
        shared.queue.look_again();
    }
}
