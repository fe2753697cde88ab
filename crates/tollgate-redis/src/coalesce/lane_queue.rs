//! The plans of one lane: waiting, and in flight.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;

use super::flow::Flow;
use crate::call::{MAX_TAKES, QueuedPlan};

/// Concurrent calls per lane. While Redis processes one, the next is in transit.
const CALLS_IN_FLIGHT: usize = 2;

/// Number of plans from which a lane beside other lanes has one call in flight: while its server waits for the next call,
/// this process handles the replies of the other servers. Below, a plan would only wait longer.
const MIN_PLANS_OF_ONE_CALL: usize = 8;

/// Maximum concurrent calls per lane if Redis is slow. Waiting for another call and then for its own would
/// double the latency of a plan.
const MAX_CALLS_IN_FLIGHT: usize = 16;

/// Whether plans may be sent in larger calls, or in more of them, than usual.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Urgency {
    Normal,
    /// Plans were submitted together and share a call.
    Together,
    /// A caller has waited long.
    Urgent,
}

/// The circumstances in which plans leave the queue.
#[derive(Debug, Clone, Copy)]
pub(super) struct Moment {
    pub(super) now: Instant,
    pub(super) urgency: Urgency,
    /// Whether other lanes are in use.
    pub(super) has_others: bool,
    pub(super) timeout: Duration,
    /// Time since the last reply of the server. A plan is shed only if the server has replied while it waited: plans for a
    /// silent server wait until it is lost.
    pub(super) silence: Option<Duration>,
}

/// A call in flight.
#[derive(Debug, Clone, Copy)]
pub(super) struct Flight {
    pub(super) sent_at: Instant,
    pub(super) plans: usize,
    pub(super) takes: usize,
    /// Takes in flight when it was sent, including its own.
    pub(super) in_flight: usize,
}

/// Plans that left the queue.
#[derive(Debug, Default)]
pub(super) struct Removed {
    /// The plans of the next call.
    pub(super) send: Vec<QueuedPlan>,
    /// Plans without a caller, or without enough time for a reply.
    pub(super) shed: Vec<QueuedPlan>,
    /// Takes in flight, including those of the next call.
    pub(super) in_flight: usize,
}

/// What follows a finished call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// Send the waiting plans now.
    Send,
    /// Send them after the callers that just got replies had the chance to send their next plans.
    Defer,
}

#[derive(Debug, Default)]
pub(super) struct LaneQueue {
    waiting: VecDeque<QueuedPlan>,
    calls: usize,
    plans_in_flight: usize,
    takes_in_flight: usize,
    /// Whether a thread is sending calls of this lane. It continues until no more can be sent.
    is_sending: bool,
    /// Whether a task will send the waiting plans.
    is_deferred: bool,
    /// Whether plans that were submitted together wait, because they could not be sent at once.
    has_group: bool,
    flow: Flow,
}

impl LaneQueue {
    pub(super) fn push(&mut self, plan: QueuedPlan) {
        self.waiting.push_back(plan);
    }

    /// Returns plans to the front of the queue, in their order.
    pub(super) fn put_back(&mut self, plans: Vec<QueuedPlan>) {
        plans.into_iter().rev().for_each(|plan| self.waiting.push_front(plan));
    }

    pub(super) fn is_idle(&self) -> bool {
        let is_busy = self.is_sending || self.is_deferred || self.calls > 0;
        !is_busy && self.waiting.is_empty()
    }

    /// Ends the sending of the last removed plans.
    pub(super) fn end_sending(&mut self) {
        self.is_sending = false;
    }

    pub(super) fn end_deferral(&mut self) {
        self.is_deferred = false;
    }

    /// Removes the plans of the next call, if one may be sent now, and plans that are too late.
    pub(super) fn remove(&mut self, moment: &Moment) -> Removed {
        let Moment { now, urgency, has_others, .. } = *moment;
        let mut removed = Removed::default();
        while self.waiting.front().is_some_and(|plan| plan.deadline() <= now) {
            removed.shed.extend(self.waiting.pop_front());
        }
        let calls = self.max_calls(urgency, has_others);
        let mut takes = self.take_budget(calls, urgency);
        let mut plans = self.plan_budget(calls, urgency);
        let needed = self.needed_time(moment);
        while plans > 0
            && let Some(plan) = self.waiting.front()
        {
            let remaining = plan.deadline().saturating_duration_since(now);
            let waited = moment.timeout.saturating_sub(remaining);
            let is_late = remaining < needed && moment.silence.is_some_and(|time| time < waited);
            if is_late || plan.is_cancelled() {
                removed.shed.extend(self.waiting.pop_front());
                continue;
            }
            // A plan with more takes than the budget is sent alone.
            let count = plan.takes().len();
            if takes == 0 || (count > takes && !removed.send.is_empty()) {
                break;
            }
            takes = takes.saturating_sub(count);
            plans -= 1;
            removed.send.extend(self.waiting.pop_front());
        }
        self.has_group =
            !self.waiting.is_empty() && (self.has_group || urgency == Urgency::Together);
        self.begin_call(&removed.send);
        removed.in_flight = self.takes_in_flight;
        removed
    }

    /// Returns the time that a plan needs: one with less is shed. Without a backlog, a slow server is not overloaded,
    /// and no plan is shed.
    fn needed_time(&self, moment: &Moment) -> Duration {
        let has_backlog = self.takes_in_flight + self.waiting.len() > self.flow.window();
        let is_replying = moment.silence.is_some_and(|time| time < moment.timeout / 2);
        match is_replying && has_backlog {
            true => self.flow.needed_time(moment.timeout),
            false => Duration::ZERO,
        }
    }

    /// Returns the maximum number of calls in flight.
    fn max_calls(&self, urgency: Urgency, has_others: bool) -> usize {
        let plans = self.plans_in_flight + self.waiting.len();
        match urgency {
            Urgency::Urgent => MAX_CALLS_IN_FLIGHT,
            Urgency::Normal | Urgency::Together if has_others && plans >= MIN_PLANS_OF_ONE_CALL => {
                1
            }
            Urgency::Normal | Urgency::Together => CALLS_IN_FLIGHT,
        }
    }

    /// Returns the maximum number of takes of the next call. 0 if no call may be sent.
    fn take_budget(&self, max_calls: usize, urgency: Urgency) -> usize {
        if self.is_sending || self.is_deferred || self.calls >= max_calls {
            return 0;
        }
        // As a single plan with many takes is, plans that were submitted together are sent whole at first.
        if urgency == Urgency::Together && self.calls == 0 && !self.flow.is_measured() {
            return MAX_TAKES;
        }
        self.flow.window().saturating_sub(self.takes_in_flight).min(MAX_TAKES)
    }

    /// Returns the maximum number of plans of the next call. With two calls, it is half of all plans, so that Redis
    /// processes one call while this process handles the other. Plans that were submitted together are not divided.
    fn plan_budget(&self, max_calls: usize, urgency: Urgency) -> usize {
        match max_calls {
            CALLS_IN_FLIGHT if urgency == Urgency::Normal && !self.has_group => {
                (self.plans_in_flight + self.waiting.len()).div_ceil(CALLS_IN_FLIGHT)
            }
            _ => self.waiting.len(),
        }
    }

    fn begin_call(&mut self, plans: &[QueuedPlan]) {
        if plans.is_empty() {
            return;
        }
        self.is_sending = true;
        self.calls += 1;
        self.plans_in_flight += plans.len();
        self.takes_in_flight += plans.iter().map(|plan| plan.takes().len()).sum::<usize>();
    }

    /// Ends a call. `answered` is the number of plans with a reply, 0 if the call was not sent.
    pub(super) fn end_call(
        &mut self,
        flight: Flight,
        answered: usize,
        timeout: Duration,
        now: Instant,
    ) -> Next {
        if answered > 0 {
            self.flow.record((flight.sent_at, now), flight.in_flight, timeout);
        }
        self.calls -= 1;
        self.plans_in_flight -= flight.plans;
        self.takes_in_flight -= flight.takes;
        if answered < 2 || self.waiting.len() >= answered {
            return Next::Send;
        }
        match std::mem::replace(&mut self.is_deferred, true) {
            // The task of another call sends.
            true => Next::Send,
            false => Next::Defer,
        }
    }
}

#[cfg(test)]
mod tests {
    use smallvec::SmallVec;
    use tollgate::{Key, Limit, Quota, Subject, Timestamp};

    use super::*;
    use crate::call::{Ticket, Verb, take_of};
    use crate::keys::Keys;

    const TIMEOUT: Duration = Duration::from_millis(100);

    /// Queues plans of one take. Returns their tickets.
    fn push(queue: &mut LaneQueue, count: usize, now: Instant) -> Vec<Ticket> {
        let limit = Limit::fixed_window(Quota::per_day(1)).unwrap();
        let (subject, keys) = (Subject::of(["k"]), Keys::new("rl:".to_owned()));
        let take = take_of(&Key::new(&subject, &limit), 1, &keys, Timestamp::EPOCH);
        let mut tickets = Vec::new();
        for _ in 0..count {
            let takes = SmallVec::from_iter([take.clone()]);
            let (plan, ticket) = QueuedPlan::new(Verb::Take, takes, now + TIMEOUT);
            queue.push(plan);
            tickets.push(ticket);
        }
        tickets
    }

    /// Removes the plans of the next call. Returns the call and the number of shed plans.
    fn call(queue: &mut LaneQueue, now: Instant, has_others: bool) -> (Flight, usize) {
        call_with(queue, now, has_others, Urgency::Normal)
    }

    fn call_with(
        queue: &mut LaneQueue,
        now: Instant,
        has_others: bool,
        urgency: Urgency,
    ) -> (Flight, usize) {
        let (timeout, silence) = (TIMEOUT, Some(Duration::ZERO));
        let removed = queue.remove(&Moment { now, urgency, has_others, timeout, silence });
        queue.end_sending();
        let plans = removed.send.len();
        let in_flight = removed.in_flight;
        (Flight { sent_at: now, plans, takes: plans, in_flight }, removed.shed.len())
    }

    #[test]
    fn two_calls_share_the_plans() {
        let (mut queue, now) = (LaneQueue::default(), Instant::now());
        let _tickets = push(&mut queue, 64, now);
        let calls = [(); 3].map(|()| call(&mut queue, now, false).0.plans);
        assert_eq!(calls, [32, 32, 0]);
    }

    #[test]
    fn plans_submitted_together_share_a_call() {
        let now = Instant::now();
        let together = |queue: &mut LaneQueue| {
            [(); 2].map(|()| call_with(queue, now, false, Urgency::Together).0.plans)
        };
        for (count, calls) in [(2, [2, 0]), (100, [100, 0]), (MAX_TAKES + 1, [MAX_TAKES, 0])] {
            let mut queue = LaneQueue::default();
            let _tickets = push(&mut queue, count, now);
            assert_eq!(together(&mut queue), calls, "{count}");
        }
        let mut slow = LaneQueue::default();
        let _ticket = push(&mut slow, 1, now);
        let (flight, _) = call(&mut slow, now, false);
        let _tickets = push(&mut slow, 100, now);
        assert_eq!(slow.end_call(flight, 1, TIMEOUT, now + TIMEOUT), Next::Send);
        let window = slow.flow.window();
        assert_eq!(together(&mut slow), [window, 0], "the window of a slow server applies");
        assert!(window < 100, "{window}");
    }

    #[test]
    fn group_that_waits_for_a_deferral_shares_a_call() {
        let (mut queue, now) = (LaneQueue::default(), Instant::now());
        let _tickets = push(&mut queue, 2, now);
        let (first, _) = call_with(&mut queue, now, false, Urgency::Together);
        assert_eq!(queue.end_call(first, 2, TIMEOUT, now), Next::Defer);
        let _group = push(&mut queue, 2, now);
        assert_eq!(call_with(&mut queue, now, false, Urgency::Together).0.plans, 0);
        queue.end_deferral();
        assert_eq!(call(&mut queue, now, false).0.plans, 2);
        let _others = push(&mut queue, 4, now);
        assert_eq!(call(&mut queue, now, false).0.plans, 3, "half of the plans");
    }

    #[test]
    fn busy_lane_beside_others_has_one_call() {
        let (mut queue, now) = (LaneQueue::default(), Instant::now());
        let _tickets = push(&mut queue, 21, now);
        assert_eq!([(); 2].map(|()| call(&mut queue, now, true).0.plans), [21, 0]);
    }

    #[test]
    fn woken_callers_share_the_next_call_and_a_lone_caller_does_not_wait() {
        let (mut queue, now) = (LaneQueue::default(), Instant::now());
        let _tickets = push(&mut queue, 4, now);
        let (first, _) = call(&mut queue, now, false);
        let (second, _) = call(&mut queue, now, false);
        assert_eq!(queue.end_call(first, 2, TIMEOUT, now), Next::Defer);
        let _more = push(&mut queue, 2, now);
        assert_eq!(call(&mut queue, now, false).0.plans, 0, "the task of the deferral sends");
        queue.end_deferral();
        let (third, _) = call(&mut queue, now, false);
        assert_eq!(third.plans, 2);
        assert_eq!(queue.end_call(second, 2, TIMEOUT, now), Next::Defer);
        queue.end_deferral();
        assert_eq!(queue.end_call(third, 2, TIMEOUT, now), Next::Defer);
        queue.end_deferral();
        assert!(queue.is_idle());
        let _last = push(&mut queue, 1, now);
        let (lone, _) = call(&mut queue, now, false);
        assert_eq!((lone.plans, queue.end_call(lone, 1, TIMEOUT, now)), (1, Next::Send));
    }

    /// A queue after calls with a latency of half the timeout.
    fn slow_queue(now: Instant) -> LaneQueue {
        let mut queue = LaneQueue::default();
        for _ in 0..8 {
            let _ticket = push(&mut queue, 1, now);
            let (flight, _) = call(&mut queue, now, false);
            queue.end_call(flight, 1, TIMEOUT, now + TIMEOUT / 2);
        }
        queue
    }

    #[test]
    fn late_plans_are_shed_only_with_a_backlog() {
        let now = Instant::now();
        let later = now + TIMEOUT * 3 / 8;
        let mut slow = slow_queue(now);
        let _tickets = push(&mut slow, 2, now);
        assert_eq!(call(&mut slow, later, false).1, 0, "they wait for a call, not for others");
        let mut overloaded = slow_queue(now);
        let window = overloaded.flow.window();
        let _tickets = push(&mut overloaded, window + 1, now);
        let (flight, shed) = call(&mut overloaded, later, false);
        assert_eq!((flight.plans, shed), (0, window + 1), "no reply would be in time");
    }

    #[test]
    fn plans_for_a_silent_server_are_not_shed() {
        let now = Instant::now();
        let mut queue = slow_queue(now);
        let window = queue.flow.window();
        let _tickets = push(&mut queue, window + 1, now);
        // It has not replied for longer than they wait, or is not connected.
        for silence in [Some(TIMEOUT * 7 / 16), None] {
            let removed = queue.remove(&Moment {
                now: now + TIMEOUT * 3 / 8,
                urgency: Urgency::Normal,
                has_others: false,
                timeout: TIMEOUT,
                silence,
            });
            assert_eq!(removed.shed.len(), 0);
        }
    }

    #[test]
    fn expired_and_cancelled_plans_are_not_sent() {
        let (mut queue, now) = (LaneQueue::default(), Instant::now());
        let expired = push(&mut queue, 2, now);
        let mut tickets = push(&mut queue, 3, now + TIMEOUT);
        drop(tickets.remove(0));
        let (flight, shed) = call(&mut queue, now + TIMEOUT, true);
        assert_eq!((flight.plans, shed, expired.len()), (2, 3, 2));
    }
}
