//! Coalescing: what is asked while a call is in flight leaves together in the next one.
//!
//! An idle store sends a plan at once. Nobody waits for company. A call is for one slot, because a cluster
//! takes no other; a server that is no cluster has one slot.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::call::{Ask, Batch, MAX_TAKES};
use crate::failure::Failure;
use crate::resp::Reply;
use crate::router::Router;
use crate::slot::Slot;
use crate::time::Time;

/// Calls in flight at once for one slot: while Redis works at one, the next is on its way to it.
const CALLS_IN_FLIGHT: usize = 2;

/// The same when Redis is slow: waiting for a call to end and then for one's own would take twice as long as
/// Redis does.
const MOST_IN_FLIGHT: usize = 16;

/// Puts plans together and sends them.
#[derive(Debug)]
pub(crate) struct Coalescer {
    router: Router,
    time: Time,
    channel: String,
    max_waiting: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Of the slots that have a call in flight.
    lanes: HashMap<Slot, Lane>,
    waiting: usize,
}

#[derive(Debug, Default)]
struct Lane {
    waiting: Vec<Ask>,
    in_flight: usize,
}

impl Coalescer {
    pub(crate) fn new(router: Router, time: Time, channel: String, max_waiting: usize) -> Self {
        Self { router, time, channel, max_waiting, state: Mutex::default() }
    }

    pub(crate) const fn time(&self) -> &Time {
        &self.time
    }

    pub(crate) const fn router(&self) -> &Router {
        &self.router
    }

    /// Sends the plan, all of whose keys are of this slot, at once or with the next call.
    pub(crate) fn submit(self: &Arc<Self>, slot: Slot, ask: Ask) {
        let asks = {
            let mut state = self.state.lock();
            if state.waiting >= self.max_waiting {
                drop(state);
                ask.fail(Failure::Overloaded);
                return;
            }
            state.waiting += 1;
            let lane = state.lanes.entry(slot).or_default();
            lane.waiting.push(ask);
            if lane.in_flight >= CALLS_IN_FLIGHT {
                return;
            }
            lane.in_flight += 1;
            state.next_call(slot)
        };
        self.send(slot, asks);
    }

    /// Sends what waits behind slow calls, for somebody whose patience is running out.
    pub(crate) fn hurry(self: &Arc<Self>, slot: Slot) {
        let asks = {
            let mut state = self.state.lock();
            let Some(lane) = state.lanes.get_mut(&slot) else { return };
            if lane.waiting.is_empty() || lane.in_flight >= MOST_IN_FLIGHT {
                return;
            }
            lane.in_flight += 1;
            state.next_call(slot)
        };
        if !asks.is_empty() {
            self.send(slot, asks);
        }
    }

    /// The place of a call that has ended goes to the next, if anyone waits.
    fn go_on(self: &Arc<Self>, slot: Slot) {
        let asks = self.state.lock().after_call(slot);
        if !asks.is_empty() {
            self.send(slot, asks);
        }
    }

    fn send(self: &Arc<Self>, slot: Slot, asks: Vec<Ask>) {
        let mut batch = Batch::of(asks);
        let call = batch.call(&self.channel, self.time.told());
        let this = Arc::clone(self);
        let then = Box::new(move |result| this.answered(slot, batch, result));
        self.router.call(slot, Arc::new(call), then);
    }

    fn answered(self: Arc<Self>, slot: Slot, batch: Batch, result: Result<Reply, Failure>) {
        match result {
            Err(failure) => batch.fail(&failure),
            Ok(reply) => {
                if let Some(now) = batch.answer(reply) {
                    self.time.learn(now);
                }
            }
        }
        self.go_on(slot);
    }
}

impl State {
    /// What takes the place of a call that has ended. A place that was only made for haste is given up.
    fn after_call(&mut self, slot: Slot) -> Vec<Ask> {
        match self.lanes.get_mut(&slot) {
            Some(lane) if lane.in_flight > CALLS_IN_FLIGHT => {
                lane.in_flight -= 1;
                Vec::new()
            }
            _ => self.next_call(slot),
        }
    }

    /// As many plans of the slot as fit into one call, without those that nobody waits for any more. None,
    /// and the call's place is free, if nobody waits.
    fn next_call(&mut self, slot: Slot) -> Vec<Ask> {
        let Some(lane) = self.lanes.get_mut(&slot) else { return Vec::new() };
        let before = lane.waiting.len();
        lane.waiting.retain(|ask| !ask.is_abandoned());
        let mut takes = 0;
        let fits = |ask: &Ask| {
            takes += ask.takes();
            takes <= MAX_TAKES
        };
        let count = lane.waiting.iter().map(fits).take_while(|fits| *fits).count().max(1);
        let rest = lane.waiting.split_off(count.min(lane.waiting.len()));
        let asks = std::mem::replace(&mut lane.waiting, rest);
        self.waiting -= before - lane.waiting.len();
        if asks.is_empty() {
            lane.in_flight -= 1;
            if lane.in_flight == 0 {
                self.lanes.remove(&slot);
            }
        }
        asks
    }
}
