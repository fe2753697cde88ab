//! A take that is given back if nobody is there any more to use it.

use std::sync::Arc;

use tollgate::{Store, StoreError};

use super::answers::Answer;
use super::shared::Shared;
use crate::background::{Carried, detach};

/// A take under way. It owns all it needs, so that it can outlive who asked: dropped before its end, it may
/// have been sent already, so the rest runs on the runtime, and nobody hears what it comes to. Memory takes in
/// one poll, so there is never a rest.
pub(super) type Asking<S> = Carried<Result<Told<S>, StoreError>>;

pub(super) fn asking<S: Store + 'static>(shared: &Arc<Shared<S>>, cost: u64) -> Asking<S> {
    let shared = Arc::clone(shared);
    Carried::new(async move {
        let plan = shared.limits.plan(cost);
        let answer = Answer::of(&shared.store.take(&plan).await?);
        drop(plan);
        Ok(Told { answer, cost, unheard: Some(shared) })
    })
}

/// What a take came to. What it took is given back unless somebody hears of it.
pub(super) struct Told<S: Store + 'static> {
    answer: Answer,
    cost: u64,
    unheard: Option<Arc<Shared<S>>>,
}

impl<S: Store + 'static> Told<S> {
    pub(super) fn heard(mut self) -> Answer {
        self.unheard = None;
        self.answer
    }
}

impl<S: Store + 'static> Drop for Told<S> {
    fn drop(&mut self) {
        let is_taken = self.answer.verdict.is_allowed();
        let Some(shared) = self.unheard.take().filter(|_| is_taken) else { return };
        let cost = self.cost;
        detach(async move {
            // If the store cannot be told, it counts as spent: too little passes, never too much.
            let _ = shared.store.refund(&shared.limits.plan(cost)).await;
            shared.queue.look_again();
        });
    }
}
