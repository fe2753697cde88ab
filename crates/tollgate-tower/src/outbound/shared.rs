//! What the clones of one limiter have in common.

use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::time::Instant;
use tollgate::policy::NamedLimits;
use tollgate::{RateLimitExceeded, Store, Verdict};

use super::answers::{Acquired, Answer};
use super::asking::asking;
use super::counts::Tally;
use super::error::AcquireError;
use super::event::{LimiterEvent, Listener};
use super::max_wait::{Patience, from_now};
use super::queue::{Awake, NotBefore, Queue};

#[derive(Debug)]
pub(super) struct Shared<S> {
    pub(super) store: S,
    pub(super) limits: NamedLimits,
    pub(super) queue: Queue,
    pub(super) tally: Tally,
    pub(super) listener: Listener,
}

/// What one question came to.
enum Outcome {
    Had(Answer),
    Wait(NotBefore),
}

impl<S: Store + 'static> Shared<S> {
    /// Takes, at once if nobody waits, else when it is this caller's turn.
    pub(super) async fn acquire(
        self: &Arc<Self>,
        cost: u64,
        patience: Patience,
    ) -> Result<Acquired, AcquireError> {
        let acquired = self.take(cost, patience).await;
        if let Err(error) = &acquired
            && error.is_of_store()
        {
            self.tally.failed();
        }
        acquired
    }

    async fn take(
        self: &Arc<Self>,
        cost: u64,
        patience: Patience,
    ) -> Result<Acquired, AcquireError> {
        if self.queue.waiting() > 0 {
            return self.wait(cost, patience, None).await;
        }
        match self.ask(cost, patience).await? {
            Outcome::Had(answer) => Ok(self.let_through(answer, None)),
            Outcome::Wait(told) => self.wait(cost, patience, Some(told)).await,
        }
    }

    /// Takes as the first of the queue, not before then if it has been told when.
    async fn wait(
        self: &Arc<Self>,
        cost: u64,
        patience: Patience,
        mut told: Option<NotBefore>,
    ) -> Result<Acquired, AcquireError> {
        // Who cannot be served before the first in the queue need not wait to find that out.
        let in_vain = self.queue.room_at().is_some_and(|at| patience.ends_before(at));
        if in_vain || matches!(patience, Patience::None) {
            return Err(self.refused(Some(self.queue.least_wait())));
        }
        if Handle::try_current().is_err() {
            return Err(AcquireError::NoRuntime);
        }
        let (came, place) = (Instant::now(), self.queue.join());
        let turn = match place.first_at_once() {
            Some(turn) => turn,
            None => {
                // Others are first, so what it was told will be old when it is.
                told = None;
                let turn = place.first(patience).await;
                turn.ok_or_else(|| self.refused(Some(self.queue.least_wait())))?
            }
        };
        loop {
            let awake = match told {
                Some(told) => turn.sleep(told).await,
                None => Awake::InTime,
            };
            match self.ask(cost, patience).await {
                Ok(Outcome::Had(answer)) => {
                    return Ok(self.let_through(answer, Some(came.elapsed())));
                }
                Ok(Outcome::Wait(later)) => told = Some(later),
                // Who looks before there should be room need not fail with a store that will be back by then.
                Err(AcquireError::Unavailable(_) | AcquireError::Timeout(_))
                    if awake == Awake::Early => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Asks the store once. An error if it refuses for longer than patience lasts.
    async fn ask(self: &Arc<Self>, cost: u64, patience: Patience) -> Result<Outcome, AcquireError> {
        let look = self.queue.look();
        let answer = asking(self, cost).await?.heard();
        let retry_after = match answer.verdict {
            Verdict::Allow => return Ok(Outcome::Had(answer)),
            Verdict::Never => return Err(self.refused(None)),
            Verdict::Deny { retry_after } => retry_after,
        };
        let then = from_now(retry_after);
        if patience.ends_before(then) {
            return Err(self.refused(Some(retry_after)));
        }
        Ok(Outcome::Wait(NotBefore { then, look }))
    }

    fn let_through(&self, answer: Answer, waited: Option<Duration>) -> Acquired {
        self.tally.acquired(waited);
        if let Some(length) = waited {
            self.listener.tell(LimiterEvent::Waited { key: self.limits.key(), length });
        }
        let Answer { remaining, is_degraded, .. } = answer;
        Acquired { remaining, waited: waited.unwrap_or_default(), is_degraded }
    }

    fn refused(&self, retry_after: Option<Duration>) -> AcquireError {
        let refused = RateLimitExceeded { key: self.limits.key().to_owned(), retry_after };
        self.tally.refused();
        self.listener.tell(LimiterEvent::Refused(&refused));
        AcquireError::Exceeded(refused)
    }
}
