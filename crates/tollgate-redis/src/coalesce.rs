//! Coalescing: plans that arrive while a call is in flight are sent together in the next call.
//!
//! An idle lane sends a plan immediately; no plan waits for others, except those of one [`together()`]. A call contains
//! plans of one lane: of one server, or of one node of a cluster. A plan with a key that the node does not have was not
//! decided; it is sent again in the lane of its slot, in which nodes redirect calls.

use std::collections::HashMap;
use std::future::poll_fn;
use std::mem;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use smallvec::SmallVec;
use tokio::time::Instant;

use crate::call::{Batch, EncodedTake, KeyForm, Outcome, PlanReply, QueuedPlan, Verb, Withdrawal};
use crate::failure::Failure;
use crate::link::SendGate;
use crate::resp::Reply;
use crate::router::{Lane, Router, Scope};
use crate::sync::{Handle, Mutex, timeout_at};
use crate::time::Time;

mod flow;
mod lane_queue;
mod together;

use lane_queue::{Flight, LaneQueue, Moment, Next, Urgency};
pub use together::together;

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
    /// The lanes with plans that wait or are in flight.
    queues: Mutex<HashMap<Lane, LaneQueue>>,
}

impl Coalescer {
    pub(crate) fn new(
        router: Arc<Router>,
        time: Arc<Time>,
        channel: String,
        timeout: Duration,
        max_waiting: usize,
    ) -> Self {
        Self { router, time, channel, timeout, max_waiting, queues: Mutex::default() }
    }

    /// Sends a plan, immediately or in the next call, and waits for its reply. All its keys must be in the lane. A
    /// caller may stop waiting at any time: a plan that waits is then dropped, unless it is a debit, and other callers are
    /// not affected.
    pub(crate) async fn decide(
        self: &Arc<Self>,
        verb: Verb,
        takes: SmallVec<[EncodedTake; 2]>,
        lane: &Lane,
    ) -> Result<PlanReply, Failure> {
        if Handle::try_current().is_err() {
            return Err(Failure::no_runtime());
        }
        let now = Instant::now();
        let deadline = now + self.timeout;
        let (plan, mut ticket) = QueuedPlan::new(verb, takes, deadline);
        self.submit(lane, plan);
        if let Ok(reply) = timeout_at(now + self.timeout / EARLY_SEND_DIVISOR, &mut ticket).await {
            return reply;
        }
        // The caller will soon time out.
        self.send_waiting(lane, None, Urgency::Urgent);
        if let Ok(reply) = timeout_at(deadline, &mut ticket).await {
            return reply;
        }
        match ticket.withdraw() {
            Withdrawal::Replied(reply) => reply,
            Withdrawal::Unsent(refusal) => Err(refusal.unwrap_or_else(|| self.unsent(lane))),
            Withdrawal::Sent => Err(Failure::Timeout),
        }
    }

    /// Sends a plan, immediately, with its group or in the next call.
    fn submit(self: &Arc<Self>, lane: &Lane, plan: QueuedPlan) {
        if !lane.enter(self.max_waiting) {
            let failure = self.unsent(lane);
            plan.fail(failure);
        } else if let Some(plan) = together::hold(self, lane, plan) {
            self.send_waiting(lane, Some(plan), Urgency::Normal);
        }
    }

    /// Returns the failure of a plan that was not sent. If Redis replies, this process has more plans than Redis
    /// decides in time. If not, Redis is unavailable.
    fn unsent(&self, lane: &Lane) -> Failure {
        match lane.is_replying(self.timeout) {
            true => Failure::Overloaded,
            false => {
                let timeout = self.timeout;
                let reason =
                    format!("Redis has not replied for {timeout:?}: the call was not sent");
                Failure::Unreachable(reason)
            }
        }
    }

    /// Sends waiting and new plans in as many calls as may be in flight. A call that fails immediately ends here too: its
    /// plans do not recurse.
    fn send_waiting<N>(self: &Arc<Self>, lane: &Lane, new: N, urgency: Urgency)
    where
        N: IntoIterator<Item = QueuedPlan>,
    {
        let mut new = Some(new);
        let mut has_sent = false;
        loop {
            let now = Instant::now();
            let (timeout, silence) = (self.timeout, lane.silence(now));
            let removed = self.with_queue(lane, |queue, has_others| {
                if has_sent {
                    queue.end_sending();
                }
                new.take().into_iter().flatten().for_each(|plan| queue.push(plan));
                queue.remove(&Moment { now, urgency, has_others, timeout, silence })
            });
            lane.leave(removed.send.len() + removed.shed.len());
            for plan in removed.shed {
                let failure = plan.refusal().unwrap_or_else(|| self.unsent(lane));
                plan.fail(failure);
            }
            if removed.send.is_empty() {
                return;
            }
            has_sent = true;
            let takes = removed.send.iter().map(|plan| plan.takes().len()).sum();
            let (plans, in_flight) = (removed.send.len(), removed.in_flight);
            self.send(lane, removed.send, Flight { sent_at: now, plans, takes, in_flight });
        }
    }

    fn send(self: &Arc<Self>, lane: &Lane, mut plans: Vec<QueuedPlan>, flight: Flight) {
        let gate = Arc::new(SendGate::default());
        plans.retain(|plan| plan.assign(&gate));
        if plans.is_empty() {
            self.with_queue(lane, |queue, _| {
                queue.end_call(flight, 0, self.timeout, flight.sent_at)
            });
            return;
        }
        let form = match lane.scope() {
            Scope::Node => KeyForm::Named,
            Scope::Server | Scope::Slot(_) => KeyForm::Declared,
        };
        let (batch, call) = Batch::new(plans, &self.channel, self.time.argument(), form);
        let (this, of) = (Arc::clone(self), lane.clone());
        self.router.call(lane, call, gate, move |result| this.complete(&of, flight, batch, result));
    }

    fn complete(
        self: &Arc<Self>,
        lane: &Lane,
        flight: Flight,
        batch: Batch,
        result: Result<Reply, Failure>,
    ) {
        let (mut answered, mut unsent, mut misdirected) = (0, Vec::new(), Vec::new());
        match result {
            Ok(reply) => {
                answered = flight.plans;
                misdirected = self.deliver(lane, flight, batch, reply);
            }
            Err(failure) if self.router.is_misdirected(lane, &failure) => {
                misdirected = batch.into_plans();
            }
            // The time of one caller ran out before the call was sent. The others still wait.
            Err(Failure::Withdrawn) => {
                unsent = batch.into_plans();
                unsent.iter().for_each(QueuedPlan::unassign);
                lane.enter_again(unsent.len());
            }
            Err(Failure::Overloaded) => batch.fail(&self.unsent(lane)),
            Err(failure) => {
                answered = if failure.was_sent() { flight.plans } else { 0 };
                batch.fail(&failure);
            }
        }
        let next = self.with_queue(lane, |queue, _| {
            queue.put_back(unsent);
            queue.end_call(flight, answered, self.timeout, Instant::now())
        });
        match next {
            Next::Send => self.send_waiting(lane, None, Urgency::Normal),
            Next::Defer => self.send_deferred(lane.clone()),
        }
        self.send_by_slot(misdirected);
    }

    /// Sends each plan its part of the reply. Returns the plans that the node has not decided.
    fn deliver(&self, lane: &Lane, flight: Flight, batch: Batch, reply: Reply) -> Vec<QueuedPlan> {
        let Outcome { at, misdirected, refuses_several_slots } = batch.complete(reply);
        if let Some(now) = at {
            self.time.update(now);
        }
        let decided = flight.plans.saturating_sub(misdirected.len());
        lane.record(decided, misdirected.len(), refuses_several_slots);
        misdirected
    }

    /// Sends plans that were not decided, because the node does not have their keys, to the owners of their slots.
    fn send_by_slot(self: &Arc<Self>, plans: Vec<QueuedPlan>) {
        if !plans.is_empty() {
            self.router.refresh();
        }
        for plan in plans {
            plan.unassign();
            let mut slots = plan.takes().iter().map(|take| self.router.slot(take.key()));
            let Some(slot) = slots.next() else { continue };
            if slots.any(|other| other != slot) {
                plan.return_to_caller();
                continue;
            }
            match self.router.slot_lane(slot) {
                Ok(lane) => {
                    lane.enter_again(1);
                    self.send_waiting(&lane, Some(plan), Urgency::Urgent);
                }
                Err(failure) => plan.fail(failure),
            }
        }
    }

    /// Sends the waiting plans after the callers that this task has woken had their turn.
    fn send_deferred(self: &Arc<Self>, lane: Lane) {
        let deferral = Deferral { coalescer: Arc::clone(self), lane };
        let send = async move {
            run_others().await;
            drop(deferral);
        };
        // Without a runtime, the drop of the deferral sends.
        drop(Handle::try_current().map(|runtime| runtime.spawn(send)));
    }

    /// Calls `f` with the queue of a lane, and whether there are others. Queues exist only while they are in use.
    fn with_queue<T>(&self, lane: &Lane, f: impl FnOnce(&mut LaneQueue, bool) -> T) -> T {
        let mut queues = self.queues.lock();
        let count = queues.len();
        if let Some(queue) = queues.get_mut(lane) {
            let result = f(queue, count > 1);
            if queue.is_idle() {
                queues.remove(lane);
            }
            return result;
        }
        let mut queue = LaneQueue::default();
        let result = f(&mut queue, count > 0);
        if !queue.is_idle() {
            queues.insert(lane.clone(), queue);
        }
        result
    }
}

#[cfg(tollgate_model)]
impl Coalescer {
    /// Returns whether no plan waits or is in flight.
    pub(crate) fn is_idle(&self) -> bool {
        self.queues.lock().is_empty()
    }
}

/// Waits until the tasks that are ready now have run. Unlike `yield_now`, it waits neither for tasks that they wake nor for
/// sockets.
async fn run_others() {
    let mut has_yielded = false;
    poll_fn(|context| {
        if mem::replace(&mut has_yielded, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// Sends the waiting plans of a lane when dropped, also if its runtime shuts down.
struct Deferral {
    coalescer: Arc<Coalescer>,
    lane: Lane,
}

impl Drop for Deferral {
    fn drop(&mut self) {
        self.coalescer.with_queue(&self.lane, |queue, _| queue.end_deferral());
        self.coalescer.send_waiting(&self.lane, None, Urgency::Normal);
    }
}
