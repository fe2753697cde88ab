//! Coalescing: plans that arrive while a call is in flight are sent together in the next call.
//!
//! An idle store sends a plan immediately; no plan waits for others. A call contains keys of one cluster slot;
//! without a cluster there is one slot.

use std::collections::HashMap;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use smallvec::SmallVec;
use tokio::runtime::Handle;
use tokio::time::timeout;

use crate::call::{Batch, EncodedTake, MAX_TAKES, PlanReply, QueuedPlan, Verb};
use crate::failure::Failure;
use crate::resp::Reply;
use crate::router::Router;
use crate::slot::Slot;
use crate::time::Time;

/// Concurrent calls per slot. While Redis processes one, the next is in transit.
const CALLS_IN_FLIGHT: usize = 2;

/// Maximum concurrent calls per slot if Redis is slow. Waiting for another call and then for its own would
/// double the latency of a plan.
const MAX_CALLS_IN_FLIGHT: usize = 16;

/// Waiting plans are sent early after this fraction of the timeout: a quarter.
const EARLY_SEND_DIVISOR: u32 = 4;

/// Combines plans into calls and sends them.
#[derive(Debug)]
pub(crate) struct Coalescer {
    router: Arc<Router>,
    time: Arc<Time>,
    channel: String,
    timeout: Duration,
    max_waiting: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The slots with calls in flight.
    queues: HashMap<Slot, SlotQueue>,
    /// Waiting plans of all slots.
    waiting: usize,
}

#[derive(Debug, Default)]
struct SlotQueue {
    waiting: Vec<QueuedPlan>,
    in_flight: usize,
}

impl Coalescer {
    pub(crate) fn new(
        router: Arc<Router>,
        time: Arc<Time>,
        channel: String,
        timeout: Duration,
        max_waiting: usize,
    ) -> Self {
        Self { router, time, channel, timeout, max_waiting, state: Mutex::default() }
    }

    /// Sends a plan, immediately or in the next call, and waits for its reply. All its keys must be in one slot. A
    /// caller may stop waiting at any time: a plan that waits is then dropped, and other callers are not affected.
    pub(crate) async fn decide(
        self: &Arc<Self>,
        verb: Verb,
        takes: SmallVec<[EncodedTake; 2]>,
    ) -> Result<PlanReply, Failure> {
        if Handle::try_current().is_err() {
            return Err(Failure::no_runtime());
        }
        let slot = takes.first().map_or(Slot::ONLY, |take| self.router.slot(take.key()));
        let (plan, reply) = QueuedPlan::new(verb, takes);
        self.submit(slot, plan);
        let (early, mut reply) = (self.timeout / EARLY_SEND_DIVISOR, pin!(reply));
        let result = match timeout(early, reply.as_mut()).await {
            Ok(result) => Ok(result),
            Err(_) => {
                self.send_early(slot);
                timeout(self.timeout - early, reply).await
            }
        };
        match result {
            Ok(Ok(reply)) => reply,
            // The sender was dropped with the runtime of the link.
            Ok(Err(_)) => {
                let reason = "the runtime of the connection has shut down";
                Err(Failure::Unreachable(reason.to_owned()))
            }
            Err(_) => Err(Failure::Timeout),
        }
    }

    /// Sends a plan, immediately or in the next call.
    fn submit(self: &Arc<Self>, slot: Slot, plan: QueuedPlan) {
        let plans = {
            let mut state = self.state.lock();
            if state.waiting >= self.max_waiting {
                drop(state);
                plan.fail(Failure::Overloaded);
                return;
            }
            state.waiting += 1;
            let queue = state.queues.entry(slot).or_default();
            queue.waiting.push(plan);
            if queue.in_flight >= CALLS_IN_FLIGHT {
                return;
            }
            queue.in_flight += 1;
            state.next_plans(slot)
        };
        self.send(slot, plans);
    }

    /// Sends waiting plans in an additional call, because a caller will soon time out.
    fn send_early(self: &Arc<Self>, slot: Slot) {
        let plans = {
            let mut state = self.state.lock();
            let Some(queue) = state.queues.get_mut(&slot) else { return };
            if queue.waiting.is_empty() || queue.in_flight >= MAX_CALLS_IN_FLIGHT {
                return;
            }
            queue.in_flight += 1;
            state.next_plans(slot)
        };
        if !plans.is_empty() {
            self.send(slot, plans);
        }
    }

    fn send(self: &Arc<Self>, slot: Slot, plans: Vec<QueuedPlan>) {
        let (batch, call) = Batch::new(plans, &self.channel, self.time.argument());
        let this = Arc::clone(self);
        self.router.call(slot, call, move |result| this.complete(slot, batch, result));
    }

    fn complete(self: &Arc<Self>, slot: Slot, batch: Batch, result: Result<Reply, Failure>) {
        match result {
            Err(failure) => batch.fail(&failure),
            Ok(reply) => {
                if let Some(now) = batch.complete(reply) {
                    self.time.update(now);
                }
            }
        }
        let plans = self.state.lock().after_call(slot);
        if !plans.is_empty() {
            self.send(slot, plans);
        }
    }
}

impl State {
    /// Returns the plans that follow a finished call. An additional call of `send_early` has no successor.
    fn after_call(&mut self, slot: Slot) -> Vec<QueuedPlan> {
        match self.queues.get_mut(&slot) {
            Some(queue) if queue.in_flight > CALLS_IN_FLIGHT => {
                queue.in_flight -= 1;
                Vec::new()
            }
            _ => self.next_plans(slot),
        }
    }

    /// Removes as many waiting plans of the slot as fit into one call, and drops cancelled plans. If none
    /// waits, returns none and ends the call.
    fn next_plans(&mut self, slot: Slot) -> Vec<QueuedPlan> {
        let Some(queue) = self.queues.get_mut(&slot) else { return Vec::new() };
        let before = queue.waiting.len();
        queue.waiting.retain(|plan| !plan.is_cancelled());
        let mut takes = 0;
        let fits = |plan: &QueuedPlan| {
            takes += plan.takes();
            takes <= MAX_TAKES
        };
        let count = queue.waiting.iter().map(fits).take_while(|fits| *fits).count().max(1);
        let rest = queue.waiting.split_off(count.min(queue.waiting.len()));
        let plans = std::mem::replace(&mut queue.waiting, rest);
        self.waiting -= before - queue.waiting.len();
        if plans.is_empty() {
            queue.in_flight -= 1;
            if queue.in_flight == 0 {
                self.queues.remove(&slot);
            }
        }
        plans
    }
}
