//! The state shared by the clones of one limiter, and the acquire algorithm.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use tollgate::policy::NamedLimits;
use tollgate::{RateLimitExceeded, Store, Verdict};

use super::cancel_safe_take::take;
use super::counts::Counters;
use super::error::AcquireError;
use super::event::{EventCallback, LimiterEvent};
use super::max_wait::{MaxWait, instant_after};
use super::queue::{Queue, RetryAt, Wake};
use super::results::{Acquired, TakeReply};
use crate::sync::Handle;

#[derive(Debug)]
pub(super) struct Shared<S> {
    pub(super) store: S,
    pub(super) limits: NamedLimits,
    pub(super) queue: Queue,
    pub(super) counters: Counters,
    pub(super) on_event: EventCallback,
}

/// The result of one attempt.
enum Attempt {
    Taken(TakeReply),
    Wait(RetryAt),
}

impl<S: Store + 'static> Shared<S> {
    /// Takes immediately if no caller waits, otherwise in queue order.
    pub(super) async fn acquire(
        self: &Arc<Self>,
        cost: u64,
        max_wait: MaxWait,
    ) -> Result<Acquired, AcquireError> {
        let acquired = self.acquire_uncounted(cost, max_wait).await;
        if let Err(error) = &acquired
            && error.is_store_error()
        {
            self.counters.add_failed();
        }
        acquired
    }

    async fn acquire_uncounted(
        self: &Arc<Self>,
        cost: u64,
        max_wait: MaxWait,
    ) -> Result<Acquired, AcquireError> {
        if self.queue.waiting() > 0 {
            return self.acquire_queued(cost, max_wait, None).await;
        }
        match self.attempt(cost, max_wait).await? {
            Attempt::Taken(reply) => Ok(self.admit(reply, None)),
            Attempt::Wait(retry) => self.acquire_queued(cost, max_wait, Some(retry)).await,
        }
    }

    /// Joins the queue and takes when first, not before `retry` if the store returned one.
    async fn acquire_queued(
        self: &Arc<Self>,
        cost: u64,
        max_wait: MaxWait,
        mut retry: Option<RetryAt>,
    ) -> Result<Acquired, AcquireError> {
        // Refuse immediately a caller that cannot be served before the first in the queue.
        let is_too_short = self.queue.retry_at().is_some_and(|at| max_wait.ends_before(at));
        if is_too_short || matches!(max_wait, MaxWait::None) {
            return Err(self.refuse(Some(self.queue.min_wait())));
        }
        if Handle::try_current().is_err() {
            return Err(AcquireError::NoRuntime);
        }
        let (queued_at, place) = (Instant::now(), self.queue.join());
        let turn = match place.try_first() {
            Some(turn) => turn,
            None => {
                // The retry time will be outdated when this caller becomes first.
                retry = None;
                let turn = place.wait_first(max_wait).await;
                turn.ok_or_else(|| self.refuse(Some(self.queue.min_wait())))?
            }
        };
        loop {
            let wake = match retry {
                Some(retry) => turn.sleep(retry).await,
                None => Wake::Due,
            };
            match self.attempt(cost, max_wait).await {
                Ok(Attempt::Taken(reply)) => {
                    return Ok(self.admit(reply, Some(queued_at.elapsed())));
                }
                Ok(Attempt::Wait(next)) => retry = Some(next),
                // An early attempt ignores store errors: the store may be back when quota is due.
                Err(
                    AcquireError::Unavailable(_)
                    | AcquireError::Timeout(_)
                    | AcquireError::Overloaded(_),
                ) if wake == Wake::Early => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Calls the store once. Returns an error if it refuses for longer than the maximum wait.
    async fn attempt(
        self: &Arc<Self>,
        cost: u64,
        max_wait: MaxWait,
    ) -> Result<Attempt, AcquireError> {
        let epoch = self.queue.epoch();
        let reply = take(self, cost).await?.deliver();
        let retry_after = match reply.verdict {
            Verdict::Allow => return Ok(Attempt::Taken(reply)),
            Verdict::Never => return Err(self.refuse(None)),
            Verdict::Deny { retry_after } => retry_after,
        };
        let instant = instant_after(retry_after);
        if max_wait.ends_before(instant) {
            return Err(self.refuse(Some(retry_after)));
        }
        Ok(Attempt::Wait(RetryAt { instant, epoch }))
    }

    fn admit(&self, reply: TakeReply, waited: Option<Duration>) -> Acquired {
        self.counters.add_acquired(waited);
        if let Some(duration) = waited {
            self.on_event.call(LimiterEvent::Waited { key: self.limits.key(), duration });
        }
        let TakeReply { remaining, is_degraded, .. } = reply;
        Acquired { remaining, waited: waited.unwrap_or_default(), is_degraded }
    }

    fn refuse(&self, retry_after: Option<Duration>) -> AcquireError {
        let exceeded = RateLimitExceeded { key: self.limits.key().to_owned(), retry_after };
        self.counters.add_refused();
        self.on_event.call(LimiterEvent::Refused(&exceeded));
        AcquireError::Exceeded(exceeded)
    }
}
