//! A take that is refunded if its caller is dropped.

use std::sync::Arc;

use tollgate::{Store, StoreError};

use super::results::TakeReply;
use super::shared::Shared;
use crate::background::{RunToCompletion, run_in_background};

/// A take in progress. It owns its data, because a take that is dropped after it was sent must still complete: the rest
/// runs on the runtime, and the result is refunded. The memory store completes in one poll.
pub(super) type CancelSafeTake<S> = RunToCompletion<Result<UndeliveredTake<S>, StoreError>>;

pub(super) fn take<S: Store + 'static>(shared: &Arc<Shared<S>>, cost: u64) -> CancelSafeTake<S> {
    let shared = Arc::clone(shared);
    RunToCompletion::new(async move {
        let plan = shared.limits.plan(cost);
        let reply = TakeReply::from_decision(&shared.store.take(&plan).await?);
        drop(plan);
        Ok(UndeliveredTake { reply, cost, refund_to: Some(shared) })
    })
}

/// The result of a take. Dropping it refunds what was taken; [`deliver`](Self::deliver) keeps it.
pub(super) struct UndeliveredTake<S: Store + 'static> {
    reply: TakeReply,
    cost: u64,
    refund_to: Option<Arc<Shared<S>>>,
}

impl<S: Store + 'static> UndeliveredTake<S> {
    pub(super) fn deliver(mut self) -> TakeReply {
        self.refund_to = None;
        self.reply
    }
}

impl<S: Store + 'static> Drop for UndeliveredTake<S> {
    fn drop(&mut self) {
        let is_taken = self.reply.verdict.is_allowed();
        let Some(shared) = self.refund_to.take().filter(|_| is_taken) else { return };
        let cost = self.cost;
        run_in_background(async move {
            // If the refund fails, the take counts as spent: the limiter admits too few, never too many.
            let _ = shared.store.refund(&shared.limits.plan(cost)).await;
            shared.queue.retry_now();
        });
    }
}
